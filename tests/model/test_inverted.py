"""Values of which less is more: the order of the query's genes tells it."""

from __future__ import annotations

import anndata
import numpy as np
import pytest
from scipy.sparse import csr_matrix

import optirank
from optirank.model.likeness import looks_inverted
from optirank.ranks.scoring import panel_ranks

PAIRS = [("vdx_er", "expo_er"), ("crcmsi_tcga", "crcmsi_gse27544")]


@pytest.mark.slow
@pytest.mark.parametrize(("reference", "query"), PAIRS)
def test_negated_values_of_a_real_query_look_inverted(reference, query, data_folder):
    trained = anndata.read_h5ad(data_folder / f"{reference}.h5ad")
    model = optirank.tl.train(trained, "cell_type", verbose=False).model
    given = anndata.read_h5ad(data_folder / f"{query}.h5ad")
    predictor = model.bind(given.var_names)
    profiles = predictor.likeness_score.profiles[:, predictor.match.present]
    X = csr_matrix(given.X).toarray()
    labels = given.obs["cell_type"].astype(str).to_numpy()

    def found(values):
        ranks = panel_ranks(values, predictor.columns)
        return looks_inverted(ranks.mean(axis=0), profiles)

    assert not found(X)
    assert not found(X[labels == labels[0]])
    assert found(-X)
    assert found(40 - X)
    rng = np.random.default_rng(0)
    shuffled = [found(X[:, rng.permutation(X.shape[1])]) for _ in range(20)]
    assert np.mean(shuffled) <= 0.1


def test_opposite_classes_and_few_genes_tell_nothing():
    order = np.linspace(-0.5, 0.5, 100)
    both = np.array([order, -order])
    assert not looks_inverted(-order, both)
    assert looks_inverted(-order, both[:1])
    rng = np.random.default_rng(0)
    found = [looks_inverted(rng.random(8), rng.random((1, 8))) for _ in range(500)]
    assert np.mean(found) < 0.1
