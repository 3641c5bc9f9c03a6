"""Build a data set from its raw files: labels, genes and values as its rules say.

Sets with the rule ``clean`` follow common steps: gene names are stripped and in upper
case, columns whose name is no gene are dropped, columns of one name joined, genes that
more than 20 % of the samples lack dropped, other missing values set to the gene's
median, genes put in alphabetical order. They are sparse if more than 40 % of the values
are zero, else dense. All other sets are sparse and keep the order of their genes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from anndata import AnnData

from optirank.data.profiles import DataError, check_column, duplicates
from optirank_lab.data.profiles import (
    changed,
    concatenated,
    join_annotations,
    labels_of,
    merged_genes,
    obs_of,
    origin_of,
    take_genes,
    take_samples,
)
from optirank_lab.data.raw import RawFiles, numbered, read_parts
from optirank_lab.data.registry import LABEL, Entry, harmonise, in_memory

_NO_GENES = ("", "NA", "NAN", "NONE", "?", "---")  # names of probes without a gene
_SEVERAL_GENES = "///"  # what stands between the names where a probe has several
_MOST_MISSING = 0.2  # share of the samples that may lack a gene of a clean set
_SPARSE = 0.4  # share of zeros above which a clean set is stored sparse
_DUPLICATES = ("first", "strongest", "sum")


def build(entry: Entry, folder: Path, data: Path) -> AnnData:
    """Build a set from the raw files in ``folder``.

    ``data`` is the folder of the sets that it may be a part of.
    """
    raw = RawFiles(entry, folder)
    whole = concatenated([_in_double(part) for part in read_parts(raw, data)])
    whole = _with_counts(whole, raw)
    whole = _with_annotations(whole, raw)
    whole = _with_sample_names(whole, raw)
    whole = _with_labels(whole, raw)
    whole = _with_gene_names(whole, raw)
    whole = _without_duplicates(whole, entry.read.duplicates)
    if entry.read.clean:
        whole = _complete_and_sorted(whole)
    whole = _with_values(whole, raw)
    expected = (entry.n_samples, entry.n_genes or whole.n_vars)
    if entry.public and whole.shape != expected:
        raise DataError(
            f"{entry.name} was built with {whole.n_obs} samples and "
            f"{whole.n_vars} genes, not {expected[0]} and {expected[1]}: "
            "its source may have changed"
        )
    return changed(whole, source=entry.name)


def _in_double(part: AnnData) -> AnnData:
    """The part in double precision; sparse, unless values are missing."""
    X = in_memory(part)
    if isinstance(X, np.ndarray) and np.isnan(X).any():
        return changed(part, X=X.astype(np.float64))
    return changed(part, X=sp.csr_matrix(X, dtype=np.float64))


def _with_counts(whole: AnnData, raw: RawFiles) -> AnnData:
    """The data with counts, where the values are logarithms of them."""
    rules = raw.entry.read
    if not (rules.size_factors or rules.totals or rules.counts_from_log2):
        return whole
    counts = sp.csr_matrix(in_memory(whole), copy=True)
    if rules.totals:
        counts.data = np.expm1(counts.data)
        totals = np.array(raw.texts(rules.totals), dtype=float)
        factors = totals / np.asarray(counts.sum(axis=1)).ravel()
    else:
        counts.data = np.exp2(counts.data) - 1
        factors = np.ones(whole.n_obs)
    if rules.size_factors:
        factors = np.array(raw.texts(rules.size_factors), dtype=float)
    counts.data = np.rint(counts.data * np.repeat(factors, np.diff(counts.indptr)))
    return changed(whole, X=counts)


def _with_annotations(whole: AnnData, raw: RawFiles) -> AnnData:
    """The samples that the tables about samples name, with their annotations."""
    rules = raw.entry.read
    if not rules.about:
        return whole
    paths = raw.paths(rules.about)
    key = rules.about_key or None
    obs, named = join_annotations(obs_of(whole), paths, origin_of(whole), key)
    return take_samples(changed(whole, obs=obs), named)


def _with_sample_names(whole: AnnData, raw: RawFiles) -> AnnData:
    """The samples under the names that the rules give them."""
    reference = raw.entry.read.samples
    if not reference:
        return whole
    if reference == "numbered":
        names = numbered(whole.n_obs)
    else:
        names = raw.texts(reference)
    sample_names = np.array(names, dtype=object)
    obs = obs_of(whole).set_axis(sample_names)
    return changed(whole, obs=obs)


def _with_labels(whole: AnnData, raw: RawFiles) -> AnnData:
    """The samples that are kept and labelled, with the columns that every set has."""
    entry = raw.entry
    rules = entry.read
    label = _sample_texts(rules.label, whole, raw)
    kept = np.array([text is not None and text == text for text in label])
    for reference, values in rules.keep.items():
        kept &= np.isin(_sample_texts(reference, whole, raw).astype(str), values)
    if rules.labels_only:
        kept &= np.isin(label.astype(str), list(rules.labels))
    if entry.public:
        names = np.array([rules.labels.get(text, text) for text in label], dtype=object)
        obs = pd.DataFrame(index=whole.obs_names)
    else:
        names = harmonise(label, entry.name)
        kept &= np.array([isinstance(name, str) for name in names])
        others = obs_of(whole).drop(columns=[LABEL], errors="ignore")
        obs = pd.DataFrame(others).copy()
    if not kept.any():
        raise DataError(f"no sample of {entry.name} is left with a label")
    obs[LABEL] = names
    obs["dataset"] = rules.dataset or entry.name
    obs["platform"] = entry.technology
    for column, reference in rules.columns.items():
        texts = _sample_texts(reference, whole, raw)
        obs[column] = ["nan" if text is None else text for text in texts]
    obs["cell_type_original"] = label
    if rules.original:
        obs["cell_type_original"] = _sample_texts(rules.original, whole, raw)
    labelled = take_samples(changed(whole, obs=obs), kept)
    if not rules.at_most:
        return labelled
    return take_samples(labelled, _drawn(obs_of(labelled), rules.at_most))


def _sample_texts(reference: str, whole: AnnData, raw: RawFiles) -> np.ndarray:
    """The texts of a reference, one per sample."""
    if reference.startswith("="):
        return np.full(whole.n_obs, reference[1:], dtype=object)
    if reference.startswith("~"):
        parts = [
            _part_of_name(name, reference[1:], raw.entry) for name in whole.obs_names
        ]
        return np.array(parts, dtype=object)
    if ":" not in reference:
        source = f"the table about the samples of {raw.entry.name}"
        check_column(obs_of(whole), reference, source)
        return labels_of(whole, reference).to_numpy()
    texts = np.array(raw.texts(reference), dtype=object)
    if len(texts) != whole.n_obs:
        raise DataError(
            f"{reference} has {len(texts)} texts for the {whole.n_obs} samples of "
            f"{raw.entry.name}: correct its table in the registry"
        )
    return texts


def _part_of_name(sample_name: str, pattern: str, entry: Entry) -> str:
    match = re.search(pattern, sample_name)
    if match is None:
        raise DataError(
            f"the name of the sample {sample_name!r} of {entry.name} "
            f"does not match {pattern!r}"
        )
    return match[1]


def _drawn(obs: pd.DataFrame, at_most: int) -> np.ndarray:
    """Positions of at most so many samples per class, the same ones every time."""
    rng = np.random.default_rng(0)
    positions: list[int] = []
    for _, members in sorted(obs.groupby(LABEL, observed=True).indices.items()):
        positions += members[rng.permutation(len(members))[:at_most]].tolist()
    return np.sort(positions)


def _with_gene_names(whole: AnnData, raw: RawFiles) -> AnnData:
    """The genes that have a name and are kept, under the names that the rules give."""
    rules = raw.entry.read
    names: list[str | None] = list(whole.var_names)
    if rules.genes:
        names = raw.texts(rules.genes)
    if rules.probes:
        probes, genes = [raw.texts(reference) for reference in rules.probes]
        gene_of_probe = dict(zip(probes, genes, strict=True))
        names = [gene_of_probe.get(name) for name in names]
    if rules.strip_version:
        names = _renamed(names, lambda name: re.sub(r"^(ENS\w+)\.\d+$", r"\1", name))
    if rules.spelling:
        names = _renamed(names, _usual_spelling(raw))
    if rules.clean:
        names = _renamed(names, lambda name: name.strip().upper())
    kept = np.array([_is_kept(name, raw.entry) for name in names])
    if rules.drop_missing:
        X = in_memory(whole)
        if isinstance(X, np.ndarray):
            kept &= ~np.isnan(X).any(axis=0)
    renamed = changed(whole, genes=np.array(names, dtype=object))
    return take_genes(renamed, np.flatnonzero(kept))


def _renamed(names: list[str | None], rename: Callable[[str], str]) -> list[str | None]:
    """The names changed by a function; missing ones stay missing."""
    return [name if name is None else rename(name) for name in names]


def _usual_spelling(raw: RawFiles) -> Callable[[str], str]:
    """What puts names in upper case into the case of known names.

    A name that is not known gets its first letter in upper case, as mouse genes have.
    """
    rules = raw.entry.read
    known = [*rules.spelled.split(), *raw.texts(f"{rules.spelling}:0")]
    spelled = {name.upper(): name for name in known if name is not None}

    def spell(name: str) -> str:
        return spelled.get(name.upper(), name[:1] + name[1:].lower())

    return spell


def _is_kept(name: str | None, entry: Entry) -> bool:
    """Whether a gene of this name is part of the set."""
    rules = entry.read
    if not name:
        return False
    if rules.clean and (name in _NO_GENES or _SEVERAL_GENES in name):
        return False
    return not (rules.drop_genes and re.search(rules.drop_genes, name))


def _without_duplicates(whole: AnnData, how: str) -> AnnData:
    """The data with one column per name: the first, the strongest or the sum."""
    if how not in _DUPLICATES:
        raise DataError(f"duplicates={how!r}: use one of {', '.join(_DUPLICATES)}")
    if not duplicates(whole.var_names):
        return whole
    if how != "strongest":
        return merged_genes(whole, how)
    X = in_memory(whole)
    means = np.nanmean(X, axis=0) if isinstance(X, np.ndarray) else X.mean(axis=0)
    strongest_first = np.argsort(-np.asarray(means).ravel(), kind="stable")
    names = np.array(whole.var_names, dtype=str)[strongest_first]
    _, first = np.unique(names, return_index=True)
    return take_genes(whole, np.sort(strongest_first[first]))


def _complete_and_sorted(whole: AnnData) -> AnnData:
    """The genes that most samples have, without gaps, in alphabetical order."""
    X = in_memory(whole)
    if isinstance(X, np.ndarray):
        missing = np.isnan(X)
        kept = missing.mean(axis=0) <= _MOST_MISSING
        # In single precision, as values are stored, so that medians are values
        values = np.where(missing, np.nan, X)[:, kept].astype(np.float32)
        medians = np.nanmedian(values, axis=0)
        complete = np.where(missing[:, kept], medians, values)
        whole = changed(whole, X=complete, genes=whole.var_names[kept])
    order = np.argsort(np.array(whole.var_names, dtype=str), kind="stable")
    return take_genes(whole, order)


def _with_values(whole: AnnData, raw: RawFiles) -> AnnData:
    """The data with their values as they are stored, in single precision."""
    rules = raw.entry.read
    X = sp.csr_matrix(in_memory(whole))
    X.sort_indices()
    X.data = X.data.astype(np.float32)
    X.eliminate_zeros()
    if rules.four_digits:
        X.data = _FOUR_DIGITS[rules.four_digits](X.data)
    if rules.clean and X.nnz >= (1 - _SPARSE) * whole.n_obs * whole.n_vars:
        return changed(whole, X=X.toarray())
    return changed(whole, X=X)


def _by_factor(values: np.ndarray) -> np.ndarray:
    """Values, none of them zero, rounded to four significant digits in float32."""
    factor = np.float32(10) ** (np.float32(3) - np.floor(np.log10(np.abs(values))))
    return np.rint(values * factor) / factor


def _by_power(values: np.ndarray) -> np.ndarray:
    """The same through the leading digits, in double precision: other last bits."""
    power = np.float32(10) ** np.floor(np.log10(np.abs(values)))
    power = power.astype(np.float64)
    return (np.round(values / power, 3) * power).astype(np.float32)


_FOUR_DIGITS = {"factor": _by_factor, "power": _by_power}
