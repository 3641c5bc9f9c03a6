"""Labels of samples and of clusters of them, what is said about them, and the words for
those that are withheld.

Clusters come from the user: optirank computes none. On real pairs, majority labels of
clusters that were computed for the purpose were worse than the labels of single cells
as often as better, at every fineness, so a sample keeps its own label.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.names import counted, some
from optirank.model.tree import NO_LABEL, Tree
from optirank.verbs.options import Result

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from optirank.model import Model
    from optirank.verbs.query import Trust

# Steps of confidence and where they begin: 19 in 20 should be right, 4 in 5, 1 in 2
_STEPS = {"≥ 0.95": 0.95, "0.8–0.95": 0.8, "0.5–0.8": 0.5, "< 0.5": 0.0}


def label_table(
    labels: ArrayLike, confidence: ArrayLike, withheld: str
) -> pd.DataFrame:
    """One line per label, the most frequent first and ``withheld``, the word for no
    label, last.

    Columns are ``n_samples``, ``share``, ``confidence`` (the mean), then the samples in
    each step of confidence, the highest first, and those whose label is withheld.
    """
    labels, sure = np.asarray(labels, dtype=object), np.asarray(confidence, dtype=float)
    step = (sure[:, None] < [*_STEPS.values()]).sum(axis=1)
    step[labels == withheld] = len(_STEPS)
    steps = pd.DataFrame(
        {name: step == k for k, name in enumerate([*_STEPS, "withheld"])}
    )
    groups = steps.assign(confidence=sure).groupby(labels)
    sizes, mean = groups.size(), groups["confidence"].mean()
    table = pd.DataFrame(
        {"n_samples": sizes, "share": sizes / len(sure), "confidence": mean}
    )
    table = table.join(groups[list(steps)].sum())
    return table.iloc[np.lexsort((-sizes, table.index == withheld))]


# All columns that `Labels.further` may have, save that which the data have themselves
FURTHER = (
    *("withheld_because", "alarm", "leaf", "leaf_confidence"),
    *("file", "cluster_label", "cluster_share"),
)
ID_COLUMN = "cell_type_ontology_term_id"  # CELLxGENE's name for ids of cell types
NO_TERM = "unknown"  # CELLxGENE's word for a cell whose type has no term
_WITH_LABELS = ("leaf", "cluster_label")  # columns of labels


@dataclass(frozen=True, repr=False)
class Labels(Result):
    """The labels of all samples of a query, and what there is to say about them.

    Attributes
    ----------
    model : the model that gave them.
    source : where the samples come from.
    names : of the samples.
    chosen : the class of each sample, a position in ``classes``; of a model with a tree
        the leaf, which the label may be above.
    codes : the label of each sample, a position in ``words``.
    reasons : why the label of a sample is withheld; "" where it is given.
    alarms : of each sample, the alarm of its query; "" where there is none.
    confidence, probabilities : of each sample.
    notes : sentences for the reader.
    warnings : those that need attention: the labels may be wrong as a whole.
    missing : genes of the panel that the query lacks.
    record : what ``adata.uns`` and the file beside the labels keep.
    leaf_confidence : the probability of ``chosen``, of a model with a tree.
    groups : the cluster of each sample, "" where it has none; None if there are none.
    explanation : of a single sample, what its genes contribute to the score of its
        class, see `optirank.Model.explain`; None for more samples.
    files : the file of each sample, where several were labelled.
    trust : what checks the labels as a whole; None for several files.
    """

    model: Model
    source: str
    names: NDArray
    chosen: NDArray
    codes: NDArray
    reasons: NDArray
    alarms: NDArray
    confidence: NDArray
    probabilities: NDArray
    notes: list[str]
    warnings: list[str]
    missing: tuple[str, ...]
    record: dict[str, Any]
    leaf_confidence: NDArray | None = None
    groups: NDArray | None = None
    explanation: pd.DataFrame | None = None
    files: NDArray | None = None
    trust: Trust | None = None

    def __repr__(self) -> str:
        n_samples = counted(len(self.chosen), "sample", "samples")
        counts = some((f"{label} {n}" for label, n in self.counts().items()), 20)
        return f"Labels of {self.source}: {n_samples}: {counts}"

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """``samples``, one line per sample; ``labels``, one per label; ``clusters``."""
        tables = {
            "samples": self.table(),
            "labels": label_table(self.labels, self.confidence, self.words[-1]),
        }
        if self.clusters is not None:
            tables["clusters"] = self.clusters
        return tables

    @cached_property
    def classes(self) -> NDArray:
        """The model's classes, as text."""
        return np.array([str(label) for label in self.model.classes], dtype=object)

    @cached_property
    def words(self) -> NDArray:
        """All labels, and the word for labels that are withheld."""
        names = self.model.labels
        return np.array([*names, withheld_word(names)], dtype=object)

    @property
    def threshold(self) -> float | None:
        """The confidence below which labels are withheld, if any."""
        return self.record.get("threshold")

    @property
    def withheld(self) -> NDArray:
        """Whether the label of each sample is withheld."""
        return self.reasons != ""

    @property
    def alarmed(self) -> bool:
        """Whether an alarm says of some samples that their labels may all be wrong."""
        return bool((self.alarms != "").any())

    @property
    def labels(self) -> NDArray:
        """The label of each sample, or the word for one that is withheld."""
        return self.words[self.codes]

    @cached_property
    def clusters(self) -> pd.DataFrame | None:
        """The majority label of each cluster, see `majority`; those of two files are
        different ones.
        """
        if self.groups is None:
            return None
        return majority(self._clusters, self.codes, self.confidence, self.words)

    @cached_property
    def _clusters(self) -> NDArray:
        """The cluster of each sample, with its file where there are several."""
        assert self.groups is not None
        if self.files is None:
            return self.groups
        return np.where(self.groups == "", "", self.files + ": " + self.groups)

    def counts(self) -> dict[str, int]:
        """Samples of each label that occurs, the most frequent first."""
        numbers = np.bincount(self.codes, minlength=len(self.words))
        order = np.argsort(-numbers, kind="stable")
        return {str(self.words[k]): int(numbers[k]) for k in order if numbers[k]}

    def table(self, rows: slice = slice(None)) -> pd.DataFrame:
        """One line per sample: label, confidence, ``probability_<class>``, and more.

        ``rows`` are the samples to show, all by default.
        """
        columns: dict[str, Any] = {
            "sample": self.names[rows],
            "label": self.words[self.codes[rows]],
            "confidence": self.confidence[rows],
        }
        probabilities = self.probabilities[rows].T
        for label, column in zip(self.classes, probabilities, strict=True):
            columns[f"probability_{label}"] = column
        return pd.DataFrame(columns | self.further(rows))

    def further(self, rows: slice = slice(None)) -> dict[str, Any]:
        """Columns after the probabilities; what is added here is in every format."""
        columns: dict[str, Any] = {"withheld_because": self.reasons[rows]}
        codes = self.codes[rows]
        tree, terms = self.model.tree, self.model.terms
        if self.alarmed:
            columns["alarm"] = self.alarms[rows]
        if tree is not None and self.leaf_confidence is not None:
            columns["leaf"] = self.classes[self.chosen[rows]]
            columns["leaf_confidence"] = self.leaf_confidence[rows]
        if terms:
            ids = [terms.get(label, NO_TERM) for label in self.words]
            columns[ID_COLUMN] = np.array(ids, dtype=object)[codes]
        if self.files is not None:
            columns["file"] = self.files[rows]
        if self.clusters is not None and self.groups is not None:
            of_samples = self.clusters.set_index("cluster").reindex(
                self._clusters[rows]
            )
            labels = of_samples["label"].to_numpy(dtype=object)
            has_none = pd.isna(labels)
            columns["cluster"] = self.groups[rows]
            columns["cluster_label"] = np.where(has_none, self.words[codes], labels)
            columns["cluster_share"] = of_samples["share"].to_numpy(dtype=float)
        return columns

    def annotate(self, obs: Any, obsm: Any, uns: Any, key: str) -> None:
        """Put the labels into parts of an AnnData of these samples, under a key, in
        place of those of an earlier annotation.

        Ids of the Cell Ontology have the name that CELLxGENE asks for, without the key;
        with it where ``obs`` has a column of somebody else under that name.
        """
        columns = self.further()
        columns.pop("cluster", None)  # which obs has
        for name in columns:
            if name in _WITH_LABELS:
                columns[name] = as_category(columns[name], self.words)
            elif name in ("withheld_because", "alarm", ID_COLUMN):
                columns[name] = pd.Categorical(columns[name])
        ids = columns.pop(ID_COLUMN, None)
        own_name = f"{key}_{ID_COLUMN}"
        earlier = {f"{key}_{name}" for name in (*FURTHER, ID_COLUMN)}
        if "n_ids" in uns.get(key, {}) and own_name not in obs:
            earlier.add(ID_COLUMN)
        written = {
            key: as_category(self.labels, self.words),
            f"{key}_confidence": self.confidence,
        }
        written |= {f"{key}_{name}": values for name, values in columns.items()}
        if ids is not None:
            is_free = ID_COLUMN not in obs or ID_COLUMN in earlier
            written[ID_COLUMN if is_free else own_name] = ids
        for name in [*obs.columns]:
            if name in earlier and name not in written:
                del obs[name]
        for name, values in written.items():
            obs[name] = values
        names = pd.Index(probability_columns(self.classes))
        obsm[f"{key}_proba"] = pd.DataFrame(self.probabilities, obs.index, names)
        uns[key] = self.record


