"""optirank.tl: the fields that are set, on every kind of AnnData."""

from __future__ import annotations

import inspect
import logging
import subprocess
import sys

import anndata
import numpy as np
import pandas as pd
import pytest
from optirank.workflow.grids import Grid
from training_cases import shorten_training

import optirank.tl
from example_model import N_QUERY, as_anndata, panel_names, trained_example, with_held_out
from optirank.datasets import DataError
from optirank.datasets.example import make_example
from optirank.model import MissingGenesError, Predictor, save
from optirank.workflow.predict import predict_file
from optirank.workflow.train import train as train_workflow


@pytest.fixture
def model():
    return trained_example()[0]


@pytest.fixture
def adata():
    return as_anndata(trained_example()[1])


def test_the_fields_that_are_set(model, adata):
    before = adata.copy()
    assert optirank.tl.annotate(adata, model) is None
    expected = Predictor(model, adata.var_names).predict(adata.X)
    assert adata.obs["optirank"].dtype == "category"
    assert adata.obs["optirank"].tolist() == expected.labels.tolist()
    np.testing.assert_array_equal(adata.obs["optirank_confidence"], expected.confidence)
    np.testing.assert_array_equal(adata.obsm["optirank_proba"], expected.probabilities)
    assert adata.uns["optirank"]["classes"].tolist() == model.classes_.tolist()
    missing = set(panel_names(model)) - set(adata.var_names)
    assert set(adata.uns["optirank"]["missing_genes"]) == missing
    losses = adata.uns["optirank"]["losses"]
    assert losses.index.tolist() == model.classes_.tolist()
    assert losses["n_missing"].max() > 0
    assert set(adata.obs) - set(before.obs) == {"optirank", "optirank_confidence"}
    assert (adata.X != before.X).nnz == 0


def test_probabilities_have_the_names_of_the_classes(model, adata):
    optirank.tl.annotate(adata, model)
    frame = adata.obsm["optirank_proba"]
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == model.classes_.tolist()
    assert frame.idxmax(axis=1).tolist() == adata.obs["optirank"].tolist()


def test_names_of_classes_that_files_cannot_hold_are_changed_in_columns_alone(
    model, adata, tmp_path
):
    names = ["_index", "b", "b/c", "b|c", "."]
    model.classes_ = np.array(names[: len(model.classes_)], dtype=object)
    optirank.tl.annotate(adata, model)
    columns = ["class _index", "b", "b|c", "b|c (2)", "class ."][: len(model.classes_)]
    assert adata.obsm["optirank_proba"].columns.tolist() == columns
    assert adata.uns["optirank"]["classes"].tolist() == model.classes_.tolist()
    del adata.obs["leiden"]
    plain = adata.copy()
    del plain.obsm["optirank_proba"], plain.uns["optirank"]
    plain.write_h5ad(tmp_path / "query.h5ad")
    predict_file(tmp_path / "query.h5ad", model, tmp_path / "out.h5ad")
    adata.write_h5ad(tmp_path / "annotated.h5ad")
    for path in ("annotated.h5ad", "out.h5ad"):
        found = anndata.read_h5ad(tmp_path / path).obsm["optirank_proba"]
        pd.testing.assert_frame_equal(found, adata.obsm["optirank_proba"])


def test_another_key_and_a_copy(model, adata):
    found = optirank.tl.annotate(adata, model, key_added="kind", copy=True)
    assert "kind" in found.obs
    assert "kind_proba" in found.obsm
    assert "kind" not in adata.obs
    assert not adata.uns


@pytest.mark.parametrize("storage", ["csr", "csc", "dense"])
@pytest.mark.parametrize("backed", [False, True])
def test_every_storage_gets_the_same(storage, backed, model, adata, tmp_path):
    optirank.tl.annotate(adata, model)
    other = as_anndata(trained_example()[1], storage)
    if backed:
        other.write_h5ad(tmp_path / "query.h5ad")
        other = anndata.read_h5ad(tmp_path / "query.h5ad", backed="r")
    optirank.tl.annotate(other, model, block_size=17)
    pd.testing.assert_frame_equal(other.obs, adata.obs)
    np.testing.assert_array_equal(other.obsm["optirank_proba"], adata.obsm["optirank_proba"])
    if backed:
        with pytest.raises(ValueError, match="to_memory"):
            optirank.tl.annotate(other, model, copy=True)
        other.file.close()


