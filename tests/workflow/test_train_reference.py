"""A say in the reference set, and one small panel for several classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import optirank
import optirank.tl
from example_model import as_anndata
from optirank.datasets.errors import DataError
from optirank.workflow.gene_choice import reference_candidates
from optirank.workflow.grids import panel_grids
from optirank.workflow.preparation import prepare
from optirank.workflow.shrinking import shrink
from optirank.workflow.train import train, train_prepared
from training_cases import SINGLE, shorten_training, small


def reference_names(model):
    return set(model.feature_names_in_[model.reference_.any(axis=0)])


@pytest.fixture(scope="module")
def data():
    return small(100, 110)


def test_the_reference_is_chosen_from_the_genes_named(data, tmp_path):
    allowed = [str(name) for name in data.gene_names[::3]]
    result = train(data, "cell_type", reference_from=allowed, grids=SINGLE, n_folds=2)
    assert reference_names(result.model) <= set(allowed)
    assert (result.model.coef_[:, ~np.isin(result.model.feature_names_in_, allowed)] != 0).any()
    assert any("the reference set is chosen from" in note for note in result.notes)
    optirank.save(result.model, tmp_path / "model.optirank")
    again = optirank.load(tmp_path / "model.optirank")
    assert reference_names(again) == reference_names(result.model)
    assert set(again.reference_candidates) <= set(allowed)


def test_genes_are_kept_out_of_the_reference_by_pattern(data):
    first = str(data.gene_names[0])
    pattern = first[:2] + "*"
    result = train(data, "cell_type", not_in_reference=[pattern], grids=SINGLE, n_folds=2)
    kept_out = {str(name) for name in data.gene_names if str(name).startswith(first[:2])}
    assert not reference_names(result.model) & kept_out


def test_candidates_are_named_matched_and_refused_in_words():
    names = ["MT-1", "MT-2", "A", "B", "C"]
    positions, notes = reference_candidates(names, "file", ["A", "b", "Z"], [])
    assert positions.tolist() == [2, 3]
    assert any("1 genes for the reference set are missing: Z" in note for note in notes)
    positions, notes = reference_candidates(names, "file", [], ["MT-*", "Q*"])
    assert positions.tolist() == [2, 3, 4]
    assert any("no gene has a name such as 'Q*'" in note for note in notes)
    with pytest.raises(DataError, match="none of the genes that the reference set may be chosen"):
        reference_candidates(names, "file", ["X"], [])
    with pytest.raises(DataError, match="no gene is left that may be in the reference set"):
        reference_candidates(names, "file", ["MT-1"], ["MT-*"])
    assert reference_candidates(names, "file", [], []) == (None, [])


def test_a_fixed_reference_leaves_nothing_to_choose(data):
    name = str(data.gene_names[0])
    with pytest.raises(DataError, match="cannot be chosen: leave out"):
        prepare(data, "cell_type", include=[name], not_in_reference=["MT-*"])


def test_a_panel_of_several_classes_keeps_to_its_size_and_shows_other_sizes(data):
    prepared = prepare(data, "cell_type", n_folds=2)
    result = train_prepared(prepared, grids=panel_grids(20), panel_size=20, budget=300)
    assert len(result.genes) <= 20
    assert result.model.shared_reference
    assert (result.model.reference_ == result.model.reference_[0]).all()
    sizes = result.path["n_genes"]
    assert sizes.min() < 20 < sizes.max() + 5
    assert result.balanced_accuracy > 0.7
    assert hasattr(result.model, "calibration_")


@pytest.mark.slow
def test_a_smaller_panel_is_trained_from_a_model(data, tmp_path):
    model = train(data, "cell_type", grids=SINGLE, n_folds=2).model
    table = pd.DataFrame(data.X if isinstance(data.X, np.ndarray) else data.X.toarray())
    table.columns = [str(name) for name in data.gene_names]
    table.insert(0, "cell_type", data.obs["cell_type"].to_numpy())
    table.insert(0, "sample", [str(name) for name in data.sample_names])
    table.to_csv(tmp_path / "data.csv", index=False)
    options = {"annotations": ["cell_type"], "genes_in": "columns"}
    small_one = shrink(model, tmp_path / "data.csv", 15, budget=200, **options)
    assert small_one.n_genes <= 15
    curve = small_one.curve()
    assert curve["selected"].sum() == 1
    assert (np.diff(curve["n_genes"]) >= 0).all()


def test_a_column_of_var_names_the_candidates(data, monkeypatch):
    pytest.importorskip("anndata")
    shorten_training(monkeypatch, grids=SINGLE, n_folds=2)
    adata = as_anndata(data)
    adata.var["stable"] = np.arange(adata.n_vars) % 3 == 0
    adata.var["score"] = 1.0
    model = optirank.tl.train(adata, "cell_type", reference_from="stable", verbose=0)
    assert reference_names(model) <= set(adata.var_names[adata.var["stable"]])
    with pytest.raises(DataError, match="has no column 'unknown'"):
        optirank.tl.train(adata, "cell_type", reference_from="unknown", verbose=0)
    with pytest.raises(DataError, match="is of type float64"):
        optirank.tl.train(adata, "cell_type", not_in_reference="score", verbose=0)
