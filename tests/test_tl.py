"""optirank.tl: the fields that are set, on every kind of AnnData, and what is said."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing
from dataclasses import replace

import anndata
import numpy as np
import pandas as pd
import pytest

import optirank
from example_model import (
    N_QUERY,
    as_anndata,
    panel_names,
    reference_set,
    trained_example,
)
from optirank.cli.predict import evaluate, predict
from optirank.cli.train import design, train
from optirank.datasets import DataError
from optirank.model import MissingGenesError, save
from optirank.report import write_page
from optirank.verbs.label_files import predict_file


@pytest.fixture
def model():
    return trained_example()[0]


@pytest.fixture
def adata():
    return as_anndata(trained_example()[1])


def test_the_fields_that_are_set(model, adata):
    before = adata.copy()
    labels = optirank.tl.annotate(adata, model)
    assert labels.labels.tolist() == adata.obs["optirank"].tolist()
    assert labels.tables["labels"]["n_samples"].sum() == N_QUERY
    expected = model.predict(adata.X, adata.var_names)
    probabilities = model.predict_proba(adata.X, adata.var_names)
    assert adata.obs["optirank"].dtype == "category"
    assert adata.obs["optirank"].tolist() == expected.tolist()
    np.testing.assert_array_equal(
        adata.obs["optirank_confidence"], probabilities.max(axis=1)
    )
    frame = adata.obsm["optirank_proba"]
    np.testing.assert_array_equal(frame, probabilities)
    assert frame.columns.tolist() == model.classes.tolist()
    record = adata.uns["optirank"]
    assert record["classes"].tolist() == model.classes.tolist()
    assert set(record["missing_genes"]) == set(panel_names(model)) - set(
        adata.var_names
    )
    assert len(record["model_sha256"]) == 64
    assert set(adata.obs) - set(before.obs) == {
        "optirank",
        "optirank_confidence",
        "optirank_likeness",
        "optirank_withheld_because",
    }
    assert (adata.X != before.X).nnz == 0


def test_names_of_classes_that_files_cannot_hold_are_changed_in_columns_alone(
    model, adata, tmp_path
):
    names = ["_index", "b", "b/c", "b|c", "."]
    classes = np.array(names[: len(model.classes)], dtype=object)
    model = replace(model, classes=classes)
    optirank.tl.annotate(adata, model)
    columns = ["class _index", "b", "b|c", "b|c (2)", "class ."][: len(model.classes)]
    assert adata.obsm["optirank_proba"].columns.tolist() == columns
    assert adata.uns["optirank"]["classes"].tolist() == model.classes.tolist()
    adata.write_h5ad(tmp_path / "annotated.h5ad")
    found = anndata.read_h5ad(tmp_path / "annotated.h5ad").obsm["optirank_proba"]
    pd.testing.assert_frame_equal(found, adata.obsm["optirank_proba"])


def test_another_key_and_a_copy(model, adata):
    found = adata.copy()
    optirank.tl.annotate(found, model, key_added="kind")
    assert "kind" in found.obs
    assert "kind_proba" in found.obsm
    assert "kind" not in adata.obs
    assert not adata.uns


class Container:
    def __init__(self, **tables):
        self.tables = tables


def test_a_table_of_a_container_is_labelled_and_evaluated(model, adata):
    container = Container(cells=adata, spots=adata[:5].copy())
    with pytest.raises(ValueError, match="cells"):
        optirank.tl.annotate(container, model)
    labels = optirank.tl.annotate(container, model, table="cells")
    assert adata.obs["optirank"].tolist() == labels.labels.tolist()
    judged = optirank.tl.evaluate(container, model, "cell_type", table="cells")
    assert judged.performance.n_samples == N_QUERY


def test_the_four_results_have_notes_warnings_tables_and_a_page(adata, tmp_path):
    pytest.importorskip("matplotlib")
    reference = as_anndata(reference_set())
    quiet = {"verbose": False}
    given = {"n_genes": 20, "n_jobs": 1, "test": adata, **quiet}
    trained = optirank.tl.train(reference, "cell_type", n_genes=20, n_jobs=1, **quiet)
    results = {
        "held_out": trained,
        "samples": optirank.tl.annotate(adata, trained, **quiet),
        "per_class": optirank.tl.evaluate(adata, trained, "cell_type", **quiet),
        "conditions": optirank.tl.design(reference, "cell_type", **given),
    }
    for table, result in results.items():
        assert len(result.tables[table]) > 0
        assert all(isinstance(table, pd.DataFrame) for table in result.tables.values())
        assert not set(result.notes) & set(result.warnings)
        page = write_page(result, tmp_path / f"{table}.html").read_bytes()
        assert page == write_page(result, tmp_path / "again.html").read_bytes()
    assert len(trained.held_out) == len(reference)
    report = tmp_path / "named.html"
    optirank.tl.annotate(adata, trained, report=report, **quiet)
    assert report.read_bytes() == (tmp_path / "samples.html").read_bytes()
    judged = optirank.pl.confusion(trained)
    assert len(judged.get_yticklabels()) == 5


def test_a_result_stands_for_its_model(adata, tmp_path):
    reference = as_anndata(reference_set())
    trained = optirank.tl.train(
        reference, "cell_type", n_genes=20, n_jobs=1, verbose=False
    )
    optirank.save(trained, tmp_path / "m.optirank")
    loaded = optirank.load(tmp_path / "m.optirank")
    first = optirank.tl.annotate(adata, trained).confidence
    np.testing.assert_array_equal(first, optirank.tl.annotate(adata, loaded).confidence)


def test_a_column_of_the_user_is_not_overwritten(model, adata):
    adata.obs["truth"] = "known"
    with pytest.raises(ValueError, match="column 'truth' that is not optirank's"):
        optirank.tl.annotate(adata, model, key_added="truth")
    assert (adata.obs["truth"] == "known").all()
    for _ in range(2):  # its own fields are written again
        optirank.tl.annotate(adata, model)


@pytest.mark.parametrize(
    ("storage", "backed"), [("csc", 0), ("dense", 0), ("csr", 1), ("csc", 1)]
)
def test_every_storage_gets_the_same(storage, backed, model, adata, tmp_path):
    optirank.tl.annotate(adata, model)
    other = as_anndata(trained_example()[1], storage)
    if backed:
        other.write_h5ad(tmp_path / "query.h5ad")
        other = anndata.read_h5ad(tmp_path / "query.h5ad", backed="r")
    optirank.tl.annotate(other, model)
    pd.testing.assert_frame_equal(other.obs, adata.obs)
    np.testing.assert_array_equal(
        other.obsm["optirank_proba"], adata.obsm["optirank_proba"]
    )
    if backed:
        other.file.close()


def test_a_layer_a_gene_column_and_raw(model, adata):
    expected = optirank.tl.annotate(adata.copy(), model).labels.tolist()
    other = adata.copy()
    other.layers["counts"], other.X = other.X.copy(), other.X * 0
    other.var["symbol"], other.var_names = other.var_names, other.var["code"].to_numpy()
    optirank.tl.annotate(other, model, layer="counts", gene_column="symbol")
    assert other.obs["optirank"].tolist() == expected
    few = adata[:, ~adata.var_names.isin(panel_names(model)[:2])].copy()
    few.raw = adata
    optirank.tl.annotate(few, model, layer="raw")
    assert few.obs["optirank"].tolist() == expected
    fewer = adata[:, ~adata.var_names.isin(panel_names(model)[:25])].copy()
    fewer.raw = adata
    labels = optirank.tl.annotate(fewer, model)
    assert fewer.obs["optirank"].tolist() == expected
    assert any("raw is read" in note for note in labels.notes)
    with pytest.raises(ValueError, match="no 'raw'"):
        optirank.tl.annotate(adata, model, layer="raw")


def test_withheld_labels_and_clusters_from_a_model_file(model, adata, tmp_path, capsys):
    save(model, tmp_path / "model.optirank")
    adata = adata[:, adata.var_names != panel_names(model)[0]].copy()
    labels = optirank.tl.annotate(
        adata, tmp_path / "model.optirank", threshold=0.9, clusters="leiden"
    )
    assert set(labels.clusters["cluster"]) == set(adata.obs["leiden"].astype(str))
    withheld = adata.obs["optirank"] == "unassigned"
    assert (withheld == (adata.obs["optirank_confidence"] < 0.9)).all()
    printed = capsys.readouterr().out  # without a setting
    assert f"{withheld.sum()} of {N_QUERY} labels (" in printed
    assert "1 of 30 genes is missing" in printed


def test_columns_that_are_not_written_again_are_removed(model, adata, tmp_path):
    adata.obs["optirank_leaf"] = "of a tree"
    adata.obs["optirank_mine"] = 1
    adata.write_h5ad(tmp_path / "query.h5ad")
    optirank.tl.annotate(adata, model)
    left = [name for name in adata.obs if name.startswith("optirank")]
    plain = ["", "_confidence", "_likeness", "_mine", "_withheld_because"]
    assert sorted(left) == [f"optirank{name}" for name in plain]
    predict_file(tmp_path / "query.h5ad", model, tmp_path / "out.h5ad")
    written = anndata.read_h5ad(tmp_path / "out.h5ad").obs
    assert sorted(name for name in written if name.startswith("optirank")) == sorted(
        left
    )


def test_a_column_with_the_model_s_names_is_used_with_a_note(model, adata):
    expected = optirank.tl.annotate(adata.copy(), model).labels.tolist()
    adata.var["symbol"] = adata.var_names
    adata.var_names = [f"ENSG{k:011d}" for k in range(adata.n_vars)]
    optirank.tl.annotate(adata, model)
    assert adata.obs["optirank"].tolist() == expected
    assert "genes are named by the column 'symbol'" in adata.uns["optirank"]["notes"][0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"layer": "counts"}, DataError, r"no 'counts' \(layer=\): there are double"),
        ({"gene_column": "symbol"}, DataError, "no gene column 'symbol'"),
        ({"clusters": "louvain"}, DataError, "no column 'louvain'"),
        ({"threshold": -1}, ValueError, "between 0 and 1"),
        ({"gene_column": "code"}, MissingGenesError, "genes are present"),
        ({"model": "nothing.optirank"}, FileNotFoundError, "nothing.optirank"),
    ],
)
def test_bad_input_changes_nothing(options, error, message, model, adata):
    with pytest.raises(error, match=message):
        optirank.tl.annotate(adata, **{"model": model, **options})
    assert "optirank" not in adata.obs
    assert not adata.obsm
    with pytest.raises(DataError, match="holds no samples"):
        optirank.tl.annotate(adata[:0].copy(), model)


def test_what_holds_no_profiles_is_refused_with_a_remedy(model, adata):
    with pytest.raises(TypeError, match="read_h5ad"):
        optirank.tl.annotate("query.h5ad", model)
    for label in ("cell_type", ["coarse", "fine"]):
        with pytest.raises(TypeError, match="read_h5ad"):
            optirank.tl.train("reference.h5ad", label)
    with pytest.raises(TypeError, match="not a ndarray: read a file first"):
        optirank.tl.annotate(adata.X.toarray(), model)


def test_a_data_frame_is_labelled_by_the_names_of_its_columns(model, adata):
    optirank.tl.annotate(adata, model)
    expected = adata.obs["optirank"].tolist()
    frame = adata.to_df()
    for columns in (frame.columns[::-1], panel_names(model)):
        labels = optirank.tl.annotate(
            frame[[name for name in columns if name in frame]], model
        )
        assert labels.samples["label"].tolist() == expected
        assert labels.samples["sample"].tolist() == adata.obs_names.tolist()
    one = optirank.tl.annotate(frame.iloc[3], model)
    assert one.labels.tolist() == expected[3:4]


def test_a_data_frame_trains_and_evaluates_as_an_anndata_does(adata):
    reference = as_anndata(reference_set())
    frame = reference.to_df()
    labels = reference.obs["cell_type"].astype(str)
    given = {"n_genes": 20, "n_jobs": 1, "verbose": False}
    plain = optirank.tl.train(reference, "cell_type", **given).model
    frame_with = frame.assign(cell_type=labels)
    named = optirank.tl.train(frame_with, "cell_type", **given).model
    shuffled = labels.sample(frac=1, random_state=0)
    apart = optirank.tl.train(frame, shuffled, **given).model
    for model in (named, apart):
        np.testing.assert_array_equal(model.panel.coef, plain.panel.coef)
        assert model.genes.tolist() == plain.genes.tolist()
    with pytest.raises(ValueError, match="3 labels for 150 samples"):
        optirank.tl.train(frame, labels.to_numpy()[:3], **given)
    with pytest.raises(DataError, match=r"no column tpye .*: there are "):
        optirank.tl.train(frame_with, ["cell_type", "tpye"], **given)
    renamed = labels.rename({labels.index[3]: "S3"})
    with pytest.raises(DataError, match=f"no label or several: {labels.index[3]};"):
        optirank.tl.train(frame, renamed, **given)
    with pytest.raises(DataError, match=f"no label or several: {labels.index[3]};"):
        optirank.tl.train(frame, pd.concat([labels, labels[3:4]]), **given)
    query = adata.to_df().assign(cell_type=adata.obs["cell_type"].astype(str))
    judged = optirank.tl.evaluate(query, plain, "cell_type").performance
    expected = optirank.tl.evaluate(adata, plain, "cell_type").performance
    assert judged.per_class.equals(expected.per_class)


def test_several_anndata_are_held_out_in_turn():
    reference = as_anndata(reference_set())
    parts = [reference[::2].copy(), reference[1::2].copy()]
    given = {"n_genes": 20, "n_jobs": 1, "verbose": False}
    model = optirank.tl.train(parts, "cell_type", **given).model
    assert [judged.name for judged in model.card.judged] == ["adata 1", "adata 2"]
    with pytest.raises(TypeError, match="name the column"):
        optirank.tl.train(parts, reference.obs["cell_type"])


def test_every_option_of_a_command_is_a_parameter_of_the_same_name():
    of_files = {"genes_in", "samples", "invert", "out", "force", "dask", "model"}
    for command, function in (
        (train, optirank.tl.train),
        (predict, optirank.tl.annotate),
        (evaluate, optirank.tl.evaluate),
        (design, optirank.tl.design),
    ):
        options = set(inspect.signature(command).parameters)
        parameters = set(inspect.signature(function).parameters)
        data = {"files", "query"} if command in (predict, evaluate) else {"files"}
        assert options - of_files - data <= parameters | {"n_jobs"}
        assert {"layer", "gene_column", "table", "report", "verbose"} <= parameters


def test_names_are_clean_and_hints_can_be_read():
    assert dir(optirank.tl) == ["annotate", "design", "evaluate", "train"]
    for module in (optirank.tl, optirank.pl):
        for name in dir(module):
            assert "return" in typing.get_type_hints(getattr(module, name)), name


def test_notes_and_warnings_are_printed_unless_verbose_is_false(capsys, adata):
    reference = as_anndata(reference_set())
    mine = reference.obs["cell_type"].to_numpy() == "b cell"
    reference = reference[~mine | (np.cumsum(mine) <= 5)].copy()
    given = {"n_genes": 20, "n_jobs": 1, "query": adata, "exclude": "CD*"}
    result = optirank.tl.train(reference, "cell_type", **given)
    printed = capsys.readouterr().out
    assert "WARNING: classes of fewer than 10 samples" in printed
    assert "TrainingResult: " in printed
    for note in result.notes:
        assert note in printed
    genes = panel_names(result.model)
    assert set(genes) <= set(adata.var_names)
    assert not [gene for gene in genes if gene.startswith("CD")]
    assert "optirank.tl.train(adata, label='cell_type'" in result.model.card.command
    optirank.tl.annotate(adata, result, verbose=False)
    optirank.tl.train(reference, "cell_type", **given, verbose=False)
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")


def test_after_importing_optirank_the_modules_are_there():
    code = "import optirank; optirank.tl.annotate; optirank.pl.labels; print('tl' in dir(optirank))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"
