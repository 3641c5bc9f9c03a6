"""At which level of a tree the classes of a shipped model are told apart.

A class is shipped at the finest level at which two studies that had no part in its
training give a sensitivity and a specificity of 80 %, each with ten samples of it. If a
label that can be judged so fails, it and the labels beside it become their parent. A
label that fewer studies can judge stays, and its card says by how little it was judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from optirank.model.tree import Tree
from optirank.workflow.levels import positions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FEWEST = 10  # samples of a class in a set that judges it
ENOUGH = 0.8  # sensitivity and specificity
STUDIES = 2  # that must agree


@dataclass(frozen=True)
class Judgement:
    """True labels of a set and the leaves that a model gave; sets of one study share
    donors or a laboratory's run.
    """

    name: str
    study: str
    truth: ArrayLike
    leaves: ArrayLike


def level_counts(tree: Tree, judgements: Iterable[Judgement]) -> pd.DataFrame:
    """One line per set and label: right labels, samples, wrong labels of others.

    A sample counts for a label where its truth says whether it is one: a T cell of
    unknown kind says nothing of CD4 T cells.
    """
    rows = []
    for judged in judgements:
        truth = positions(tree, judged.truth)
        given = positions(tree, judged.leaves)
        known = truth >= 0
        true_path, given_path = tree.paths[truth[known]], tree.paths[given[known]]
        for label in tree.labels:
            place = tree.place[label]
            is_truth = (true_path == place).any(axis=1)
            above = [tree.place[name] for name in tree.path(label)[:-1]]
            decided = is_truth | ~pd.Series(true_path[:, -1]).isin(above).to_numpy()
            called = (given_path == place).any(axis=1)
            rows.append(
                {
                    "set": judged.name,
                    "study": judged.study,
                    "label": label,
                    "right": int((is_truth & called).sum()),
                    "n": int(is_truth.sum()),
                    "false": int((decided & ~is_truth & called).sum()),
                    "n_others": int((decided & ~is_truth).sum()),
                }
            )
    return pd.DataFrame(rows)


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Of each label, the studies that can judge it and those in which it passes.

    A study of several sets passes a label where all its sets that can judge it do.
    """
    judging = table[(table["n"] >= FEWEST) & (table["n_others"] >= FEWEST)]
    sensitivity = judging["right"] / judging["n"]
    specificity = 1 - judging["false"] / judging["n_others"]
    passed = (sensitivity >= ENOUGH) & (specificity >= ENOUGH)
    by_study = passed.groupby([judging["label"], judging["study"]]).all()
    found = by_study.groupby(level="label").agg(judged="size", passed="sum")
    return found.reindex(table["label"].unique(), fill_value=0)


def shipped_tree(tree: Tree, table: pd.DataFrame) -> Tree:
    """The tree whose leaves are told apart; the same one where all of them are."""
    found = verdicts(table)
    failed = [
        label
        for label in tree.leaves
        if found.loc[label, "judged"] >= STUDIES > found.loc[label, "passed"]
    ]
    for label in failed:
        if parent := tree.parents[label]:
            return Tree(
                {
                    name: above
                    for name, above in tree.parents.items()
                    if name == parent or parent not in tree.path(name)
                }
            )
    return tree


def leaves_of(tree: Tree, whole: Tree, labels: Sequence[str]) -> list[str]:
    """Labels of the whole tree at the level of the leaves of a smaller one."""
    known = set(tree.parents)
    return [
        next(name for name in reversed(whole.path(label)) if name in known)
        for label in labels
    ]
