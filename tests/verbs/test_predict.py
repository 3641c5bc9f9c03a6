"""Labels of files: what is written, from which files, what is withheld and what
is said.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace

import anndata
import numpy as np
import pandas as pd
import pytest

from example_model import N_QUERY, as_anndata, panel_names
from expression_files import write_rows, write_table
from optirank import tl
from optirank.datasets import DataError
from optirank.model import MissingGenesError, save
from optirank.verbs import labelling
from optirank.verbs.label_files import predict_file, write_record
from optirank.verbs.labelling import NO_INFORMATION
from optirank.verbs.options import PredictOptions
from profiles import changed, label_profiles, take_genes, take_samples


def with_panel(model, **changes):
    """The model with something else stored beside the weights it uses."""
    panels = dict(model.panels)
    panels[model.n_genes] = replace(model.panel, **changes)
    return replace(model, panels=panels)


def options(**given) -> PredictOptions:
    return PredictOptions(**given)


def test_a_csv_has_names_then_label_confidence_and_a_probability_per_class(
    model, query, query_file, tmp_path
):
    save(model, tmp_path / "model.optirank")
    done = predict_file(
        query_file, tmp_path / "model.optirank", tmp_path / "labels.csv"
    )
    table = pd.read_csv(tmp_path / "labels.csv")
    probabilities = [f"probability_{label}" for label in model.classes]
    last = "withheld_because"
    assert table.columns.tolist() == [
        "sample",
        "label",
        "confidence",
        *probabilities,
        "likeness",
        last,
    ]
    assert table[last].isna().all()
    assert table["sample"].tolist() == query.obs_names.tolist()
    expected = model.predict(query.X, query.var_names)
    assert table["label"].tolist() == expected.tolist()
    np.testing.assert_allclose(
        table[probabilities],
        model.predict_proba(query.X, query.var_names),
        atol=5.1e-5,
    )
    assert sum(done.counts().values()) == N_QUERY
    assert list(done.counts().values()) == sorted(done.counts().values(), reverse=True)
    assert "threshold" not in done.record
    assert not done.withheld.any()


@pytest.mark.parametrize("size", [1, 7])
def test_the_size_of_the_blocks_does_not_matter(
    size, model, query_file, tmp_path, monkeypatch
):
    told = []
    predict_file(query_file, model, tmp_path / "whole.csv")
    monkeypatch.setattr(labelling, "block_rows", lambda n_genes: size)
    progress = lambda done, total: told.append((done, total))  # noqa: E731
    predict_file(query_file, model, tmp_path / "blocks.csv", progress=progress)
    assert (tmp_path / "blocks.csv").read_bytes() == (
        tmp_path / "whole.csv"
    ).read_bytes()
    assert told[-1] == (N_QUERY, N_QUERY)
    assert len(told) == -(-N_QUERY // size)


def test_every_format_and_the_panel_alone_get_the_same_labels(
    model, query, query_file, tmp_path
):
    predict_file(query_file, model, tmp_path / "expected.csv")
    expected = (tmp_path / "expected.csv").read_bytes()

    def check(path, **reading):
        predict_file(path, model, tmp_path / "found.csv", **reading)
        assert (tmp_path / "found.csv").read_bytes() == expected

    for storage in ("csc", "dense"):
        as_anndata(query, storage).write_h5ad(tmp_path / f"{storage}.h5ad")
        check(tmp_path / f"{storage}.h5ad")
    check(tmp_path / "csc.h5ad", layer="double")
    write_rows(query, tmp_path / "rows.tsv")
    check(tmp_path / "rows.tsv", genes_in="rows")
    write_table(query, tmp_path / "columns.csv")
    check(tmp_path / "columns.csv")
    genes = [gene for gene in panel_names(model) if gene in set(query.var_names)]
    as_anndata(take_genes(query, genes)).write_h5ad(tmp_path / "panel.h5ad")
    check(tmp_path / "panel.h5ad")


@pytest.mark.parametrize("end", ["csv", "parquet", "h5ad"])
def test_every_output_has_the_same(end, model, query_file, tmp_path):
    if end == "parquet":
        pytest.importorskip("pyarrow")
    done = predict_file(
        query_file, model, tmp_path / f"out.{end}", options(clusters="leiden")
    )
    if end == "h5ad":
        found = anndata.read_h5ad(tmp_path / "out.h5ad")
        assert found.obs["optirank"].tolist() == done.labels.tolist()
        likeness = done.samples["likeness"].to_numpy()
        np.testing.assert_array_equal(found.obs["optirank_likeness"], likeness)
        np.testing.assert_array_equal(found.obsm["optirank_proba"], done.probabilities)
        assert found.uns["optirank"]["notes"].tolist() == [*done.warnings, *done.notes]
        return
    read = pd.read_csv if end == "csv" else pd.read_parquet
    table = read(tmp_path / f"out.{end}")
    assert table["label"].tolist() == done.labels.tolist()
    for name in ("confidence", "likeness"):
        np.testing.assert_allclose(table[name], done.samples[name], atol=5.1e-5)
    record = json.loads(write_record(done, tmp_path / "x").read_text("utf-8"))
    assert record["clusters"] == done.clusters.to_dict("records")
    assert set(done.clusters["cluster"]) == {"0", "1", "2", "3"}


def test_names_with_commas_and_quotes_survive_a_csv(model, query, tmp_path):
    adata = as_anndata(query)
    adata.obs_names = [f'cell "{k}", one' for k in range(adata.n_obs)]
    adata.write_h5ad(tmp_path / "odd.h5ad")
    predict_file(tmp_path / "odd.h5ad", model, tmp_path / "odd.csv")
    assert (
        pd.read_csv(tmp_path / "odd.csv")["sample"].tolist() == adata.obs_names.tolist()
    )


def test_files_and_anndata_get_the_same_labels_and_the_same_notes(
    model, query_file, tmp_path
):
    for given in ({}, {"adapt": True}, {"threshold": 0.7}):
        done = predict_file(
            query_file, model, tmp_path / "labels.csv", options(**given)
        )
        adata = anndata.read_h5ad(query_file)
        tl.annotate(adata, model, **given)
        assert adata.obs["optirank"].tolist() == done.labels.tolist()
        assert list(adata.uns["optirank"]["notes"]) == [*done.warnings, *done.notes]


def test_target_errors_and_thresholds_that_cannot_be_are_refused(model, query):
    with pytest.raises(ValueError, match="cannot show it"):
        label_profiles(query, model, options(target_error=0.0001))
    with pytest.raises(ValueError, match="not both"):
        options(target_error=0.1, threshold=0.5)
    with pytest.raises(ValueError, match=r"threshold=2"):
        options(threshold=2)
    for target in (0, 1, 2.0):
        with pytest.raises(ValueError, match=f"target_error={target}"):
            options(target_error=target)


def test_a_threshold_of_zero_is_in_the_record(model, query):
    record = label_profiles(query, model, options(threshold=0.0)).record
    assert record["options"] == {"threshold": 0.0}
    assert record["threshold"] == 0.0


def test_withheld_labels_are_called_unassigned_and_counted(model, query_file, tmp_path):
    done = predict_file(query_file, model, tmp_path / "l.csv", options(threshold=0.9))
    hidden = done.confidence < 0.9
    assert 0 < hidden.sum() < N_QUERY
    assert (done.labels[hidden] == "unassigned").all()
    assert f"{hidden.sum()} of {N_QUERY} labels" in " ".join(done.notes)


def test_a_sample_s_label_does_not_depend_on_the_others_unless_adapted(
    model, query, tmp_path
):
    as_anndata(query)[:5].write_h5ad(tmp_path / "few.h5ad")
    few = predict_file(tmp_path / "few.h5ad", model, tmp_path / "few.csv")
    whole = model.predict_proba(query.X, query.var_names)
    np.testing.assert_allclose(few.probabilities, whole[:5])


def test_missing_genes_are_named_and_too_many_refused(model, query, tmp_path):
    panel = [gene for gene in panel_names(model) if gene in set(query.var_names)]
    rest = [gene for gene in query.var_names if gene not in panel]
    as_anndata(take_genes(query, [*rest, *panel[2:]])).write_h5ad(
        tmp_path / "some.h5ad"
    )
    done = predict_file(tmp_path / "some.h5ad", model, tmp_path / "l.csv")
    assert set(panel[:2]) <= set(done.missing)
    assert any("genes are missing" in note for note in done.notes)
    as_anndata(take_genes(query, [*rest, *panel[:1]])).write_h5ad(tmp_path / "few.h5ad")
    (tmp_path / "l.csv").unlink()
    with pytest.raises(MissingGenesError, match="Missing genes"):
        predict_file(tmp_path / "few.h5ad", model, tmp_path / "l.csv")
    assert not (tmp_path / "l.csv").exists()


def test_bad_input_is_refused_and_nothing_is_written(
    model, query, query_file, tmp_path
):
    as_anndata(query)[:0].write_h5ad(tmp_path / "empty.h5ad")
    write_rows(query, tmp_path / "rows.csv")
    (tmp_path / "torn.h5ad").write_bytes(query_file.read_bytes()[:20_000])
    infinite = as_anndata(query, "dense")
    infinite.X[3, infinite.var_names.isin(panel_names(model))] = np.nan
    infinite.write_h5ad(tmp_path / "infinite.h5ad")
    cases = [
        ("empty.h5ad", "l.csv", {}, "holds no samples"),
        ("nowhere.h5ad", "l.csv", {}, "does not exist"),
        ("torn.h5ad", "l.csv", {}, "cannot be read|not an HDF5"),
        ("infinite.h5ad", "l.csv", {}, "samples 1 to 60"),
        ("query.h5ad", "l.xlsx", {}, "labels are written as"),
        ("rows.csv", "l.h5ad", {"genes_in": "rows"}, "not one .h5ad"),
        (
            "query.h5ad",
            "l.csv",
            {"gene_column": "code"},
            "genes are present|not there|missing",
        ),
    ]
    for name, out, reading, message in cases:
        with pytest.raises((DataError, ValueError, FileNotFoundError), match=message):
            predict_file(tmp_path / name, model, tmp_path / out, **reading)
        assert not (tmp_path / out).exists()
    with pytest.raises(DataError, match="no column 'louvain'"):
        predict_file(query_file, model, tmp_path / "l.csv", options(clusters="louvain"))


@pytest.mark.parametrize("value", [0.0, 3.5])
def test_a_profile_without_information_gets_no_label(value, model, query):
    X = query.X.toarray()
    X[[3, 8]] = value
    done = label_profiles(changed(query, X=X), model)
    assert np.flatnonzero(done.withheld).tolist() == [3, 8]
    assert set(done.samples["withheld_because"][[3, 8]]) == {NO_INFORMATION}
    assert (done.labels[[3, 8]] == "unassigned").all()
    assert any("2 samples have the same value" in note for note in done.notes)


def test_the_query_s_own_confidences_raise_the_threshold(model, query):
    """Scrambled samples are labelled with low confidence: few labels may be given."""
    rng = np.random.default_rng(0)
    X = np.array([rng.permutation(row) for row in query.X.toarray()])
    target = 0.1
    held_out, _ = model.panel.error_control.at(target)
    done = label_profiles(changed(query, X=X), model, options(target_error=target))
    assert done.record["threshold"] > held_out
    given = done.confidence[~done.withheld]
    assert not given.size or (1 - given).mean() <= target
    assert any("own confidences" in note for note in done.notes)


def test_a_query_that_looks_like_nothing_known_is_an_alarm(model, query):
    rng = np.random.default_rng(0)
    X = np.array([rng.permutation(row) for row in query.X.toarray()])
    scrambled = label_profiles(changed(query, X=X), model)
    assert any(
        "do not look like the training data" in one for one in scrambled.warnings
    )
    assert not any("adapt=True" in note for note in scrambled.notes)
    known = label_profiles(query, model)
    assert not known.warnings


def test_learning_from_few_samples_is_refused(model, query):
    few = take_samples(query, np.arange(9))
    with pytest.raises(DataError, match="9 samples: learning from the query"):
        label_profiles(few, model, options(adapt=True))
    done = label_profiles(query, model, options(adapt=True))
    assert any("learning from the query changed" in note for note in done.notes)
    np.testing.assert_allclose(done.probabilities.sum(axis=1), 1.0)


def test_labels_say_how_they_were_made(model, query_file, tmp_path):
    save(model, tmp_path / "model.optirank")
    out = tmp_path / "labels.csv"
    done = predict_file(query_file, tmp_path / "model.optirank", out)
    record = json.loads(write_record(done, out).read_text("utf-8"))
    content = (tmp_path / "model.optirank").read_bytes()
    assert record["model_sha256"] == hashlib.sha256(content).hexdigest()
    assert record["model"] == "example"
    assert record["query"] == "query.h5ad"
    digest = hashlib.sha256(query_file.read_bytes()).hexdigest()
    assert record["inputs"] == {"query.h5ad": f"SHA-256 {digest}"}
    other = predict_file(query_file, model, out, options(threshold=0.9))
    assert other.record["options"] == {"threshold": 0.9}


def test_genes_of_the_query_that_share_a_name_are_summed_as_in_training(model, query):
    plain = label_profiles(query, model)
    X = query.X.toarray()
    half = np.floor(X / 2)
    names = np.concatenate([query.var_names, query.var_names])
    twice = changed(query, X=np.hstack([half, X - half]), genes=names)
    done = label_profiles(twice, model)
    np.testing.assert_allclose(done.probabilities, plain.probabilities)
    assert any("their counts are summed" in note for note in done.notes)


def test_one_cell_has_a_cluster_and_clusters_are_not_computed(model, query):
    single = take_samples(query, np.arange(1))
    single = changed(single, obs=single.obs.assign(leiden=["0"]))
    done = label_profiles(single, model, options(clusters="leiden"))
    assert done.clusters["label"].tolist() == done.labels.tolist()
    bare = changed(query, obs=query.obs.drop(columns="leiden", errors="ignore"))
    with pytest.raises(DataError, match=r"no column 'leiden'"):
        label_profiles(bare, model, options(clusters="leiden"))


@pytest.mark.parametrize("end", ["zarr", "h5ad", "csv"])
def test_labels_are_written_again_over_those_that_are_there(
    end, model, query_file, tmp_path
):
    for threshold in (None, 1.0):
        asked = options(threshold=threshold, clusters="leiden")
        done = predict_file(query_file, model, tmp_path / f"out.{end}", asked)
    assert done.withheld.all()
    if end == "csv":
        return
    read = anndata.read_zarr if end == "zarr" else anndata.read_h5ad
    found = read(tmp_path / f"out.{end}")
    assert set(found.obs["optirank"]) == {"unassigned"}
    clusters = found.uns["optirank"]["clusters"]
    assert clusters["label"].tolist() == ["unassigned"] * 4


def test_several_files_are_one_table_with_the_file_of_each_sample(
    model, query, query_file, tmp_path
):
    few = as_anndata(take_samples(query, np.arange(9)))
    few.write_h5ad(tmp_path / "few.h5ad")
    both = [query_file, tmp_path / "few.h5ad"]
    done = predict_file(both, model, tmp_path / "l.csv", options(clusters="leiden"))
    alone = predict_file(query_file, model, tmp_path / "alone.csv")
    table = pd.read_csv(tmp_path / "l.csv")
    assert table["file"].value_counts().to_dict() == {"query": 60, "few": 9}
    assert table["label"].tolist()[:60] == alone.labels.tolist()
    assert set(done.clusters["file"]) == {"query", "few"}
    record = json.loads(write_record(done, tmp_path / "l.csv").read_text("utf-8"))
    assert set(record["inputs"]) == {"query.h5ad", "few.h5ad"}
    assert set(record["files"]) == {"query", "few"}


def test_inputs_of_one_name_are_all_recorded_and_so_is_how_each_was_read(
    model, query_file, tmp_path
):
    files = [tmp_path / folder / "query.h5ad" for folder in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        shutil.copyfile(query_file, file)
    done = predict_file(files, model, tmp_path / "l.csv", layer="double")
    assert set(done.record["inputs"]) == {"a/query.h5ad", "b/query.h5ad"}
    for record in (done.record, *done.record["files"].values()):
        assert record["options"] == {"layer": "double"}
