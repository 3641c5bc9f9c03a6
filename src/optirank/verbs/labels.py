"""Labels of samples: the result of a prediction, its tables, and what is written into
an AnnData.

Samples keep their own labels, whatever cluster they are in: on real pairs, majority
labels of clusters were worse than the labels of single cells as often as better.
Clusters come from the user and are described, since clusters of an unknown type are
less like their label than others of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from optirank._util.words import counted, some
from optirank.model.model import Model
from optirank.model.tree import NO_LABEL, Tree
from optirank.verbs.checks import Checks
from optirank.verbs.options import Result

ID_COLUMN = "cell_type_ontology_term_id"  # as CELLxGENE calls it
# Columns of `Labels.samples` after the probabilities
FURTHER = (
    *("likeness", "withheld_because", "alarm", "leaf", "leaf_confidence"),
    *(ID_COLUMN, "file"),
)
# Steps of confidence and where they begin: 19 in 20 should be right, 4 in 5, 1 in 2
_STEPS = {"≥ 0.95": 0.95, "0.8–0.95": 0.8, "0.5–0.8": 0.5, "< 0.5": 0.0}


@dataclass(frozen=True, repr=False)
class Labels(Result):
    """The labels of all samples of a query, and what there is to say about them.

    Attributes
    ----------
    model : the model that gave them.
    source : where the samples come from.
    samples : one line per sample: ``sample``, ``label``, ``confidence``, one
        ``probability_<class>`` each, ``likeness`` (how much it looks like its class, as
        a share of what is typical of held-out samples; NaN where the model cannot
        tell), ``withheld_because`` ("" where the label is given), and where there is
        one, ``alarm``, ``leaf`` and ``leaf_confidence`` (of a tree), the id of the
        label, and ``file``.
    chosen : the class of each sample, a position in ``classes``; of a model with a tree
        the leaf, which the label may be above.
    notes : sentences for the reader.
    warnings : those that need attention: the labels may be wrong as a whole.
    missing : genes of the panel that the query lacks.
    record : what ``adata.uns`` and the file beside the labels keep.
    clusters : where they were asked for, one line per cluster, see `cluster_table`.
    explanation : of a single sample, what its genes contribute to the score of its
        class, see `optirank.Model.explain`; None for more samples.
    checks : what checks the labels as a whole; None for several files.
    """

    model: Model
    source: str
    samples: pd.DataFrame
    chosen: NDArray
    notes: list[str]
    warnings: list[str]
    missing: tuple[str, ...]
    record: dict[str, Any]
    clusters: pd.DataFrame | None = None
    explanation: pd.DataFrame | None = None
    checks: Checks | None = None

    def __repr__(self) -> str:
        n_samples = counted(len(self.samples), "sample", "samples")
        counts = some((f"{name} {n}" for name, n in self.counts().items()), 20)
        return f"Labels of {self.source}: {n_samples}: {counts}"

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """``samples``, one line per sample; ``labels``, one per label; ``clusters``."""
        lines = label_table(self.labels, self.confidence, self.words[-1])
        tables = {"samples": self.samples, "labels": lines}
        return tables if self.clusters is None else tables | {"clusters": self.clusters}

    @cached_property
    def classes(self) -> NDArray[np.object_]:
        """The model's classes, as text."""
        return np.array([str(name) for name in self.model.classes], dtype=object)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All labels, and the word for labels that are withheld."""
        return *self.model.labels, withheld_word(self.model.labels)

    @cached_property
    def labels(self) -> NDArray[np.object_]:
        """The label of each sample, or the word for one that is withheld."""
        return self.samples["label"].to_numpy(dtype=object)

    @property
    def confidence(self) -> NDArray[np.float64]:
        """The probability of each label."""
        return self.samples["confidence"].to_numpy()

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Of all classes, one row per sample."""
        return self.samples[[f"probability_{name}" for name in self.classes]].to_numpy()

    @property
    def withheld(self) -> NDArray[np.bool_]:
        """Whether the label of each sample is withheld."""
        return self.samples["withheld_because"].to_numpy(dtype=object) != ""

    def counts(self) -> dict[str, int]:
        """Samples of each label that occurs, the most frequent first."""
        numbers = pd.Series(as_category(self.labels, self.words)).value_counts()
        return {str(name): int(n) for name, n in numbers.items()}

    def annotate(self, obs: Any, obsm: Any, uns: Any, key: str) -> None:
        """Put the labels into parts of an AnnData of these samples, under a key, in
        place of those of an earlier annotation.
        """
        obs[key] = as_category(self.labels, self.words)
        obs[f"{key}_confidence"] = self.confidence
        for name in FURTHER:
            if f"{key}_{name}" in obs:
                del obs[f"{key}_{name}"]
            if name in self.samples:
                values = self.samples[name].to_numpy()
                if values.dtype.kind != "f":
                    values = as_category(values, sorted(set(values)))
                obs[f"{key}_{name}"] = values
        names = pd.Index(probability_columns(self.classes))
        obsm[f"{key}_proba"] = pd.DataFrame(self.probabilities, obs.index, names)
        uns[key] = self.record


