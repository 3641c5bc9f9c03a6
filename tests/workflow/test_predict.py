"""predict_file: what is written, from which files, and that nothing is written when it fails."""

from __future__ import annotations

import sys

import anndata
import numpy as np
import pandas as pd
import pytest

from example_model import N_QUERY, as_anndata, panel_names, with_held_out
from optirank.datasets import DataError
from optirank.datasets.writing import write_table
from optirank.model import (
    Predictor,
    fit_calibration,
    fit_rejection,
    save,
    subset,
)
from optirank.workflow.predict import predict_file
from optirank.workflow.withholding import rejection_threshold


def test_a_csv_has_names_then_label_confidence_and_a_probability_a_class(
    model, query, query_file, tmp_path
):
    save(model, tmp_path / "model.optirank")
    done = predict_file(query_file, tmp_path / "model.optirank", tmp_path / "labels.csv")
    table = pd.read_csv(tmp_path / "labels.csv")
    classes = model.classes_.tolist()
    probabilities = [f"probability_{label}" for label in classes]
    assert table.columns.tolist() == ["sample", "label", "confidence", *probabilities]
    assert table["sample"].tolist() == query.sample_names.tolist()
    expected = Predictor(model, query.gene_names).predict(query.X)
    assert table["label"].tolist() == expected.labels.tolist()
    np.testing.assert_allclose(table[probabilities], expected.probabilities, atol=1e-6)
    np.testing.assert_allclose(table["confidence"], table[probabilities].max(axis=1))
    assert done.n_samples == N_QUERY == sum(done.counts.values())
    assert list(done.counts.values()) == sorted(done.counts.values(), reverse=True)
    assert done.mean_confidence == pytest.approx(expected.confidence.mean())
    assert done.threshold is None
    assert done.clusters is None