_MIXED = ("heterogeneous", "mixed")  # words for a cluster of mixed labels


def free_word(classes: Iterable, *words: str) -> str:
    """The first of some words that no class is called; else the last, numbered."""
    taken = {str(label) for label in classes}
    numbered = (f"{words[-1]} {number}" for number in count(2))
    return next(word for word in chain(words, numbered) if word not in taken)


def withheld_word(classes: Iterable) -> str:
    """The word for a label that is withheld, "unassigned" where no class is
    called so.
    """
    return free_word(classes, "unassigned", "withheld")


def probability_columns(classes: Iterable[object]) -> list[str]:
    """Names for columns of probabilities that every format stores: the classes where
    possible.

    An .h5ad file stores a column under its name as a path, so "/" becomes "|", and a
    name that is no path or is taken already is numbered.
    """
    names: list[str] = []
    for label in classes:
        stem = str(label).replace("/", "|").replace("\0", "")
        stem = f"class {stem}".rstrip() if stem in ("", ".", "..", "_index") else stem
        name, k = stem, 1
        while name in names:
            k += 1
            name = f"{stem} ({k})"
        names.append(name)
    return names


def as_category(values: NDArray, words: NDArray) -> pd.Categorical:
    """Labels as scanpy likes them: the categories that occur, in the model's order."""
    used, known = set(values), dict.fromkeys([*words, free_word(words, *_MIXED)])
    return pd.Categorical(values, categories=[word for word in known if word in used])


