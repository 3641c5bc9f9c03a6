"""Trees of labels: how they are made and refused, and which label of a way is given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import assert_refused, make_panel, pack, unpack

from optirank import Model, load, save
from optirank.model.confidence import fit_error_control, raise_threshold
from optirank.model.tree import (
    NO_LABEL,
    Tree,
    fit_tree_control,
    tree_of_columns,
    tree_of_table,
)

BLOOD = Tree(
    {
        "lymphoid": "",
        "T": "lymphoid",
        "CD4 T": "T",
        "CD8 T": "T",
        "B": "lymphoid",
        "myeloid": "",
        "Mono": "myeloid",
        "DC": "myeloid",
        "platelet": "",
    }
)
CLASSES = ["DC", "CD8 T", "B", "platelet", "CD4 T", "Mono"]


def random_probabilities(seed: int, n: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(len(CLASSES), 0.4), n)


def names(positions: np.ndarray) -> list[str]:
    return [BLOOD.labels[k] if k != NO_LABEL else "" for k in positions]


# Probabilities and the way down


def test_an_inner_label_is_as_probable_as_its_leaves_together():
    p = random_probabilities(0)
    whole = BLOOD.probabilities(p, CLASSES)
    for column, label in enumerate(BLOOD.labels):
        below = [k for k, leaf in enumerate(CLASSES) if label in BLOOD.path(leaf)]
        np.testing.assert_allclose(whole[:, column], p[:, below].sum(axis=1))


def test_no_label_is_more_than_certain():
    p = random_probabilities(0, 2000)
    p[:, [CLASSES.index("platelet"), CLASSES.index("DC"), CLASSES.index("Mono")]] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    assert (p.sum(axis=1) > 1).any()  # by rounding
    assert (BLOOD.probabilities(p, CLASSES) <= 1).all()


@given(st.integers(0, 1000), st.floats(0, 1))
def test_a_fine_label_never_contradicts_the_coarse_one(seed, threshold):
    way = BLOOD.descend(random_probabilities(seed, 20), CLASSES)
    assert (np.diff(way.confidence, axis=1) <= 0).all()
    fine, fine_confidence = way.label(threshold)
    coarse, _ = way.label(max(threshold, 0.9))
    for finer, coarser in zip(names(fine), names(coarse), strict=True):
        assert not coarser or coarser in BLOOD.path(finer)
    assert (fine_confidence[fine != NO_LABEL] >= threshold).all()


@given(st.integers(0, 1000), st.floats(0.5, 1, exclude_min=True))
def test_the_label_is_the_deepest_of_the_whole_tree_that_is_sure(seed, threshold):
    p = random_probabilities(seed, 30)
    whole = BLOOD.probabilities(p, CLASSES)
    label, _ = BLOOD.descend(p, CLASSES).label(threshold)
    for row, got in zip(whole, names(label), strict=True):
        sure = [
            name
            for name, share in zip(BLOOD.labels, row, strict=True)
            if share >= threshold
        ]
        assert got == max(sure, key=lambda name: len(BLOOD.path(name)), default="")


def test_two_subtypes_of_one_type_are_stronger_than_another_type_alone():
    p = np.array([[0, 0.3, 0, 0, 0.3, 0.4]])  # CD8 T, CD4 T, Mono
    way = BLOOD.descend(p, CLASSES)
    label, confidence = way.label()
    assert names(label) == ["T"]
    assert confidence == pytest.approx(0.6)


def test_a_label_above_or_below_the_truth_is_right():
    p = np.zeros((3, 6))
    p[:, CLASSES.index("CD4 T")] = 1
    way = BLOOD.descend(p, CLASSES)
    truth = np.array([BLOOD.place[name] for name in ("CD8 T", "CD4 T", "T")])
    expected = [[True, True, False], [True, True, True], [True, True, True]]
    assert way.right(BLOOD, truth).tolist() == expected


# One error control for all levels


@given(st.integers(0, 1000))
def test_error_control_tests_the_labels_that_a_threshold_gives(seed):
    rng = np.random.default_rng(seed)
    p = random_probabilities(seed, 150)
    truth = np.array(
        [
            BLOOD.place[CLASSES[k]]
            for k in (rng.random((150, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 5)
        ]
    )
    way = BLOOD.descend(p, CLASSES)
    right = way.right(BLOOD, truth)
    control = fit_error_control(way.confidence, right)
    for threshold, error, kept in zip(
        control.thresholds, control.errors, control.kept, strict=True
    ):
        label, _ = way.label(threshold)
        given_labels = label != NO_LABEL
        depth = (way.confidence >= threshold).sum(axis=1) - 1
        wrong = ~right[np.arange(150), depth]
        assert error == pytest.approx(wrong[given_labels].mean())
        assert kept == pytest.approx(np.mean(label == way.leaf))


@given(st.integers(0, 1000), st.floats(0.02, 0.3))
def test_a_raised_threshold_expects_the_error_of_the_labels_it_gives(seed, target):
    way = BLOOD.descend(random_probabilities(seed, 80), CLASSES)
    threshold = raise_threshold(way.confidence, 0.5, target)
    label, confidence = way.label(threshold)
    given_labels = label != NO_LABEL
    assert threshold >= 0.5
    if given_labels.any():
        assert (1 - confidence[given_labels]).mean() <= target + 1e-12


# Trees from columns and tables


def cells() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "coarse": ["L", "L", "M", "M", "L", None, "P"],
            "fine": ["T", "B", "Mono", "DC", None, None, "P"],
        },
        index=[f"cell_{k}" for k in range(7)],
    )


def test_nested_columns_are_a_tree_and_the_finest_label_of_each_sample():
    tree, finest = tree_of_columns(cells())
    assert tree.parents == {
        "L": "", "T": "L", "B": "L", "M": "", "Mono": "M", "DC": "M", "P": "",
    }  # fmt: skip
    assert tree.levels == ("coarse", "fine")
    assert finest.tolist() == ["T", "B", "Mono", "DC", "L", None, "P"]


def test_a_label_below_two_others_is_refused_with_the_cells():
    table = cells()
    table.loc["cell_3", "fine"] = "T"
    with pytest.raises(ValueError, match="not nested: 'T' stands") as refused:
        tree_of_columns(table)
    for word in ("'L'", "'M'", "cell_3", "1 sample"):
        assert word in str(refused.value)


def test_a_label_left_out_and_one_that_is_repeated_are_the_same():
    columns = pd.DataFrame({"a": ["A", "A", "B", "B"], "b": ["", "A", "x", "y"]})
    tree, finest = tree_of_columns(columns)
    assert tree.parents == {"A": "", "B": "", "x": "B", "y": "B"}
    assert finest.tolist() == ["A", "A", "x", "y"]


def test_one_column_is_no_tree():
    with pytest.raises(ValueError, match="two different ones"):
        tree_of_columns(cells()[["coarse"]])


COUNTS = {"CD4 T": 9, "CD8 T": 8, "B": 7}


def test_a_table_of_labels_and_parents_is_a_tree():
    rows = [("CD4 T", "T"), ("CD8 T", "T"), ("T", "lymphoid")]
    tree = tree_of_table(rows, COUNTS, "tree.csv")
    assert tree.path("CD8 T") == ("lymphoid", "T", "CD8 T")
    assert tree.path("B") == ("B",)
    assert set(tree.leaves) == set(COUNTS)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("CD4 T", "T"), ("CD4 T", "L")], ["'CD4 T'", "two parents"]),
        ([("CD4 T", "T"), ("T", "L"), ("L", "T")], ["cycle", "T below L below T"]),
        ([("CD4 T", "T"), ("CD8  T", "T")], ["neither samples", "CD8 T"]),
        ([("CD4 T", "T"), ("", "T")], ["''", "neither samples"]),
        ([("CD4 T", "CD4 T")], ["cycle"]),
    ],
    ids=["two parents", "cycle", "leaf without samples", "no label", "own parent"],
)
def test_bad_tables_are_refused_with_their_labels(rows, words):
    with pytest.raises(ValueError, match="tree") as refused:
        tree_of_table(rows, COUNTS, "tree.csv")
    for word in words:
        assert word in str(refused.value)


@pytest.mark.parametrize(
    ("parents", "match"),
    [
        ({"a": "b", "b": "a", "c": "", "d": ""}, "cycle"),
        ({"a": "x", "b": ""}, "no line for the label 'x'"),
        ({"a": "", "b": "a"}, "1 leaves"),
        ({"": "", "b": ""}, "without a name"),
    ],
)
def test_what_is_no_tree_cannot_be_made(parents, match):
    with pytest.raises(ValueError, match=match):
        Tree(parents)


def test_leaves_that_are_not_the_classes_are_refused():
    model = make_panel(n_classes=len(CLASSES))
    replace(model, classes=np.array(CLASSES), tree=BLOOD)
    others = ["other" if name == "DC" else name for name in CLASSES]
    with pytest.raises(ValueError, match=r"not the classes: .*DC"):
        replace(model, classes=np.array(others), tree=BLOOD)


# Models with a tree


def model_with_tree() -> Model:
    model = make_panel(n_classes=6)
    named = replace(model, classes=np.array(CLASSES))
    terms = {"T": "CL:0000084", "DC": "CL:0000451"}
    return replace(named, tree=BLOOD, terms=terms)


def test_a_model_file_keeps_the_tree_and_the_terms(tmp_path):
    model = model_with_tree()
    save(model, tmp_path / "m.optirank")
    again = load(tmp_path / "m.optirank")
    assert again.tree == model.tree
    assert again.tree.labels == model.tree.labels
    assert again.terms == model.terms


@pytest.mark.parametrize(
    ("parents", "match"),
    [
        ({"a": "b", "b": "a"}, "cycle"),
        ({"a": "", "b": ""}, "not the classes"),
        ("B", "no attribute 'items'"),
    ],
)
def test_a_file_with_a_bad_tree_is_refused(tmp_path, parents, match):
    path = tmp_path / "m.optirank"
    save(model_with_tree(), path)
    document, arrays = unpack(path)
    document["tree"]["parents"] = parents
    assert_refused(pack(path, document, arrays), match)


def test_the_control_of_a_tree_judges_coarse_and_fine_labels():
    p = random_probabilities(3, 150)
    truth = np.array(CLASSES)[p.argmax(axis=1)]
    control = fit_tree_control(BLOOD, p, CLASSES, truth)
    way = BLOOD.descend(p, CLASSES)
    right = way.right(BLOOD, np.array([BLOOD.place[name] for name in truth]))
    expected = fit_error_control(way.confidence, right, truth)
    np.testing.assert_array_equal(control.bounds, expected.bounds)
