"""Labels of a tree, level by level: how many, how sure, how right.

A label is given at some level of the tree. If it stands above the truth it is right but
coarse; if it stands below a truth that is known to a coarser label alone, it is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank.model.tree import NO_LABEL, Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

COARSER = "coarser"  # a label above the level of a table
WITHHELD = "withheld"


def level_columns(
    tree: Tree, codes: NDArray[np.intp], words: NDArray[np.object_]
) -> dict[str, NDArray]:
    """The label of each sample at every level; the last word above its own label.

    ``codes`` are positions in ``words``: the labels of the tree, and the word for none.
    """
    known = codes < len(tree.labels)
    own = np.where(known, codes, 0)
    columns = {}
    for level, name in enumerate(level_names(tree)):
        reaches = known & tree.reaches[own, level]
        at_level = np.where(reaches, tree.paths[own, level], len(words) - 1)
        columns[f"level_{name.removeprefix('level ')}"] = words[at_level]
    return columns


def level_names(tree: Tree) -> list[str]:
    """The names of the levels: those of the columns, else level 1, 2, ..."""
    numbered = [f"level {depth}" for depth in range(1, tree.depth + 1)]
    return [*tree.levels, *numbered[len(tree.levels) :]][: tree.depth]


def tree_table(
    tree: Tree, given: NDArray[np.intp], confidence: NDArray[np.float64]
) -> pd.DataFrame:
    """One line per label, each before those below it.

    ``depth`` from 0, ``n_samples`` with this label or one below it, ``n_own`` with this
    one itself, ``share`` of all samples, ``confidence`` (mean over ``n_samples``, of
    the labels as they are given). ``given`` are positions of labels.
    """
    labelled = given != NO_LABEL
    path = tree.paths[given[labelled]]
    # A path that ends early repeats its label, which counts once
    is_new = np.diff(path, axis=1, prepend=NO_LABEL) != 0
    sure = np.broadcast_to(confidence[labelled][:, None], path.shape)
    n_labels = len(tree.labels)
    counts = np.bincount(path[is_new], minlength=n_labels)
    total = np.bincount(path[is_new], sure[is_new], minlength=n_labels)
    return pd.DataFrame(
        {
            "depth": [len(tree.path(label)) - 1 for label in tree.labels],
            "n_samples": counts,
            "n_own": np.bincount(given[labelled], minlength=n_labels),
            "share": counts / max(1, len(given)),
            "confidence": total / np.where(counts, counts, np.nan),
        },
        index=pd.Index(tree.labels, name="label"),
    )


def level_outcomes(
    tree: Tree, truth: NDArray[np.intp], given: NDArray[np.intp]
) -> pd.DataFrame:
    """What became of the samples, by the level of the label that they got.

    One line per level, the last for labels that are withheld: ``n_samples``, ``share``
    of all, and how many are ``right``, ``coarse`` (right, but above the truth) and
    ``wrong``. ``truth`` and ``given`` are positions of labels.
    """
    depths = np.array([len(tree.path(label)) - 1 for label in tree.labels])
    known = np.where(given == NO_LABEL, truth, given)
    is_above = (tree.paths[truth] == known[:, None]).any(axis=1)
    right = (tree.paths[known] == truth[:, None]).any(axis=1)
    coarse = is_above & ~right
    level = np.where(given == NO_LABEL, tree.depth, depths[known])
    rows = []
    for number, name in enumerate([*level_names(tree), WITHHELD]):
        here = level == number
        judged = here & (given != NO_LABEL)
        rows.append(
            {
                "level": name,
                "n_samples": int(here.sum()),
                "share": here.mean() if len(here) else 0.0,
                "right": int((judged & right).sum()),
                "coarse": int((judged & coarse).sum()),
                "wrong": int((judged & ~right & ~coarse).sum()),
            }
        )
    return pd.DataFrame(rows).set_index("level")


def level_confusions(
    tree: Tree, truth: NDArray[np.intp], given: NDArray[np.intp]
) -> dict[str, pd.DataFrame]:
    """The confusion of each level: true labels (rows) and labels given (columns).

    Both are read at that level. The last columns are labels above it, and labels that
    are withheld. Samples whose truth is known above the level alone are left out.
    """
    tables = {}
    for level, name in enumerate(level_names(tree)):
        reaches = tree.reaches[:, level]
        known = reaches[truth]
        at_level = np.unique(tree.paths[reaches, level])
        columns = [*(tree.labels[label] for label in at_level), COARSER, WITHHELD]
        n_labels = len(at_level)
        row = np.searchsorted(at_level, tree.paths[truth[known], level])
        got = given[known]
        column = np.searchsorted(at_level, tree.paths[got, level])
        column = np.where(reaches[got], column, n_labels)
        column = np.where(got == NO_LABEL, n_labels + 1, column)
        shape = (n_labels, len(columns))
        counts = np.bincount(row * shape[1] + column, minlength=shape[0] * shape[1])
        tables[name] = pd.DataFrame(
            counts.reshape(shape),
            index=pd.Index(columns[:n_labels], name="true class"),
            columns=pd.Index(columns),
        )
    return tables


def judged_at(
    tree: Tree, truth: NDArray[np.intp]
) -> tuple[list[str], NDArray[np.intp]]:
    """The labels at which samples are compared class by class, and where each label of
    the tree belongs among them; ``NO_LABEL`` above.

    They are the leaves; where no truth is one, the coarsest labels that are, and the
    leaves beside them.
    """
    found = {tree.labels[place] for place in np.unique(truth)}
    stops = set(tree.leaves)
    if not stops & found:
        stops |= found
    place = np.full(len(tree.labels), NO_LABEL)
    labels: list[str] = []
    for label in tree.labels:
        parent = tree.parents[label]
        above = place[tree.place[parent]] if parent else NO_LABEL
        if above == NO_LABEL and label in stops:
            labels.append(label)
            above = len(labels) - 1
        place[tree.place[label]] = above
    return labels, place
