"""Prediction that adapts to the query, or says what adapting would do."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest

import optirank.pl
import optirank.tl
from example_model import as_anndata, with_experience
from optirank.model import Predictor
from optirank.workflow.predict import predict_file


@pytest.fixture
def shifted(model):
    return with_experience(model, shift=-0.5)


@pytest.mark.parametrize("block_size", [7, None])
def test_files_tl_and_the_predictor_adapt_alike(shifted, query, query_file, tmp_path, block_size):
    expected = Predictor(shifted, query.gene_names, adapt=True).predict(query.X)
    plain = Predictor(shifted, query.gene_names).predict(query.X)
    assert (expected.labels != plain.labels).any()
    done = predict_file(
        query_file, shifted, tmp_path / "labels.csv", adapt=True, block_size=block_size
    )
    table = pd.read_csv(tmp_path / "labels.csv")
    assert table["label"].tolist() == expected.labels.astype(str).tolist()
    np.testing.assert_allclose(table["confidence"], expected.confidence, atol=1e-6)
    changed = np.mean(expected.labels != plain.labels)
    assert any(
        f"adapting to the query changed {changed:.1%} of the labels" in n for n in done.notes
    )
    adata = as_anndata(query)
    optirank.tl.annotate(adata, shifted, adapt=True, block_size=block_size or 2048)
    assert adata.obs["optirank"].tolist() == expected.labels.tolist()


def test_plain_prediction_says_what_adapting_would_do(shifted, query, query_file, tmp_path, caplog):
    done = predict_file(query_file, shifted, tmp_path / "labels.csv")
    (note,) = [note for note in done.notes if "adapting to the query" in note]
    assert "shifted" in note
    assert "would change" in note
    with caplog.at_level(logging.WARNING, "optirank"):
        optirank.tl.annotate(as_anndata(query), shifted)
    assert note in caplog.text


@pytest.mark.parametrize("n", [1, 10])
def test_few_samples_are_not_adapted_to_and_that_is_said(shifted, query, tmp_path, n):
    few = as_anndata(query)[:n].copy()
    few.write_h5ad(tmp_path / "few.h5ad")
    adapted = predict_file(tmp_path / "few.h5ad", shifted, tmp_path / "a.csv", adapt=True)
    plain = predict_file(tmp_path / "few.h5ad", shifted, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    assert any("too few to adapt to" in note for note in adapted.notes)
    assert not any("adapt" in note for note in plain.notes)


def test_a_model_of_fewer_classes_adapts_by_what_is_remembered_of_them(shifted, query, tmp_path):
    small = shifted.subset(shifted.classes_[:3])
    known, whole = small.experience_, shifted.experience_
    np.testing.assert_array_equal(known.inside, whole.inside[:3])
    np.testing.assert_array_equal(known.profiles, whole.profiles[:3])
    optirank.save(small, tmp_path / "small.optirank")
    kept = np.flatnonzero(query.labels("cell_type").isin(small.classes_))
    X = query.X[np.tile(kept, 3)]  # enough samples to adapt to
    found = Predictor(optirank.load(tmp_path / "small.optirank"), query.gene_names, adapt=True)
    plain = Predictor(small, query.gene_names).predict(X)
    moved = found.predict(X).scores - plain.scores
    np.testing.assert_allclose(moved, np.broadcast_to(moved[0], moved.shape), atol=1e-9)
    assert moved[0].any()


def test_adapting_needs_a_model_that_remembers(model, query_file, tmp_path):
    with pytest.raises(ValueError, match="cannot adapt"):
        predict_file(query_file, model, tmp_path / "labels.csv", adapt=True)
    assert not list(tmp_path.glob("labels*"))


def test_the_figure_shows_the_boundaries(shifted, query_file, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    done = predict_file(query_file, shifted, tmp_path / "a.csv", figure=tmp_path / "scores.png")
    assert (tmp_path / "scores.png").stat().st_size > 1000
    ax = optirank.pl.query_scores(done.report)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [str(label) for label in shifted.classes_]
    drawn = [line.get_xdata() for line in ax.lines if line.get_color() == "#D55E00"]
    adapted = [x[0] for x in drawn if len(x)]
    np.testing.assert_allclose(adapted, done.report.adaptation.offsets)


@pytest.mark.parametrize("name", ["scores.txt", "labels.csv"])
def test_a_figure_with_a_bad_name_is_refused_before_any_work(shifted, query_file, tmp_path, name):
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="figure"):
        predict_file(query_file, shifted, tmp_path / "labels.csv", figure=tmp_path / name)
    assert not (tmp_path / "labels.csv").exists()
