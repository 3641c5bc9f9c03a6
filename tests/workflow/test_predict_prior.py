"""Shares of the classes in prediction, and classes called as a withheld label would be."""

from __future__ import annotations

import os
import tempfile

import anndata
import numpy as np
import pandas as pd
import pytest

import optirank.tl
from example_model import as_anndata, trained_example
from optirank.datasets import DataError
from optirank.model import Predictor
from optirank.workflow.predict import predict_file
from optirank.workflow.prior import as_prior


@pytest.fixture
def shares(model, tmp_path):
    """A file of shares, in which the first class is nearly all."""
    names = model.classes_.tolist()
    table = pd.DataFrame(
        {"class": names, "share": [0.97] + [0.03 / (len(names) - 1)] * (len(names) - 1)}
    )
    table.to_csv(tmp_path / "shares.csv", index=False)
    return tmp_path / "shares.csv", dict(zip(names, table["share"], strict=True))


@pytest.mark.parametrize("prior", ["balanced", "training", "file", "mapping"])
def test_files_tl_and_the_predictor_give_the_same(
    prior, model, query, query_file, shares, tmp_path
):
    given = {"file": shares[0], "mapping": shares[1]}.get(prior, prior)
    expected = Predictor(
        model, query.gene_names, prior=shares[1] if prior in ("file", "mapping") else prior
    ).predict(query.X)
    predict_file(query_file, model, tmp_path / "labels.csv", prior=given)
    table = pd.read_csv(tmp_path / "labels.csv")
    assert table["label"].tolist() == expected.labels.tolist()
    adata = as_anndata(query)
    optirank.tl.annotate(adata, model, prior=given)
    assert adata.obs["optirank"].tolist() == expected.labels.tolist()
    np.testing.assert_allclose(table.filter(like="probability_"), expected.probabilities, atol=1e-6)


def test_a_prior_moves_labels_and_says_so(model, query_file, shares, tmp_path):
    first = model.classes_[0]
    plain = predict_file(query_file, model, tmp_path / "plain.csv")
    moved = predict_file(query_file, model, tmp_path / "moved.csv", prior=shares[0])
    assert moved.counts[first] > plain.counts[first]
    assert any(f"assume these shares of the classes: {first} 97.0%" in n for n in moved.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,1,2\nb,3,4\n", "has 3 columns"),
        ("class,share\na,many\n", "line 2: 'many' is not a number"),
        ("a,1\na,2\n", "the class 'a' is listed twice"),
        ("", "is not a table of classes and shares"),
    ],
)
def test_a_file_of_shares_that_is_none_is_refused(text, message, tmp_path):
    (tmp_path / "shares.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        as_prior(tmp_path / "shares.csv")


def test_a_file_of_shares_may_have_tabs_and_no_heading(tmp_path):
    (tmp_path / "shares.tsv").write_text("a\t1\nb\t3\n")
    assert as_prior(str(tmp_path / "shares.tsv")) == {"a": 1.0, "b": 3.0}


def test_a_prior_that_is_neither_a_word_nor_a_file_is_refused_before_any_work(
    model, query_file, tmp_path
):
    with pytest.raises(DataError, match="'fair' is neither one of balanced, training nor a file"):
        predict_file(query_file, model, tmp_path / "labels.csv", prior="fair")
    with pytest.raises(ValueError, match="with another prior than balanced"):
        predict_file(query_file, model, tmp_path / "l.csv", prior="training", target_error=0.1)
    assert os.listdir(tmp_path) == ["query.h5ad"]


@pytest.fixture
def unassigned(model):
    """The model with a class called "unassigned"."""
    model.classes_ = np.array(["unassigned", *model.classes_[1:]], dtype=object)
    return model


def test_a_class_called_unassigned_is_a_class(unassigned, query_file, tmp_path):
    adata = as_anndata(trained_example()[1])
    optirank.tl.annotate(adata, unassigned, threshold=0.4)
    low = adata.obs["optirank_confidence"] < 0.4
    assert 0 < low.sum() < len(low)
    assert ((adata.obs["optirank"] == "withheld") == low).all()
    assert adata.uns["optirank"]["withheld_label"] == "withheld"
    done = predict_file(query_file, unassigned, tmp_path / "out.h5ad", threshold=0.4)
    written = anndata.read_h5ad(tmp_path / "out.h5ad").obs["optirank"]
    assert written.tolist() == adata.obs["optirank"].tolist()
    assert done.counts["withheld"] == low.sum()


def test_the_spool_of_probabilities_lies_beside_the_output(
    model, query_file, tmp_path, monkeypatch
):
    folders = []
    make = tempfile.TemporaryFile
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda *a, **k: folders.append(k.get("dir")) or make(*a, **k)
    )
    (tmp_path / "out").mkdir()
    predict_file(query_file, model, tmp_path / "out" / "labels.csv")
    assert folders == [tmp_path / "out"]
    assert os.listdir(tmp_path / "out") == ["labels.csv"]
