"""Genes outside the panel that a model knows: which data have them, and for whom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from model_cases import full, make_panel

from example_model import telling_model, telling_pair, trained_example
from optirank.model.likeness import FurtherGenes
from optirank.verbs.training import TrainingOptions, train
from profiles import take_genes


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


def test_smaller_subset_and_narrow_keep_the_further_genes():
    model = full(make_panel(n_classes=4))
    further = model.further
    assert model.smaller(3).further is further
    assert model.narrow().further is further
    part = model.subset(model.classes[[2, 0]]).further
    np.testing.assert_array_equal(part.genes, further.genes)
    np.testing.assert_array_equal(part.means, further.means[[0, 2]])


def test_genes_of_the_panel_in_use_have_no_part():
    further = FurtherGenes(
        np.array(["A", "B", "C", "D"], dtype=object),
        np.arange(8, dtype=np.float16).reshape(2, 4) / 16,
    )
    columns, means = further.found_among(["x", "d", "B", "A"], used=["A", "x"])
    assert columns.tolist() == [2, 1]  # B, and D in another case
    np.testing.assert_array_equal(means, further.means[:, [1, 3]])


def test_means_that_do_not_fit_are_refused():
    names = np.array(["A", "B"], dtype=object)
    with pytest.raises(ValueError, match="do not fit the 2 further genes"):
        FurtherGenes(names, np.zeros((2, 3), np.float16))
    with pytest.raises(ValueError, match="not all within 1/2"):
        FurtherGenes(names, np.ones((2, 2), np.float16))
    with pytest.raises(ValueError, match="2 classes do not fit the model's 3"):
        replace(make_panel(), further=FurtherGenes(names, np.zeros((2, 2), np.float16)))