@pytest.mark.parametrize("block_size", [1, 7, N_QUERY])
def test_the_size_of_the_blocks_does_not_matter(block_size, model, query_file, tmp_path):
    told = []
    predict_file(query_file, model, tmp_path / "whole.csv")
    predict_file(
        query_file,
        model,
        tmp_path / "blocks.csv",
        block_size=block_size,
        progress=lambda done, total: told.append((done, total)),
    )
    assert (tmp_path / "blocks.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert len(told) == -(-N_QUERY // block_size)
    assert told[-1] == (N_QUERY, N_QUERY)


def test_a_file_of_the_panel_alone_gets_the_same_labels(model, query, query_file, tmp_path):
    predict_file(query_file, model, tmp_path / "whole.csv")
    genes = [gene for gene in panel_names(model) if gene in set(query.gene_names)]
    as_anndata(query.select_genes(genes)).write_h5ad(tmp_path / "panel.h5ad")
    predict_file(tmp_path / "panel.h5ad", model, tmp_path / "panel.csv")
    assert (tmp_path / "panel.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_every_format_gets_the_same_labels(model, query, query_file, tmp_path):
    predict_file(query_file, model, tmp_path / "expected.csv")
    expected = (tmp_path / "expected.csv").read_bytes()

    def check(path, **options):
        predict_file(path, model, tmp_path / "found.csv", **options)
        assert (tmp_path / "found.csv").read_bytes() == expected

    for storage in ("csc", "dense"):
        adata = as_anndata(query, storage)
        adata.var_names, adata.var["symbol"] = adata.var["code"].to_numpy(), adata.var_names
        adata.X, adata.layers["counts"] = adata.X * 0, adata.X
        adata.write_h5ad(tmp_path / f"{storage}.h5ad")
        check(tmp_path / f"{storage}.h5ad", gene_column="symbol", layer="counts")
    write_table(query, tmp_path / "rows.csv", genes_in="rows")
    check(tmp_path / "rows.csv", genes_in="rows")
    write_table(query, tmp_path / "columns.csv")
    about = query.obs.columns.tolist()
    check(tmp_path / "columns.csv", genes_in="columns", annotations=about)


def test_names_with_commas_quotes_and_line_breaks_survive_a_csv(model, query, tmp_path):
    adata = as_anndata(query)[:4].copy()
    names = ["a,b", 'say "x"', "two\nlines", "plain"]
    adata.obs_names = names
    adata.obs["leiden"] = pd.Categorical(["1,2", None, "1,2", None])
    adata.write_h5ad(tmp_path / "query.h5ad")
    model.classes_ = np.array(["a, b", *model.classes_[1:]], dtype=object)
    predict_file(tmp_path / "query.h5ad", model, tmp_path / "labels.csv", clusters="leiden")
    table = pd.read_csv(tmp_path / "labels.csv")
    assert table["sample"].tolist() == names
    assert "probability_a, b" in table
    assert table["cluster"].fillna("none").tolist() == ["1,2", "none"] * 2
    assert table["cluster_share"].isna().tolist() == [False, True] * 2


def test_an_h5ad_is_a_copy_with_the_fields_of_annotate(model, query_file, tmp_path):
    before = query_file.read_bytes()
    out = tmp_path / "labelled.h5ad"
    predict_file(query_file, model, out, clusters="leiden", threshold=0.4)
    assert query_file.read_bytes() == before
    found, original = anndata.read_h5ad(out), anndata.read_h5ad(query_file)
    added = ["optirank", "optirank_confidence", "optirank_cluster_label"]
    assert found.obs.columns.tolist() == [*original.obs.columns, *added]
    pd.testing.assert_frame_equal(found.obs[original.obs.columns], original.obs)
    assert (found.X != original.X).nnz == 0
    assert (found.layers["double"] != original.layers["double"]).nnz == 0
    assert found.obsm["optirank_proba"].shape == (N_QUERY, len(model.classes_))
    np.testing.assert_allclose(found.obsm["optirank_proba"].sum(axis=1), 1.0)
    assert found.uns["optirank"]["classes"].tolist() == model.classes_.tolist()
    assert found.uns["optirank"]["threshold"] == 0.4
    assert "unassigned" in set(found.obs["optirank"])
    predict_file(out, model, tmp_path / "again.h5ad")  # over what is there already
    again = anndata.read_h5ad(tmp_path / "again.h5ad")
    assert again.obs.columns.tolist() == found.obs.columns.tolist()
    assert "unassigned" not in set(again.obs["optirank"])


def test_parquet_needs_pyarrow_and_says_so(model, query_file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'optirank\[parquet\]'"):
        predict_file(query_file, model, tmp_path / "labels.parquet")


def test_parquet_holds_what_csv_holds(model, query_file, tmp_path):
    pytest.importorskip("pyarrow")
    for name in ("labels.parquet", "labels.csv"):
        predict_file(query_file, model, tmp_path / name, clusters="leiden", block_size=7)
    frame, table = (
        pd.read_parquet(tmp_path / "labels.parquet"),
        pd.read_csv(tmp_path / "labels.csv"),
    )
    pd.testing.assert_frame_equal(frame.astype({"cluster": int}).round(6), table)


def test_missing_genes_are_named_and_the_loss_of_each_class_told(
    model, query, query_file, tmp_path
):
    done = predict_file(query_file, model, tmp_path / "labels.csv")
    assert set(done.missing) == set(panel_names(model)) - set(query.gene_names)
    assert any(done.missing[0] in note for note in done.notes)
    assert done.losses["label"].tolist() == model.classes_.tolist()
    assert done.losses["n_missing"].max() >= 1


def test_other_spellings_are_matched_and_told(model, query, tmp_path):
    adata = as_anndata(query)
    adata.var_names = adata.var_names.str.lower()
    adata.write_h5ad(tmp_path / "lower.h5ad")
    options = {"match_case": "ignore"}
    done = predict_file(tmp_path / "lower.h5ad", model, tmp_path / "labels.csv", **options)
    assert "matched in another case" in done.notes[0]


def test_scaled_values_are_told_and_logarithms_are_not(model, query, tmp_path):
    adata = as_anndata(query, "dense")
    told = {}
    for name, change in (
        ("counts", lambda X: X),
        ("log", np.log1p),
        ("scaled", lambda X: (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)),
    ):
        adata.X = change(np.asarray(as_anndata(query, "dense").X, dtype=float))
        adata.write_h5ad(tmp_path / f"{name}.h5ad")
        done = predict_file(tmp_path / f"{name}.h5ad", model, tmp_path / "labels.csv")
        told[name] = [note for note in done.notes if "scaled, centred" in note]
    assert not told["counts"]
    assert not told["log"]
    assert "are negative, and none were in the training data" in told["scaled"][0]


def test_confidences_that_were_not_calibrated_are_called_so(model, query, query_file, tmp_path):
    done = predict_file(query_file, model, tmp_path / "labels.csv")
    assert "not calibrated" in done.notes[-1]
    scores = Predictor(model, query.gene_names).scores(query.X)
    model.calibration_ = fit_calibration(scores, query.labels("cell_type"), model.classes_)
    done = predict_file(query_file, model, tmp_path / "labels.csv")
    assert not any("not calibrated" in note for note in done.notes)


def test_samples_without_counts_are_named(model, query, tmp_path):
    adata = as_anndata(query, "dense")
    adata.X[3] = 0
    adata.write_h5ad(tmp_path / "query.h5ad")
    done = predict_file(tmp_path / "query.h5ad", model, tmp_path / "labels.csv")
    assert "1 samples have none of the panel's genes" in done.notes[-1]
    assert query.sample_names[3] in done.notes[-1]


def test_labels_are_withheld_only_when_asked_for(model, query_file, tmp_path):
    done = predict_file(query_file, model, tmp_path / "all.csv")
    assert "unassigned" not in done.counts
    done = predict_file(query_file, model, tmp_path / "some.csv", threshold=0.4)
    table, every = (pd.read_csv(tmp_path / name) for name in ("some.csv", "all.csv"))
    unsure = every["confidence"] < 0.4
    assert 0 < unsure.sum() < N_QUERY
    assert (table["label"] == every["label"].where(~unsure, "unassigned")).all()
    assert done.counts["unassigned"] == unsure.sum()
    assert "asked for a confidence of at least 0.4" in done.notes[-1]


def test_a_target_error_finds_its_threshold_in_the_held_out_samples(model, query_file, tmp_path):
    held_out = with_held_out(model).training_summary_["held_out"]
    expected = fit_rejection(held_out["confidence"], held_out["correct"], 0.05)
    save(model, tmp_path / "model.optirank")
    done = predict_file(
        query_file, tmp_path / "model.optirank", tmp_path / "labels.csv", target_error=0.05
    )
    assert done.threshold == expected.threshold
    assert expected.reason in done.notes[-1]
    model.rejection_ = fit_rejection([0.7, *[0.9] * 40], [False, *[True] * 40], 0.05)
    assert rejection_threshold(model, None, 0.05)[0] == 0.9
    assert rejection_threshold(model, None, 0.2) == rejection_threshold(
        with_held_out(model), None, 0.2
    )


def test_a_target_error_needs_held_out_samples(model):
    with pytest.raises(ValueError, match="give a threshold instead"):
        rejection_threshold(model, None, 0.05)
    some = subset(with_held_out(model), model.classes_[:3])  # other classes, other errors
    with pytest.raises(ValueError, match="give a threshold instead"):
        rejection_threshold(some, None, 0.05)


def test_a_file_without_samples_is_refused(model, query, tmp_path):
    as_anndata(query)[:0].write_h5ad(tmp_path / "empty.h5ad")
    with pytest.raises(DataError, match="holds no samples"):
        predict_file(tmp_path / "empty.h5ad", model, tmp_path / "labels.csv")
    assert not (tmp_path / "labels.csv").exists()
