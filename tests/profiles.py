"""AnnData made and changed by hand, the values of profiles, and verbs on AnnData."""

from __future__ import annotations

import warnings

import anndata
import numpy as np
import pandas as pd

from optirank.data.genes import join_profiles
from optirank.data.objects import profiles_of
from optirank.data.passes import read_blocks
from optirank.data.profiles import Profiles
from optirank.verbs import design as designing
from optirank.verbs import evaluation, labelling, training


def made(X, genes, obs) -> anndata.AnnData:
    """An AnnData of some values."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*names are not unique")
        return anndata.AnnData(
            X, obs.copy(), pd.DataFrame(index=pd.Index(genes, dtype=str))
        )


def changed(data, *, X=None, genes=None, obs=None) -> anndata.AnnData:
    """The same with something else in places."""
    return made(
        data.X if X is None else X,
        data.var_names if genes is None else np.array(genes, dtype=object),
        data.obs if obs is None else obs,
    )


def take_genes(data, genes) -> anndata.AnnData:
    """Some genes, by name or position."""
    genes = np.asarray(genes)
    if genes.dtype.kind not in "iu":
        genes = data.var_names.get_indexer(genes)
    return made(data.X[:, genes], data.var_names[genes], data.obs)


def take_samples(data, rows) -> anndata.AnnData:
    """Some samples: a mask or positions."""
    rows = np.arange(data.n_obs)[rows]
    return made(data.X[rows], data.var_names, data.obs.iloc[rows])


def values(profiles, genes=None, size=1024, rows=None) -> np.ndarray:
    """The values of genes, by name, that blocks of profiles give, as one array."""
    if genes is not None:
        genes = pd.Index(profiles.genes).get_indexer(genes)
    parts = [
        block.toarray() if hasattr(block, "toarray") else block
        for block in read_blocks(profiles, genes, size=size, rows=rows)
    ]
    return np.concatenate(parts)


def _of_objects(verb):
    """A verb that takes AnnData, or a list of them, in place of profiles."""

    def run(data, *arguments, **options):
        if isinstance(data, anndata.AnnData):
            data = profiles_of(data)
        elif not isinstance(data, Profiles) and isinstance(data[0], anndata.AnnData):
            data = join_profiles([profiles_of(part) for part in data])
        if isinstance(options.get("test"), anndata.AnnData):
            options["test"] = profiles_of(options["test"])
        return verb(data, *arguments, **options)

    return run


train = _of_objects(training.train)
design = _of_objects(designing.design)
label_profiles = _of_objects(labelling.label_profiles)
evaluate_profiles = _of_objects(evaluation.evaluate_profiles)