def test_it_says_what_predict_file_says(model, adata, tmp_path):
    adata.write_h5ad(tmp_path / "query.h5ad")
    predict_file(tmp_path / "query.h5ad", model, tmp_path / "out.h5ad", clusters="leiden")
    optirank.tl.annotate(adata, model, clusters="leiden")
    found = anndata.read_h5ad(tmp_path / "out.h5ad")
    pd.testing.assert_frame_equal(found.obs, adata.obs)
    pd.testing.assert_frame_equal(found.obsm["optirank_proba"], adata.obsm["optirank_proba"])
    assert set(found.uns["optirank"]) == set(adata.uns["optirank"])
    adata.write_h5ad(tmp_path / "annotated.h5ad")  # what was added can be stored


def test_a_layer_and_a_gene_column(model, adata):
    expected = optirank.tl.annotate(adata, model, copy=True)
    adata.layers["counts"], adata.X = adata.X.copy(), adata.X * 0
    adata.var["symbol"], adata.var_names = adata.var_names, adata.var["code"].to_numpy()
    optirank.tl.annotate(adata, model, layer="counts", gene_column="symbol")
    assert adata.obs["optirank"].tolist() == expected.obs["optirank"].tolist()


def test_withheld_labels_and_clusters(model, adata, tmp_path):
    save(with_held_out(model), tmp_path / "model.optirank")
    optirank.tl.annotate(adata, tmp_path / "model.optirank", target_error=0.05, clusters="leiden")
    limit = adata.uns["optirank"]["threshold"]
    withheld = adata.obs["optirank"] == "unassigned"
    assert (withheld == (adata.obs["optirank_confidence"] < limit)).all()
    assert withheld.any()
    assert "held-out samples" in adata.uns["optirank"]["threshold_reason"]
    labels = adata.obs.groupby("leiden", observed=True)["optirank_cluster_label"].nunique()
    assert (labels == 1).all()


def test_missing_genes_are_told_in_the_log(model, adata, caplog):
    with caplog.at_level(logging.WARNING, logger="optirank"):
        optirank.tl.annotate(adata, model)
    assert "genes are missing" in caplog.text


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"layer": "counts"}, DataError, "no layer 'counts': there are double"),
        ({"gene_column": "symbol"}, DataError, "no gene column 'symbol'"),
        ({"clusters": "louvain"}, DataError, "no column 'louvain'"),
        ({"threshold": -1}, ValueError, "between 0 and 1"),
        ({"block_size": 0}, ValueError, "block_size=0"),
        ({"gene_column": "code"}, MissingGenesError, "Missing genes"),
        ({"target_error": 0.1}, ValueError, "give a threshold instead"),
        ({"model": "nothing.optirank"}, FileNotFoundError, "nothing.optirank"),
    ],
)
def test_bad_input_changes_nothing(options, error, message, model, adata):
    with pytest.raises(error, match=message):
        optirank.tl.annotate(adata, **{"model": model, **options})
    assert "optirank" not in adata.obs
    assert not adata.obsm


def test_classes_that_lack_their_genes_can_be_left_out(model, adata):
    own = (model.reference_[0] | (model.coef_[0] != 0)) & ~(
        model.reference_[1:] | (model.coef_[1:] != 0)
    ).any(axis=0)
    adata = adata[:, ~adata.var_names.isin(model.feature_names_in_[own])].copy()
    share = Predictor(model, adata.var_names, max_missing=0.95).bound.losses[0].share_missing
    with pytest.raises(MissingGenesError, match="drop_classes"):
        optirank.tl.annotate(adata, model, max_missing=share - 0.01)
    optirank.tl.annotate(adata, model, max_missing=share - 0.01, drop_classes=True)
    gone = str(model.classes_[0])
    assert adata.uns["optirank"]["left_out_classes"].tolist() == [gone]
    assert gone not in adata.obs["optirank"].cat.categories
    assert "LEFT OUT" in adata.uns["optirank"]["notes"][0]