_MAJORITY = 0.5  # share of a cluster's samples that its label must have


def majority(
    clusters: NDArray, codes: NDArray, confidence: NDArray, words: NDArray
) -> pd.DataFrame:
    """Give each cluster the label that most of its samples have.

    Samples whose label is withheld have no vote; of labels with as many votes the one
    with the larger sum of confidences wins. A cluster of which the winner has less than
    half of all samples is called "heterogeneous" (or "mixed" where a class is called
    so).

    Parameters
    ----------
    clusters : the cluster of each sample, "" where it has none.
    codes : its label, a position in ``words``; the last word is that of labels
        withheld.
    confidence : of each label.
    words : the labels, and the word for a label that is withheld.

    Returns
    -------
    A table with ``cluster``, ``n_samples``, ``label`` and ``share`` (of its samples
    with that label), the largest cluster first.
    """
    withheld = len(words) - 1
    samples: Any = pd.DataFrame(
        {"cluster": clusters, "code": codes, "confidence": confidence}
    )
    samples = samples[clusters != ""]
    sizes = samples.groupby("cluster").size()
    voters = samples[samples["code"] < withheld].groupby(["cluster", "code"])
    votes = voters["confidence"].agg(["size", "sum"]).reset_index()
    votes = votes.sort_values(["size", "sum"], ascending=False, kind="stable")
    elected = votes.drop_duplicates("cluster").set_index("cluster")["code"]
    winner = elected.reindex(sizes.index, fill_value=withheld)
    agrees = samples["code"].eq(samples["cluster"].map(winner))
    share = agrees.groupby(samples["cluster"]).sum() / sizes
    label = np.where(share < _MAJORITY, free_word(words, *_MIXED), words[winner])
    table = pd.DataFrame({"n_samples": sizes, "label": label, "share": share})
    table = table.sort_values("n_samples", ascending=False, kind="stable")
    return table.rename_axis("cluster").reset_index()


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