def withheld_word(classes: Iterable) -> str:
    """The word for a label that is withheld: "unassigned" where no class is called so,
    else another one.
    """
    taken = {str(name) for name in classes}
    words = chain(("unassigned", "withheld"), (f"withheld {k}" for k in count(2)))
    return next(word for word in words if word not in taken)


def probability_columns(classes: Iterable[object]) -> list[str]:
    """Names for columns of probabilities that every format stores: the classes where
    possible.

    An .h5ad file stores a column under its name as a path, so "/" becomes "|", and a
    name that is no path or is taken already is numbered.
    """
    names: list[str] = []
    for label in classes:
        stem = str(label).replace("/", "|").replace("\0", "")
        if stem in ("", ".", "..", "_index"):
            stem = f"class {stem}".rstrip()
        words = chain((stem,), (f"{stem} ({k})" for k in count(2)))
        names.append(next(word for word in words if word not in names))
    return names


def as_category(values: NDArray, words: Iterable[str]) -> pd.Categorical:
    """Labels as scanpy likes them: the categories that occur, in the model's order."""
    used = set(values)
    return pd.Categorical(values, categories=[word for word in words if word in used])


def label_table(
    labels: ArrayLike, confidence: ArrayLike, withheld: str
) -> pd.DataFrame:
    """One line per label, the most frequent first and ``withheld``, the word for no
    label, last.

    Columns are ``n_samples``, ``share``, ``confidence`` (the mean), then the samples in
    each step of confidence, the highest first, and those whose label is withheld.
    """
    labels = np.asarray(labels, dtype=object)
    confidence = np.asarray(confidence, dtype=float)
    step = (confidence[:, None] < [*_STEPS.values()]).sum(axis=1)
    step[labels == withheld] = len(_STEPS)
    steps = {name: step == k for k, name in enumerate([*_STEPS, "withheld"])}
    groups = pd.DataFrame(steps | {"confidence": confidence}).groupby(labels)
    sizes = groups.size()
    table = pd.DataFrame({"n_samples": sizes, "share": sizes / len(labels)})
    table["confidence"] = groups["confidence"].mean()
    table = table.join(groups[list(steps)].sum())
    return table.iloc[np.lexsort((-sizes, table.index == withheld))]


def cluster_table(
    clusters: NDArray, samples: pd.DataFrame, withheld: str
) -> pd.DataFrame:
    """One line per cluster, the largest first.

    Columns are ``cluster``, ``n_samples``, the majority ``label``, its ``share`` of all
    samples, the means of ``confidence`` and ``likeness``, and ``likeness_minus_best``:
    how far the likeness is below that of the best cluster of the same label. Samples
    whose label is withheld have no vote; of labels with as many votes the one with the
    larger sum of confidences wins.

    Parameters
    ----------
    clusters : the cluster of each sample, "" where it has none.
    samples : their labels, see `Labels`.
    withheld : the word for a label that is withheld.
    """
    shown: Any = samples.assign(cluster=clusters)[clusters != ""]
    table: Any = shown.groupby("cluster")[["confidence", "likeness"]].mean()
    table.insert(0, "n_samples", shown.groupby("cluster").size())
    votes = shown[shown["withheld_because"] == ""].groupby(["cluster", "label"])
    votes = votes["confidence"].agg(["size", "sum"]).sort_values(["size", "sum"])
    winners = votes.reset_index().drop_duplicates("cluster", keep="last")
    winners = winners.set_index("cluster").reindex(table.index)
    table.insert(1, "label", winners["label"].fillna(withheld))
    table.insert(2, "share", winners["size"].fillna(0) / table["n_samples"])
    best = table.groupby("label")["likeness"].transform("max")
    table["likeness_minus_best"] = table["likeness"] - best
    table = table.sort_values("n_samples", ascending=False, kind="stable")
    return table.reset_index()


def level_names(tree: Tree) -> list[str]:
    """The names of the levels: those of the columns, else level 1, 2, ..."""
    numbered = [f"level {depth}" for depth in range(1, tree.depth + 1)]
    return [*tree.levels, *numbered[len(tree.levels) :]][: tree.depth]


def tree_table(
    tree: Tree, codes: NDArray[np.intp], confidence: NDArray[np.float64]
) -> pd.DataFrame:
    """One line per label, each before those below it.

    ``depth`` from 0, ``n_samples`` with this label or one below it, ``n_own`` with this
    one itself, ``share`` of all samples, ``confidence`` (mean over ``n_samples``, of
    the labels as they are given). ``codes`` are positions of labels.
    """
    is_given = codes != NO_LABEL
    path = tree.paths[codes[is_given]]
    # A path that ends early repeats its label, which counts once
    is_new = np.diff(path, axis=1, prepend=NO_LABEL) != 0
    on_path = np.broadcast_to(confidence[is_given][:, None], path.shape)
    n_labels = len(tree.labels)
    counts = np.bincount(path[is_new], minlength=n_labels)
    total = np.bincount(path[is_new], on_path[is_new], minlength=n_labels)
    return pd.DataFrame(
        {
            "depth": [len(tree.path(label)) - 1 for label in tree.labels],
            "n_samples": counts,
            "n_own": np.bincount(codes[is_given], minlength=n_labels),
            "share": counts / max(1, len(codes)),
            "confidence": total / np.where(counts, counts, np.nan),
        },
        index=pd.Index(tree.labels, name="label"),
    )
