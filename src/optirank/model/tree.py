"""A tree of labels: the classes of a model are its leaves, coarser labels are inside.

The model stays one softmax over the leaves. The probability of an inner label is the
sum over its leaves, so it is calibrated as they are, and a label is never less probable
than one below it.

A sample is led down from the top, at each label to the most probable one below. It gets
the deepest label on this way whose probability reaches a threshold, so its finer and
coarser labels never contradict each other. The way does not always end at the most
probable leaf: with 0.3, 0.3 and 0.4 for CD4 T cells, CD8 T cells and monocytes, it goes
to T cells (0.6), which the way to the best leaf would miss. For a threshold of 0.5 and
above it finds the deepest label that reaches it anywhere in the tree, because two
labels apart from each other cannot both have half of the probability.
"""

from __future__ import annotations

import difflib
import graphlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optirank._util.words import counted, some
from optirank.model.confidence import ErrorControl, fit_error_control

if TYPE_CHECKING:
    import pandas as pd

NO_LABEL = -1  # in place of a label's position
SURE = 0.5  # a label that is more probable than all others together


@dataclass(frozen=True)
class Tree:
    """Labels and the coarser label of each.

    Attributes
    ----------
    parents : the coarser label of every label; "" for those at the top.
    levels : names of the levels from coarse to fine, where they were columns.
    """

    parents: dict[str, str]
    levels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if "" in self.parents:
            raise ValueError("the tree has a label without a name")
        strange = sorted(set(self.parents.values()) - {"", *self.parents})
        if strange:
            raise ValueError(f"the tree has no line for the label {strange[0]!r}")
        try:
            graphlib.TopologicalSorter(
                {label: [parent] for label, parent in self.parents.items()}
            ).prepare()
        except graphlib.CycleError as error:
            circle = " below ".join(reversed(error.args[1]))
            raise ValueError(f"the tree has a cycle: {circle}") from None
        if len(self.leaves) < 2:
            raise ValueError(f"the tree has {len(self.leaves)} leaves: give at least 2")

    @cached_property
    def children(self) -> dict[str, tuple[str, ...]]:
        """The labels below each label; those at the top are below ""."""
        below: dict[str, list[str]] = {"": [], **{name: [] for name in self.parents}}
        for name, parent in self.parents.items():
            below[parent].append(name)
        return {name: tuple(names) for name, names in below.items()}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """All labels, each before those below it, as a drawing lists them."""
        listed = []
        waiting = [*reversed(self.children[""])]
        while waiting:
            name = waiting.pop()
            listed.append(name)
            waiting += reversed(self.children[name])
        return tuple(listed)

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The labels that have none below them: the classes of the model."""
        return tuple(name for name in self.labels if not self.children[name])

    @cached_property
    def depth(self) -> int:
        """The number of labels from the top to the deepest leaf."""
        return max(len(self.path(leaf)) for leaf in self.leaves)

    @cached_property
    def place(self) -> dict[str, int]:
        """The position of each label among ``labels``."""
        return {name: position for position, name in enumerate(self.labels)}

    def path(self, label: str) -> tuple[str, ...]:
        """The labels from the top down to a label."""
        names = [label]
        while parent := self.parents[names[-1]]:
            names.append(parent)
        return tuple(reversed(names))

    @cached_property
    def paths(self) -> NDArray[np.intp]:
        """Positions (labels, depth) of the labels from the top down to each label.

        A path that ends earlier repeats its last label.
        """
        table = np.empty((len(self.labels), self.depth), dtype=np.intp)
        for row, label in enumerate(self.labels):
            places = [self.place[name] for name in self.path(label)]
            table[row] = places + places[-1:] * (self.depth - len(places))
        return table

    def positions(self, labels: Iterable[Any]) -> NDArray[np.intp]:
        """Positions of names among ``labels``; ``NO_LABEL`` for other words."""
        places = [self.place.get(name, NO_LABEL) for name in labels]
        return np.array(places, dtype=np.intp)

    def of_classes(self, classes: Iterable[object]) -> Tree:
        """The tree of some of the leaves; labels that then have none below go too."""
        kept = {name for leaf in classes for name in self.path(str(leaf))}
        parents = {name: up for name, up in self.parents.items() if name in kept}
        return Tree(parents, self.levels)

    def contrasts(
        self, classes: Iterable[object]
    ) -> tuple[list[str], NDArray[np.float64]]:
        """The labels beside which there are others, and what turns weights of the
        classes into theirs (labels, classes): the mean over the leaves of a label minus
        that over the leaves of its parent, as a direction of length 1.
        """
        classes = [str(name) for name in classes]
        means = {"": np.full(len(classes), 1 / len(classes))}
        for label in self.labels:
            below = np.array([label in self.path(name) for name in classes])
            means[label] = below / below.sum()
        apart = [
            label
            for label in self.labels
            if len(self.children[self.parents[label]]) > 1
        ]
        rows = [means[label] - means[self.parents[label]] for label in apart]
        return apart, np.array([row / np.linalg.norm(row) for row in rows])

    def probabilities(
        self, probabilities: NDArray[np.float64], classes: Iterable[object]
    ) -> NDArray[np.float64]:
        """Probabilities (n, labels) of all labels from those (n, classes) of the
        leaves.
        """
        whole = np.zeros((len(probabilities), len(self.labels)))
        for column, name in enumerate(classes):
            whole[:, self.place[str(name)]] = probabilities[:, column]
        # From below, so that no rounding makes a label less probable than one below it
        for label in reversed(self.labels):
            if parent := self.parents[label]:
                whole[:, self.place[parent]] += whole[:, self.place[label]]
        return np.minimum(whole, 1.0)  # nor any more than certain

    def descend(
        self, probabilities: NDArray[np.float64], classes: Iterable[object]
    ) -> Descent:
        """The ways of samples by the probabilities (n, classes) of the leaves."""
        whole = self.probabilities(probabilities, classes)
        leaf = np.full(len(whole), NO_LABEL)
        for label in ("", *self.labels):
            below = [self.place[name] for name in self.children[label]]
            if below:
                here = leaf == self.place.get(label, NO_LABEL)
                best = whole[np.ix_(here, below)].argmax(axis=1)
                leaf[here] = np.array(below)[best]
        path = self.paths[leaf]
        return Descent(path, np.take_along_axis(whole, path, axis=1))


class Descent:
    """The ways of samples down a tree, from coarse to fine.

    Attributes
    ----------
    path : (n, depth), positions of labels; a way that ends earlier repeats its leaf.
    confidence : (n, depth), their probabilities, which never rise on the way.
    leaf : (n,), the leaf at the end of each way.
    """

    def __init__(self, path: NDArray[np.intp], confidence: NDArray[np.float64]) -> None:
        self.path = path
        self.confidence = confidence
        self.leaf = path[:, -1]

    def label(
        self, threshold: float = SURE
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The deepest label of each sample whose confidence reaches a threshold.

        Gives its position, or ``NO_LABEL`` where even the top is unsure, and its
        confidence; that of the top where there is no label.
        """
        n_sure = (self.confidence >= threshold).sum(axis=1)
        last = np.maximum(n_sure - 1, 0)[:, None]
        label = np.take_along_axis(self.path, last, axis=1)[:, 0]
        confidence = np.take_along_axis(self.confidence, last, axis=1)[:, 0]
        return np.where(n_sure > 0, label, NO_LABEL), confidence

    def right(self, tree: Tree, truth: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether each label (n, depth) on the way is the truth, or above or below it.

        A truth that is no leaf says nothing of the labels below it: they count as
        right.
        """
        coarser = (self.path[:, :, None] == tree.paths[truth][:, None, :]).any(axis=2)
        finer = np.logical_or.accumulate(self.path == truth[:, None], axis=1)
        return coarser | finer


def fit_tree_control(
    tree: Tree,
    probabilities: NDArray[np.float64],
    classes: Sequence[object],
    truth: ArrayLike,
) -> ErrorControl:
    """Error control of coarse and fine labels together, on held-out samples.

    ``probabilities`` (n, classes) are those of the leaves, ``truth`` the true leaves.
    """
    names = np.asarray(truth).astype(str)
    way = tree.descend(probabilities, classes)
    right = way.right(tree, tree.positions(names))
    return fit_error_control(way.confidence, right, names)


def tree_of_columns(columns: pd.DataFrame) -> tuple[Tree, NDArray[np.object_]]:
    """The tree of nested columns, from coarse to fine, and each sample's finest label.

    A sample without a value in a column is known to the coarser label alone; one
    without any has None. A label that repeats its parent's name is the same label. A
    ValueError where a label stands below two others names the samples.
    """
    names = [str(name) for name in columns.columns]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(
            f"the columns {some(names)}: give two different ones or more, from coarse "
            "to fine"
        )
    text = columns.astype(object).where(columns.notna(), "").astype(str)
    finest = np.full(len(text), None, dtype=object)
    parents: dict[str, str] = {}
    for line, rows in text.groupby(names, sort=False).indices.items():
        # From coarse to fine, without empty labels and repeated ones
        way = ["", *(str(label) for label in np.atleast_1d(np.array(line)) if label)]
        for parent, label in itertools.pairwise(way):
            if label == parent:
                continue
            known = parents.setdefault(label, parent)
            if known != parent:
                raise ValueError(
                    f"the columns {some(names)} are not nested: {label!r} stands below "
                    f"{known or 'none'!r} and below {parent or 'none'!r} "
                    f"({counted(len(rows), 'sample', 'samples')}, such as "
                    f"{columns.index[rows[0]]}): give it one name per parent, or "
                    "correct these samples"
                )
            finest[rows] = label
    return Tree(parents, tuple(names)), finest


def tree_of_table(
    rows: Sequence[tuple[str, str]], counts: Mapping[str, int], source: str
) -> Tree:
    """The tree of a table with two columns, a label and its parent.

    Parameters
    ----------
    rows : labels and their parents; an empty parent is the top, and so is a parent
        without a line of its own.
    counts : samples of each label in the data. A label without a line is at the top.
    source : of the table, for messages.
    """
    parents: dict[str, str] = {}
    for label, parent in rows:
        known = parents.setdefault(label, parent)
        if known != parent:
            raise ValueError(
                f"{source}: {label!r} has two parents, {known!r} and {parent!r}: keep "
                "one"
            )
    inner = set(parents.values())
    for label in parents:
        if label not in inner and not counts.get(label):
            near = difflib.get_close_matches(label, counts, n=3)
            hint = f"; the data have {some(near)}" if near else ""
            raise ValueError(
                f"{source}: {label!r} has neither samples nor labels below it: correct "
                f"the name or leave it out{hint}"
            )
    others = (*parents.values(), *counts)
    tops = {name: "" for name in others if name and name not in parents}
    return Tree(parents | tops)
