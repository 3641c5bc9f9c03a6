"""Training where few genes are preferred: several classes have one panel, all of it used."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from optirank.workflow.explain import describe_model
from optirank.workflow.grids import make_families, make_grids, one_panel_grids
from optirank.workflow.report import page
from optirank.workflow.train import train
from training_cases import small


@pytest.mark.parametrize("n_classes", [2, 3])
def test_grids_of_one_panel_are_nested_and_end_with_one_setting(n_classes):
    grids = one_panel_grids(n_classes)
    for wide, narrow in pairwise(grids):
        assert wide.settings[: len(narrow)] == narrow.settings
        assert len(narrow) < len(wide)
    assert len(grids[-1]) == 1
    (family,) = make_families(grids[0], None)
    assert family.fits_together(n_classes) == (n_classes > 2)
    assert family.whole_panel


@pytest.mark.parametrize("method", ["auto", "optirank"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_panel_is_learned_where_few_genes_are_preferred(method, n_classes):
    assert make_grids(method, n_classes, "genes") == one_panel_grids(n_classes)
    assert make_grids(method, n_classes, "accuracy") == make_grids(method, n_classes)
    assert make_grids("rank-lr", n_classes, "genes") == make_grids("rank-lr", n_classes)


def test_two_classes_use_all_of_their_panel():
    data = small()
    kept = np.isin(data.labels("cell_type"), np.unique(data.labels("cell_type"))[:2])
    found = train(data.select_samples(kept), "cell_type", prefer="genes", n_folds=2, budget=600)
    np.testing.assert_array_equal(found.model.reference_[0], found.model.genes_)
    assert found.balanced_accuracy > 0.8


def test_a_training_for_few_genes_uses_all_of_one_panel():
    found = train(small(), "cell_type", prefer="genes", n_folds=2, budget=600)
    model = found.model
    assert found.settings["shared_reference"]
    assert found.settings["whole_panel"]
    assert found.plan.n_platforms == model.n_platforms == 5
    np.testing.assert_array_equal(model.reference_, np.tile(model.genes_, (len(model.classes_), 1)))
    np.testing.assert_array_equal((model.coef_ != 0).any(axis=0), model.genes_)
    assert len(found.genes) < 100
    assert found.balanced_accuracy > 0.7
    assert any("simulated platforms" in line for line in found.plan.lines())
    assert "the reference set is the whole panel" in page(found)
    assert "whole_panel True" in str(describe_model(model).lines)


def test_a_time_too_short_for_all_samples_still_gives_a_model():
    found = train(small(300), "cell_type", prefer="genes", budget=0.01)
    assert found.balanced_accuracy > 0.5
