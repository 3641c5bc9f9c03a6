"""Training through its seam: held-out figures, options, sources, and bad data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from example_model import LABEL, reference_set, training_result
from optirank import load, save
from optirank.datasets import DataError
from optirank.datasets.writing import write_h5ad
from optirank.workflow.sources import JoinedProfiles, gene_names_in, genes_of_queries, open_sources
from optirank.workflow.train import TrainingOptions, train


def run(data, **options):
    said = []
    given = {"label": LABEL, "n_genes": 20, "n_jobs": 1} | options
    result = train(data, TrainingOptions(**given), say=said.append)
    return result, said


@pytest.fixture(scope="module")
def data():
    return reference_set()


def test_held_out_tables_count_held_out_samples_only():
    result = training_result()
    held_out = result.held_out
    counts = held_out["label"].value_counts()
    assert not held_out["sample"].duplicated().any()
    for name, row in result.performance.per_class.iterrows():
        assert row["n"] == counts[name]
    right = held_out["label"] == held_out["predicted"]
    assert result.performance.n_right == right.sum()
    assert result.performance.balanced_accuracy == pytest.approx(
        right.groupby(held_out["label"]).mean().mean()
    )


def test_the_model_keeps_where_it_comes_from():
    summary = training_result().model.training_summary_
    assert summary["label"] == LABEL
    assert summary["name"] == "example"
    assert summary["checksum"]
    assert set(summary["versions"]) >= {"optirank", "numpy", "python"}
    assert [row["n_genes"] for row in summary["curve"]] == training_result().curve[
        "n_genes"
    ].tolist()
    assert summary["n_held_out"].keys() == summary["class_counts"].keys()


def test_the_same_data_give_the_same_file(data, tmp_path):
    for name in ("one", "two"):
        save(run(data)[0].model, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_target_error_is_kept_for_prediction(data, tmp_path):
    model = run(data, target_error=0.2)[0].model
    save(model, tmp_path / "model.optirank")
    assert load(tmp_path / "model.optirank").error_control_.target_error == 0.2
    with pytest.raises(DataError, match="cannot show it"):
        run(data, target_error=1e-6)


def test_genes_are_asked_for_left_out_and_limited_to_a_query(data):
    genes = data.gene_names
    result, _ = run(data, include=[genes[-90]], exclude="CD*", available=genes[:120])
    assert genes[-90] in result.genes
    assert not [gene for gene in result.genes if gene.startswith("CD")]
    assert set(result.genes) <= set(genes[:120])
    assert len(result.genes) == 20
    only, _ = run(data, gene_list=genes[:50].tolist())
    assert set(only.genes) <= set(genes[:50])


def test_sources_are_held_out_in_turn(data):
    source = np.where(np.arange(data.n_samples) % 3 == 0, "north", "south")
    result, _ = run(replace(data, obs=data.obs.assign(site=source)), batch="site")
    per_fold = result.held_out.groupby("fold")["source"].nunique()
    assert (per_fold == 1).all()
    assert set(result.held_out["source"]) == {"north", "south"}


def test_odd_labels_and_samples_without_one_are_told(data):
    labels = data.obs[LABEL].astype(object).copy()
    labels.iloc[:4] = None
    labels.iloc[4:10] = "Unknown"
    labels.iloc[10] = "lonely"
    result, said = run(replace(data, obs=data.obs.assign(**{LABEL: labels})))
    told = " ".join([*result.notes, *said])
    assert "'Unknown'" in told
    assert "4 samples" in told
    assert "lonely" in told
    assert "lonely" not in result.model.classes_


def test_data_that_cannot_be_trained_on_are_refused(data):
    one = replace(data, obs=data.obs.assign(**{LABEL: "a"}))
    constant = replace(data, X=np.ones(data.X.shape))
    broken = data.X.toarray().astype(float)
    broken[3, 5] = np.nan
    for bad, options, message in (
        (one, {}, "class"),
        (constant, {}, "same value"),
        (replace(data, X=broken), {}, "NaN|missing|not a number|finite"),
        (data, {"n_genes": 10_000}, "10000|10,000"),
        (data, {"label": "absent"}, "no column 'absent'"),
        (data, {"available": ["nothing"]}, "gene"),
        (data, {"include": ["NO_SUCH_GENE"]}, "NO_SUCH_GENE"),
    ):
        with pytest.raises(DataError, match=message):
            run(bad, **options)


@pytest.mark.parametrize("method", ["optirank", "rank-lr"])
def test_the_paper_s_classifiers_train_too(data, method):
    small = data.select_genes(data.gene_names[:60])
    result, _ = run(small, method=method, n_genes="auto")
    assert result.performance.balanced_accuracy > 0.6
    assert result.model.calibration_ is not None


def test_several_files_are_one_training_set_with_their_common_genes(data, tmp_path):
    order = np.argsort(np.arange(150) % 2, kind="stable")  # every class is in both files
    data = data.select_samples(order)
    first = data.select_samples(np.arange(75)).select_genes(data.gene_names[:150])
    second = data.select_samples(np.arange(75, 150)).select_genes(data.gene_names[::-1][:150])
    write_h5ad(first, tmp_path / "first.h5ad")
    write_h5ad(second, tmp_path / "second.h5ad")
    files = [tmp_path / "first.h5ad", tmp_path / "second.h5ad"]
    with open_sources(files, LABEL) as (joined, batch):
        assert batch == "file"
        assert joined.gene_names.tolist() == data.gene_names[50:150].tolist()
        rows = np.array([0, 74, 75, 149])
        found = np.vstack([b.X.toarray() for b in joined.blocks(np.array([3, 1]), 1, rows)])
        np.testing.assert_array_equal(found, data.X.toarray()[rows][:, [53, 51]])
        result, _ = run(joined, batch=batch)
    assert set(result.held_out["source"]) == {"first", "second"}
    with pytest.raises(DataError, match="genes in common"):
        JoinedProfiles([data.select_genes(data.gene_names[:1]), second])
    assert genes_of_queries(files) == data.gene_names[50:150].tolist()
    assert genes_of_queries([]) is None


def test_names_come_from_options_and_files(tmp_path):
    path = tmp_path / "genes.csv"
    path.write_text('gene,weight\n"CD4",1\n# no\n\nCD8A,2\n')
    assert gene_names_in(["MT-*, RPL3", str(path)]) == ["MT-*", "RPL3", "CD4", "CD8A"]
    path.write_text("# nothing\n")
    with pytest.raises(DataError, match="names no gene"):
        gene_names_in([str(path)])