def test_without_missing_genes_the_record_is_empty_and_can_be_stored(model, tmp_path):
    names = model.feature_names_in_
    query = anndata.AnnData(np.eye(len(names))[:4], var=pd.DataFrame(index=names))
    optirank.tl.annotate(query, model)
    query.write_h5ad(tmp_path / "stored.h5ad")
    done = predict_file(tmp_path / "stored.h5ad", model, tmp_path / "again.h5ad")
    assert not done.missing
    found = anndata.read_h5ad(tmp_path / "again.h5ad").uns["optirank"]
    assert len(found["missing_genes"]) == len(found["notes"]) == 0


def test_after_importing_optirank_the_modules_are_there():
    code = "import optirank; optirank.tl.annotate; optirank.pl.panel; print('tl' in dir(optirank))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_without_x_a_layer_is_asked_for(model, adata):
    bare = anndata.AnnData(obs=adata.obs, var=adata.var, layers=dict(adata.layers))
    with pytest.raises(DataError, match="name one of its layers, double"):
        optirank.tl.annotate(bare, model)
    optirank.tl.annotate(bare, model, layer="double")
    assert len(bare.obs["optirank"]) == N_QUERY


def test_train_takes_the_options_of_the_workflow():
    ours, theirs = (
        dict(list(inspect.signature(one).parameters.items())[2:])
        for one in (optirank.tl.train, train_workflow)
    )
    for inner in ("grids", "n_folds"):  # chosen by the workflow
        del theirs[inner]
    assert list(ours) == ["layer", "gene_column", *theirs, "verbose"]
    assert all(ours[name].default == theirs[name].default for name in theirs)


@pytest.mark.slow
def test_train_then_annotate(monkeypatch):
    shorten_training(monkeypatch, grids=(Grid.of((0.05,), (2e-2,), (1e-2,)),))
    reference, query = (as_anndata(data) for data in make_example(400, 300))
    model = optirank.tl.train(reference, "cell_type")
    optirank.tl.annotate(query, model)
    truth = query.obs["cell_type"].astype(str)
    recalls = (query.obs["optirank"] == truth).groupby(truth).mean()
    assert model.training_summary_["balanced_accuracy"] > 0.8
    assert recalls.mean() > 0.85  # on another platform; guessing gives 0.2
    assert model.training_summary_["label"] == "cell_type"
    optirank.tl.annotate(query, model, "sure", target_error=0.2)  # training kept what this needs
    assert "held-out samples" in query.uns["sure"]["threshold_reason"]
    assert "optirank" not in reference.obs
    with pytest.raises(DataError, match="no column 'kind'"):
        optirank.tl.train(reference, "kind")


def test_what_is_no_anndata_is_refused_with_a_remedy(model, adata):
    frame = adata.to_df()
    with pytest.raises(TypeError, match=r"not a DataFrame: .*model\.predict\(frame\)"):
        optirank.tl.annotate(frame, model)
    with pytest.raises(TypeError, match=r"anndata\.AnnData"):
        optirank.tl.train(frame, "cell_type")
    with pytest.raises(TypeError, match="read_h5ad"):
        optirank.tl.annotate("query.h5ad", model)


def test_an_empty_query_is_refused(model, adata):
    with pytest.raises(DataError, match="holds no samples"):
        optirank.tl.annotate(adata[:0].copy(), model)


def test_clusters_without_a_clear_majority_are_heterogeneous(model, adata):
    optirank.tl.annotate(adata, model, clusters="leiden", min_share=1.0)
    labels = adata.obs["optirank_cluster_label"]
    for cluster, inside in adata.obs.groupby("leiden", observed=True):
        pure = inside["optirank"].nunique() == 1
        assert (labels[adata.obs["leiden"] == cluster] == "heterogeneous").all() != pure


def test_training_shows_progress_and_logs_what_it_does(monkeypatch, capsys, caplog):
    shorten_training(monkeypatch, grids=(Grid.of((0.1,), (5e-3,), (1e-2,)),))
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    reference = as_anndata(make_example(60, 20)[0].select_genes(np.arange(40)))
    seen = []
    with caplog.at_level(logging.INFO, "optirank"):
        optirank.tl.train(reference, "cell_type", progress=lambda *done: seen.append(done))
    assert "cross-validation" in capsys.readouterr().err
    assert "60 samples" in caplog.text
    assert seen[-1][0] == seen[-1][1]
    optirank.tl.train(reference, "cell_type", verbose=0)
    assert capsys.readouterr().err == ""
