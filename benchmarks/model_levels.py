"""At which level of a tree the classes of a shipped model are told apart.

A class is shipped at the finest level at which two studies that had no part in its
training give a sensitivity and a specificity of 80 %, each with ten samples of it. If a
label that can be judged so fails, it and the labels beside it become their parent. A
label that fewer studies can judge stays, and its card says by how little it was judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from optirank.data.objects import profiles_of
from optirank.model import Tree
from optirank.model.card import ClassCounts
from optirank.verbs.labelling import label_profiles
from optirank_lab.data.profiles import changed, origin_of

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import ArrayLike

    from optirank import Model

FEWEST = 10  # samples of a class in a set that judges it
ENOUGH = 0.8  # sensitivity and specificity
STUDIES = 2  # that must agree


@dataclass(frozen=True)
class Judgement:
    """True labels of a set and the leaves that a model gave; sets of one study share
    donors or a laboratory's run.
    """

    name: str
    study: str  # "" where it is one of those of the training
    truth: ArrayLike
    leaves: ArrayLike


def level_counts(tree: Tree, judgements: Iterable[Judgement]) -> pd.DataFrame:
    """One line per set and label: right labels, samples, wrong labels of others.

    A sample counts for a label where its truth says whether it is one: a T cell of
    unknown kind says nothing of CD4 T cells.
    """
    rows = []
    for judged in judgements:
        truth = tree.positions(judged.truth)
        given = tree.positions(judged.leaves)
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

    A study of several sets passes a label where all its sets that can judge it do. Sets
    that may share donors with the training (study "") are not counted.
    """
    judging = _judging(table)
    passed = judging[["sensitivity", "specificity"]].min(axis=1) >= ENOUGH
    by_study = passed.groupby([judging["label"], judging["study"]]).all()
    found = by_study.groupby(level="label").agg(judged="size", passed="sum")
    return found.reindex(table["label"].unique(), fill_value=0)


def _judging(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that can judge a label, with sensitivity and specificity."""
    apart = table["study"] != ""
    rows = table[apart & (table["n"] >= FEWEST) & (table["n_others"] >= FEWEST)]
    return rows.assign(
        sensitivity=rows["right"] / rows["n"],
        specificity=1 - rows["false"] / rows["n_others"],
    )


def shipped_tree(tree: Tree, table: pd.DataFrame) -> Tree:
    """The tree whose leaves are told apart; the same one where all of them are."""
    for label in _failed(tree.leaves, verdicts(table)):
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


def judgements(
    model: Model, others: Iterable[AnnData], label: str, studies: dict[str, str]
) -> list[Judgement]:
    """What a model says of the sets that had no part in its training."""
    judged = []
    for other in others:
        known = other.obs[label].notna().to_numpy()
        labels = label_profiles(profiles_of(other), model)
        judged.append(
            Judgement(
                origin_of(other),
                study_of(origin_of(other), studies),
                other.obs[label][known].to_numpy(dtype=object),
                labels.classes[labels.chosen[known]],
            )
        )
    return judged


def study_of(name: str, studies: dict[str, str]) -> str:
    """The study of a set: its own name, unless the recipe says another."""
    return studies.get(name, name)


def at_levels(data: AnnData, label: str, tree: Tree, whole: Tree) -> AnnData:
    """The same samples with the labels that a smaller tree has."""
    labels = data.obs[label]
    names = [name for name in labels.dropna().unique() if name in whole.parents]
    mapping = dict(zip(names, leaves_of(tree, whole, names), strict=True))
    return changed(data, obs=data.obs.assign(**{label: labels.map(mapping)}))


def level_problems(leaves: Iterable[str], table: pd.DataFrame) -> list[str]:
    """Leaves that enough studies judge, of which too few tell them apart."""
    found = verdicts(table)
    judging = _judging(table)
    problems = []
    for label in _failed(leaves, found):
        rows = judging[judging["label"] == label]
        figures = [
            f"{row['set']} {row['sensitivity']:.0%}, {row['specificity']:.0%}"
            for row in rows.to_dict("records")
        ]
        problems.append(
            f"{label}: told apart in {found.loc[label, 'passed']} of "
            f"{found.loc[label, 'judged']} studies (sensitivity, specificity: "
            f"{'; '.join(figures)})"
        )
    return problems


def with_levels(
    model: Model, tree: Tree, table: pd.DataFrame, merged: Iterable[str]
) -> Model:
    """A model whose card says how its labels were judged.

    ``merged`` are the problems for which finer labels became their parents.
    """
    found = verdicts(table)
    notes = [
        f"{problem}, so it and the labels beside it became their parent"
        for problem in merged
    ]
    for label in tree.leaves:
        if found.loc[label, "judged"] < STUDIES:
            rows = table[table["label"] == label]
            notes.append(
                f"{label}: {rows['right'].sum()} of {rows['n'].sum()} samples right in "
                f"all; other studies with {FEWEST} of them: "
                f"{found.loc[label, 'judged']}"
            )
    related = sorted(table.loc[table["study"] == "", "set"].unique())
    if related:
        notes.append(
            f"{', '.join(related)}: may share donors with the training, and do not "
            "decide at which level a class ships"
        )
    card = replace(model.card, notes=(*model.card.notes, *notes))
    return replace(model, card=card)


def leaf_counts(
    tree: Tree, truth: ArrayLike, leaves: ArrayLike
) -> dict[str, ClassCounts]:
    """How the samples of each leaf, and of other labels, were labelled."""
    table = level_counts(tree, [Judgement("", "", truth, leaves)])
    rows = table[table["label"].isin(tree.leaves) & (table["n"] > 0)]
    return {
        row["label"]: ClassCounts(row["right"], row["n"], row["false"], row["n_others"])
        for row in rows.to_dict("records")
    }


def _failed(leaves: Iterable[str], found: pd.DataFrame) -> list[str]:
    """Leaves that enough studies judge, of which too few tell them apart."""
    return [
        label
        for label in leaves
        if found.loc[label, "judged"] >= STUDIES > found.loc[label, "passed"]
    ]
