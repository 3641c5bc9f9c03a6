"""The shipped models: they can be made again, and label real sets of other laboratories."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from optirank import load, save
from optirank.datasets.example import write_example
from optirank.model.catalogue import find_model, known_models
from optirank.workflow.explain import judged
from optirank.workflow.predict import PredictOptions, label_profiles
from optirank.workflow.train import TrainingOptions, train

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import make_models  # noqa: E402

RECIPES = make_models.read_recipes()
RESULTS = pd.read_csv(ROOT / "results/models.csv", comment="#", keep_default_na=False)
SHIPPED = sorted(
    path.stem for path in (ROOT / "src/optirank/models").glob("*.optirank")
)
ASKED = ("pancreas", "blood", "immune", "tumours", "leukaemia", "breast-er")
SLOW = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("pancreas-human", "immune-mouse")
]


def sets(name, data_folder):
    """The sets of a recipe, or skip."""
    missing = [
        one
        for one in make_models.sets_of(RECIPES[name])
        if not (data_folder / f"{one}.h5ad").is_file()
    ]
    if missing:
        pytest.skip(f"no {missing[0]} here: optirank datasets fetch {missing[0]}")


def right_labels(name, one, data_folder):
    """Right labels and samples of each class that a shipped model gives to a set of its card."""
    label = next(
        (
            j.get("label")
            for j in make_models.judges(RECIPES[name])
            if j["set"] == one["name"]
        ),
        None,
    )
    found = make_models.read_set(data_folder, one["name"], RECIPES[name], label)
    return make_models.counted(found, load(name))


def test_the_models_asked_for_are_there_and_small():
    for asked in ASKED:
        assert any(name.startswith(asked) for name in SHIPPED)
    assert set(SHIPPED) <= set(RECIPES)
    assert sum(find_model(name).stat().st_size for name in SHIPPED) < 1_000_000


@pytest.mark.parametrize("name", SHIPPED)
def test_a_model_is_good_on_every_other_set_as_its_card_and_the_results_say(name):
    summary = load(name).training_summary_
    mean, lowest, n_sets = judged(summary)
    assert n_sets >= 2
    assert lowest >= make_models.ENOUGH
    assert mean >= lowest
    table = make_models.counts(name, load(name), True)
    there = RESULTS[RESULTS["model"] == name].reset_index(drop=True)
    pd.testing.assert_frame_equal(table, there, check_dtype=False)
    assert [one[0] for one in summary["missing_genes"]] == [0.0, 0.1, 0.3]
    assert "Not for" in summary["description"]


def test_candidates_that_are_not_good_enough_are_not_shipped():
    assert set(RESULTS["model"]) == set(RECIPES)
    assert set(RESULTS["model"][RESULTS["shipped"] == "yes"]) == set(SHIPPED)
    for _, table in RESULTS[RESULTS["shipped"] == "no"].groupby("model"):
        judged_on = table[table["n"] > 0]
        shares = (judged_on["right"] / judged_on["n"]).groupby(judged_on["set"]).mean()
        assert not len(shares) or shares.min() < make_models.ENOUGH


@pytest.mark.parametrize("name", ["leukaemia-human", "bladder-stage-human", *SLOW])
def test_a_model_is_made_again(name, data_folder, tmp_path):
    sets(name, data_folder)
    model, shipped = make_models.make(name, RECIPES[name], data_folder), load(name)
    assert list(model.feature_names_in_) == list(shipped.feature_names_in_)
    for size, panel in shipped.path_.items():
        again = model.path_[size]
        assert np.array_equal(again.genes, panel.genes)
        np.testing.assert_allclose(again.coef, panel.coef, rtol=1e-7, atol=1e-9)
    assert model.training_summary_["sources"] == shipped.training_summary_["sources"]
    save(model, tmp_path / "again.optirank")
    assert (tmp_path / "again.optirank").read_bytes() == find_model(name).read_bytes()


@pytest.mark.parametrize("name", SHIPPED)
def test_a_model_labels_a_real_set_of_another_laboratory(name, data_folder):
    sets(name, data_folder)
    for one in load(name).training_summary_["sources"]:
        found = right_labels(name, one, data_folder)
        if not one["trained"]:
            assert found == one["classes"]
        assert np.mean([right / n for right, n in found.values()]) >= make_models.ENOUGH


def test_every_shipped_model_is_known_by_name():
    assert set(SHIPPED) <= set(known_models())


def test_a_recipe_makes_a_judged_model_of_the_panel_s_genes_alone(tmp_path):
    write_example(tmp_path, 150, 60)
    recipe = {"train": ["reference"], "judge": ["query"], "genes": 50}
    recipe |= {"description": "x", "tissue": "blood", "species": "human"}
    model = make_models.make("toy", recipe, tmp_path)
    assert list(model.feature_names_in_) == sorted(
        model.feature_names_in_, key=_place(tmp_path)
    )
    save(model, tmp_path / "toy.optirank")
    summary = load(tmp_path / "toy.optirank").training_summary_
    trained, other = summary["sources"]
    assert (trained["trained"], trained["classes"]) == (True, {})
    assert not other["trained"]
    whole = train(
        make_models.read_set(tmp_path, "reference"),
        TrainingOptions(label="cell_type", n_genes=50),
    ).model
    query = make_models.read_set(tmp_path, "query")
    for small, large in ((model, whole), (model.smaller(20), whole.smaller(20))):
        options = PredictOptions(max_missing=1.0, unknown_rate=0.05)
        one, two = (label_profiles(query, each, options) for each in (small, large))
        assert np.array_equal(one.probabilities, two.probabilities)
        assert np.array_equal(one.withheld, two.withheld)
    right = one.labels == query.obs["cell_type"].to_numpy().astype(str)
    assert sum(n for _, n in other["classes"].values()) == len(right)


def _place(folder):
    names = list(make_models.read_set(folder, "reference").gene_names)
    return names.index
