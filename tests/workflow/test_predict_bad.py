"""predict_file on bad input: what is said, and that nothing is written."""

from __future__ import annotations

import numpy as np
import pytest

from example_model import as_anndata, panel_names, with_held_out
from optirank.datasets import DataError
from optirank.datasets.writing import write_table
from optirank.model import MissingGenesError
from optirank.workflow.labels import Labels
from optirank.workflow.predict import predict_file, rejection_threshold


def test_too_many_missing_genes_are_refused_and_nothing_is_written(model, query, tmp_path):
    kept = [gene for gene in query.gene_names if gene not in panel_names(model)[::2]]
    as_anndata(query.select_genes(kept)).write_h5ad(tmp_path / "few.h5ad")
    with pytest.raises(MissingGenesError, match="more than 20% of the genes"):
        predict_file(tmp_path / "few.h5ad", model, tmp_path / "labels.csv", max_missing=0.2)
    assert [path.name for path in tmp_path.iterdir()] == ["few.h5ad"]
    done = predict_file(tmp_path / "few.h5ad", model, tmp_path / "labels.csv", max_missing=0.9)
    assert len(done.missing) >= len(panel_names(model)) // 2


def test_nan_names_the_samples_and_leaves_what_was_there(model, query, tmp_path):
    adata = as_anndata(query, "dense")
    adata.X[25] = np.nan
    adata.write_h5ad(tmp_path / "query.h5ad")
    (tmp_path / "labels.csv").write_text("from before")
    with pytest.raises(DataError, match=r"query\.h5ad, samples 21 to 30: X has NaN"):
        predict_file(tmp_path / "query.h5ad", model, tmp_path / "labels.csv", block_size=10)
    assert (tmp_path / "labels.csv").read_text() == "from before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "query.h5ad"]


def test_a_failure_while_writing_leaves_no_part(model, query_file, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(Labels, "blocks", fail)
    with pytest.raises(OSError, match="disk full"):
        predict_file(query_file, model, tmp_path / "labels.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["query.h5ad"]


@pytest.mark.parametrize(
    ("out", "options", "message"),
    [
        ("labels.txt", {}, r"written as \.csv, \.parquet, \.h5ad"),
        ("nowhere/labels.csv", {}, "does not exist"),
        ("query.h5ad", {}, "is an input too"),
        (".csv.csv/", {}, "is a folder"),
        ("labels.csv", {"clusters": "louvain"}, "no column 'louvain'.*leiden"),
        ("labels.csv", {"layer": "counts"}, "no layer 'counts'.*double"),
        ("labels.csv", {"gene_column": "symbol"}, "no gene column 'symbol'.*code"),
        ("labels.csv", {"threshold": 2.0}, "between 0 and 1"),
        ("labels.csv", {"threshold": 0.5, "target_error": 0.1}, "not both"),
        ("labels.csv", {"target_error": 0.1}, "give a threshold instead"),
        ("labels.csv", {"max_missing": 1.5}, "max_missing=1.5"),
        ("labels.csv", {"block_size": 0}, "block_size=0"),
    ],
)
def test_bad_input_is_refused_with_its_remedy(out, options, message, model, query_file, tmp_path):
    (tmp_path / ".csv.csv").mkdir()
    with pytest.raises(ValueError, match=message):
        predict_file(query_file, model, tmp_path / out, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".csv.csv", "query.h5ad"]


def test_held_out_samples_do_not_judge_a_choice_of_their_classes(model):
    few = with_held_out(model).subset(["b cell", "t cell", "monocyte"])
    assert rejection_threshold(model, target_error=0.1)[0] > 0
    with pytest.raises(ValueError, match="fewer classes than it was trained and judged with"):
        rejection_threshold(few, target_error=0.1)


def test_an_h5ad_of_a_table_is_refused(model, query, tmp_path):
    write_table(query, tmp_path / "query.csv", genes_in="rows")
    with pytest.raises(DataError, match=r"is not an \.h5ad: write the labels as \.csv"):
        predict_file(tmp_path / "query.csv", model, tmp_path / "out.h5ad", genes_in="rows")


def test_a_missing_query_is_named(model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.h5ad does not exist"):
        predict_file(tmp_path / "nothing.h5ad", model, tmp_path / "labels.csv")
