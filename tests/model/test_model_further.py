"""Genes outside the panel that training stores, and where it stores none."""

from __future__ import annotations

import numpy as np

from example_model import telling_model, telling_pair, trained_example
from optirank.verbs.training import TrainingOptions
from profiles import take_genes, train


def test_training_stores_the_mean_ranks_of_genes_outside_the_panel():
    model = telling_model()
    data, _ = telling_pair()
    further = model.further
    assert further is not None
    assert not set(further.genes) & set(model.genes)
    assert further.means.shape == (len(model.classes), len(further.genes))
    names = [str(gene) for gene in data.var_names]
    values = data.X.toarray()[:, [names.index(gene) for gene in further.genes]]
    above = (values[:, :, None] > values[:, None, :]).sum(axis=2)
    below = (values[:, :, None] < values[:, None, :]).sum(axis=2)
    ranks = (above - below) / (2 * values.shape[1])
    labels = data.obs["cell_type"].astype(str).to_numpy()
    expected = [ranks[labels == label].mean(axis=0) for label in model.classes]
    np.testing.assert_allclose(further.means, expected, atol=3e-4)


def test_data_of_an_assay_store_nothing():
    data, _ = telling_pair()
    few = take_genes(data, data.var_names[:70])
    options = TrainingOptions(label="cell_type", n_genes=30, n_jobs=1)
    assert train(few, options).model.further is None


def test_genes_that_tell_no_class_are_not_stored():
    assert trained_example()[0].further is None  # its other genes are noise
