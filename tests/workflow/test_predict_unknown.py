"""Samples that look like no class, and promises that are not made for a query."""

from __future__ import annotations

import anndata
import numpy as np
import pandas as pd
import pytest

import optirank.tl
from example_model import as_anndata, with_experience, with_held_out
from optirank.workflow.predict import predict_file


@pytest.fixture
def strange_file(query, tmp_path):
    """The query, and as many samples whose genes are shuffled."""
    usual = as_anndata(query, "dense")
    strange = usual.copy()
    rng = np.random.default_rng(0)
    strange.X = rng.permuted(strange.X, axis=1)
    strange.obs_names = [f"strange{k}" for k in range(strange.n_obs)]
    anndata.concat([usual, strange]).write_h5ad(tmp_path / "strange.h5ad")
    return tmp_path / "strange.h5ad"


def test_samples_that_look_like_no_class_lose_their_label(model, strange_file, tmp_path):
    with_experience(model)
    done = predict_file(strange_file, model, tmp_path / "labels.csv", unknown_rate=0.05)
    table = pd.read_csv(tmp_path / "labels.csv", index_col="sample")
    lost = table["label"] == "unassigned"
    strange = table.index.str.startswith("strange")
    assert lost[strange].mean() > 0.7
    assert lost[~strange].mean() < 0.4
    assert any(f"{lost.mean():.1%} of the samples look like no class" in n for n in done.notes)
    adata = anndata.read_h5ad(strange_file)
    optirank.tl.annotate(adata, model, unknown_rate=0.05)
    assert (adata.obs["optirank"] == "unassigned").tolist() == lost.tolist()


@pytest.mark.parametrize("rate", [0.0, 1.0, -1.0])
def test_a_rate_is_a_share(model, query_file, tmp_path, rate):
    with_experience(model)
    with pytest.raises(ValueError, match="unknown rate"):
        predict_file(query_file, model, tmp_path / "labels.csv", unknown_rate=rate)


def test_a_rate_needs_a_model_that_remembers(model, query_file, tmp_path):
    with pytest.raises(ValueError, match="does not know what held-out samples look like"):
        predict_file(query_file, model, tmp_path / "labels.csv", unknown_rate=0.01)


def test_no_error_is_promised_for_a_query_that_differs(model, query_file, tmp_path):
    with_held_out(with_experience(model, shift=-0.5))
    done = predict_file(query_file, model, tmp_path / "labels.csv", target_error=0.05)
    (note,) = [note for note in done.notes if "can be promised for this query" in note]
    assert "shifted" in note
