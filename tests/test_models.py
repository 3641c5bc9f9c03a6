"""The shipped models: every class is judged elsewhere, and they can be made again."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from optirank import load, save
from optirank.datasets.example import write_example
from optirank.model import Tree
from optirank.model.file import find_model, known_models

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))
import make_models  # noqa: E402
from model_levels import at_levels  # noqa: E402
from model_rivals import ALL_GENES, AS_MANY_GENES  # noqa: E402

from profiles import label_profiles  # noqa: E402

RECIPES = make_models.read_recipes()
RESULTS = pd.read_csv(ROOT / "results/models.csv", comment="#", keep_default_na=False)
SHIPPED = sorted(
    path.stem for path in (ROOT / "src/optirank/models").glob("*.optirank")
)
SLOW = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("pancreas-human", "blood-human")
]


def skip_without_sets(name, data_folder):
    """Skip where a set of a recipe is not there."""
    for set_name in make_models.sets_of(RECIPES[name]):
        if not (data_folder / f"{set_name}.h5ad").is_file():
            pytest.skip(f"no {set_name}: optirank-lab datasets fetch {set_name}")


def test_the_models_are_small_and_have_recipes():
    assert {"pancreas-human", "blood-human", "breast-er-human"} <= set(SHIPPED)
    assert set(SHIPPED) <= set(RECIPES)
    assert set(SHIPPED) <= set(known_models())
    assert sum(find_model(name).stat().st_size for name in SHIPPED) < 1_000_000


@pytest.mark.parametrize("name", SHIPPED)
def test_every_class_of_a_model_is_judged_on_another_set(name):
    model = load(name)
    card = model.card
    assert make_models.problems_of(card, RECIPES[name]) == []
    counts = make_models.counts(name, card, True)
    assert set(counts["class"]) == {str(label) for label in model.classes}
    there = RESULTS[RESULTS["model"] == name].reset_index(drop=True)
    pd.testing.assert_frame_equal(counts, there, check_dtype=False)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_card_has_use_rivals_and_terms(name):
    model = load(name)
    card = model.card
    assert "Not for" in card.description
    assert card.terms.count(": ") == card.terms.count("; ") + 1
    assert all(judged.terms and judged.platform for judged in card.judged)
    assert "Judged on" in card.description
    assert {AS_MANY_GENES, ALL_GENES} <= card.baselines.keys()
    assert [share for share, _ in model.panel.missing] == [0.0, 0.1, 0.3, 0.5, 0.7]


def test_candidates_that_are_not_good_enough_are_not_shipped():
    assert set(RESULTS["model"]) == set(RECIPES)
    assert set(RESULTS["model"][RESULTS["shipped"] == "yes"]) == set(SHIPPED)
    for name, counts in RESULTS[RESULTS["shipped"] == "no"].groupby("model"):
        assert make_models.class_problems(counts, RECIPES[name])


@pytest.mark.parametrize("name", ["leukaemia-human", *SLOW])
def test_a_model_is_made_again_from_its_recipe(name, data_folder, tmp_path):
    # One machine gives the same bytes every time (tests/verbs/test_training.py);
    # another processor may round sums in another order.
    skip_without_sets(name, data_folder)
    candidate = make_models.make(name, RECIPES[name], data_folder)
    save(candidate.model, tmp_path / "again.optirank")
    again = leaves(contents(tmp_path / "again.optirank"))
    shipped = leaves(contents(find_model(name)))
    for parts in (again, shipped):  # the words of a training may change
        for place in [place for place in parts if "notes" in place]:
            del parts[place]
    assert again.keys() == shipped.keys()
    for place, value in shipped.items():
        if isinstance(value, float):
            value = pytest.approx(value, rel=1e-3, abs=1e-6)
        assert again[place] == value, place


def contents(path):
    """The documents and arrays of a model file, by name."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return {
        name: np.load(io.BytesIO(member)).tolist()
        if name.endswith(".npy")
        else json.loads(member)
        for name, member in members.items()
    }


def leaves(value, path=()):
    """Numbers and texts within dictionaries and lists, by where they are."""
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        parts = [leaves(part, (*path, key)) for key, part in entries]
        return {key: leaf for part in parts for key, leaf in part.items()}
    return {path: value}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_model_labels_a_set_as_its_card_says(name, data_folder):
    skip_without_sets(name, data_folder)
    model = load(name)
    classes = [str(label) for label in model.classes]
    for judged in model.card.judged:
        if judged.left_out:
            continue
        data = make_models.read_set(data_folder, judged.name, RECIPES[name])
        if model.tree is None:
            data = make_models.restricted(data, classes)
        else:
            whole = Tree(RECIPES[name]["tree"])
            data = at_levels(data, "cell_type", model.tree, whole)
        again = make_models.judged_set(model, data)
        assert again == judged


def test_a_recipe_makes_a_model_of_the_classes_that_can_be_judged(tmp_path):
    write_example(tmp_path, 150, 120)
    recipe = {"train": ["reference"], "judge": ["query"]}
    recipe |= {"description": "x", "tissue": "blood", "species": "human"}
    query = make_models.read_set(tmp_path, "query")
    numbers = make_models.sample_numbers(query)
    candidate = make_models.make("toy", recipe, tmp_path)
    model = candidate.model
    assert {str(label) for label in model.classes} == {
        label for label, number in numbers.items() if number >= make_models.FEWEST
    }
    (judged,) = model.card.judged
    labels = label_profiles(query, model)
    truth = query.obs["cell_type"].to_numpy().astype(str)
    right = labels.classes[labels.chosen].astype(str) == truth
    assert sum(counts.right for counts in judged.classes.values()) == right.sum()
    assert np.isfinite(list(model.card.baselines.values())).all()


def test_a_recipe_with_a_tree_makes_a_model_that_knows_it(tmp_path):
    write_example(tmp_path, 150, 120)
    query = make_models.read_set(tmp_path, "query")
    first, second, *others = make_models.sample_numbers(query)
    parents = {"both": "", first: "both", second: "both", **dict.fromkeys(others, "")}
    recipe = {"train": ["reference"], "judge": ["query"], "tree": parents}
    recipe |= {"description": "x", "tissue": "blood", "species": "human"}
    model = make_models.make("toy", recipe, tmp_path).model
    assert set(model.tree.leaves) == {str(label) for label in model.classes}
    assert set(model.terms) <= set(model.labels)
    # One study cannot show that classes are told apart, and the card says so
    judges = [note for note in model.card.notes if "other studies with" in note]
    assert len(judges) == len(model.classes)
    save(model, tmp_path / "toy.optirank")
    assert load(tmp_path / "toy.optirank").tree == model.tree
