"""Operating points: a class is found with the sensitivity that was asked for."""

from __future__ import annotations

import functools
from dataclasses import replace

import anndata
import numpy as np
import pandas as pd
import pytest

from optirank import tl
from optirank.model import load, save
from optirank.verbs.withholding import operating_point


def patients(n_samples, seed):
    """Two overlapping classes, of different frequency."""
    rng = np.random.default_rng(seed)
    is_sick = rng.random(n_samples) < 0.3
    values = rng.normal(size=(n_samples, 80))
    values[:, :10] += 0.45 * is_sick[:, None]
    obs = pd.DataFrame(
        {"state": np.where(is_sick, "sick", "well")},
        index=[f"p{k}" for k in range(n_samples)],
    )
    var = pd.DataFrame(index=[f"GENE{k}" for k in range(80)])
    return anndata.AnnData(values, obs=obs, var=var)


@functools.cache
def trained():
    return tl.train(patients(400, 0), "state", verbose=False, n_jobs=1).model


@pytest.mark.parametrize("name", ["sick", "well"])
def test_a_class_is_found_with_the_sensitivity_asked_for(name):
    query = patients(3000, 1)
    found = tl.evaluate(query, trained(), "state", sensitivity={name: 0.9})
    plain = tl.evaluate(query, trained(), "state")
    rates, before = (done.performance.per_class.loc[name] for done in (found, plain))
    assert rates["sensitivity"] == pytest.approx(0.9, abs=0.07)
    assert before["sensitivity"] < rates["sensitivity"]
    assert rates["specificity"] < before["specificity"]
    said = " ".join(found.notes)
    assert "on held-out samples of the training a sensitivity of" in said
    assert f"for {name} a sensitivity of 90.0 % was asked for; on these samples" in said


def test_a_further_sample_is_found_with_the_probability_asked_for():
    rng = np.random.default_rng(0)
    n_found = []
    for _ in range(1500):
        held_out = {
            "sick": tuple(np.sort(rng.beta(3, 2, 24)).tolist()),
            "well": tuple(np.sort(rng.beta(2, 3, 24)).tolist()),
        }
        card = replace(trained().card, held_out_probabilities=held_out)
        model = replace(trained(), card=card, classes=np.array(["well", "sick"]))
        _, threshold, _ = operating_point(model, {"sick": 0.9})
        n_found.append(rng.beta(3, 2) >= threshold)
    assert np.mean(n_found) == pytest.approx(0.92, abs=0.025)  # 23 of 25


def test_labels_follow_the_threshold_and_the_file_keeps_what_it_takes(tmp_path):
    model = load(save(trained(), tmp_path / "m.optirank") or tmp_path / "m.optirank")
    query = patients(100, 2)
    tl.annotate(query, model, sensitivity="sick=0.95")
    _, threshold, _ = operating_point(model, {"sick": 0.95})
    is_sick = query.obsm["optirank_proba"]["sick"].to_numpy() >= threshold
    assert (query.obs["optirank"] == np.where(is_sick, "sick", "well")).all()
    assert query.uns["optirank"]["options"]["sensitivity"] == "sick=0.95"


def test_an_operating_point_that_cannot_be_is_refused():
    query = patients(20, 3)
    for asked, message in (
        ({"ill": 0.9}, "the model's classes are sick, well"),
        ({"sick": 1.5}, "between 0 and 1"),
        ({"sick": 0.9999}, "held-out samples can show at most"),
        ({"sick": 0.9, "well": 0.9}, "give one"),
        ("sick", "write CLASS=SHARE"),
    ):
        with pytest.raises(ValueError, match=message):
            tl.annotate(query, trained(), sensitivity=asked)
    with pytest.raises(ValueError, match="a threshold of its own"):
        tl.annotate(query, trained(), sensitivity={"sick": 0.9}, threshold=0.8)
    smaller = trained().smaller(min(trained().panels))
    if smaller.n_genes != trained().n_genes:
        with pytest.raises(ValueError, match="stores no held-out probabilities"):
            tl.annotate(query, smaller, sensitivity={"sick": 0.9})


def test_models_of_more_classes_have_no_operating_point(model, query):
    from example_model import as_anndata

    with pytest.raises(ValueError, match=f"the model has {len(model.classes)} classes"):
        tl.annotate(as_anndata(query), model, sensitivity={"b cell": 0.9})
