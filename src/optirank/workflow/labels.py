"""Labels of samples: odd ones among those given, majority labels of clusters, files of them."""

from __future__ import annotations

import csv
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.files import replacing
from optirank.io.data import DataError, need
from optirank.model.predictor import mixed_word, withheld_word

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

FORMATS = (".csv", ".parquet", ".h5ad")
# Steps of confidence and where they begin: 19 in 20 should be right, 4 in 5, 1 in 2
_STEPS = {"≥ 0.95": 0.95, "0.8–0.95": 0.8, "0.5–0.8": 0.5, "< 0.5": 0.0}
_DIGITS = 4  # of confidences and probabilities in a CSV: more is noise
_NO_CLASS = (  # words that mark samples without a label
    *("unknown", "unassigned", "undefined", "undetermined", "unlabelled", "unlabeled"),
    *("unclassified", "na", "n/a", "nan", "none", "null", "other", "missing", "?", "-"),
)


def label_notes(labels: Iterable[object]) -> list[str]:
    """What is odd about class labels: words for "no label", and names that differ by a typo.

    Labels that differ only in case or in spaces, and words such as "Unknown" or "NA", are classes
    like any other to a classifier; mostly that is a mistake.
    """
    counts = Counter(str(label) for label in labels if isinstance(label, str))
    notes = [
        f"{n} samples are labelled {name!r}: it is used as a class like any other; remove these "
        "samples, or leave their label empty, if they have no known class"
        for name, n in counts.items()
        if name.strip().lower() in _NO_CLASS
    ]
    alike: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        alike["".join(name.split()).casefold()].append(name)
    notes += [
        f"the labels {' and '.join(f'{one!r} ({counts[one]} samples)' for one in names)} differ "
        "only in case or spaces: they are different classes; rename one if they are the same"
        for names in alike.values()
        if len(names) > 1
    ]
    return notes


def label_table(
    labels: ArrayLike, confidence: ArrayLike, withheld: str
) -> pd.DataFrame:
    """One line per label, the most frequent first and ``withheld``, the word for no label, last.

    Columns are ``n_samples``, ``share``, ``confidence`` (the mean), then the samples in each step
    of confidence, the highest first, and those whose label is withheld.
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


@dataclass(frozen=True)
class Clusters:
    """The majority label of each cluster, and what that gives each sample."""

    table: pd.DataFrame  # cluster, n_samples, label, share; the largest first
    names: NDArray  # (n,): the cluster of each sample, "" where it has none
    labels: NDArray  # (n,): its label, the sample's own where it has no cluster
    shares: NDArray  # (n,): share of the cluster's samples with that label


@dataclass(frozen=True)
class Labelled:
    """The labels of all samples of a query and what there is to say about them.

    ``codes`` are positions in ``classes``, and ``len(classes)`` for a label that is withheld;
    ``chosen`` has the label before withholding. ``notes`` are sentences for the reader, ``record``
    is what ``adata.uns`` keeps.
    """

    model: Any
    source: str  # of the samples
    names: NDArray
    classes: NDArray  # as text
    codes: NDArray
    chosen: NDArray
    confidence: NDArray
    probabilities: NDArray
    notes: list[str]
    missing: tuple[str, ...]  # genes of the panel that the query lacks
    losses: pd.DataFrame  # what each class loses by that
    threshold: float | None = None
    clusters: Clusters | None = None
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> NDArray:
        """What the codes stand for: the classes, and the word for labels that are withheld."""
        return np.array([*self.classes, withheld_word(self.classes)], dtype=object)

    @property
    def labels(self) -> NDArray:
        """The label of each sample."""
        return self.words[self.codes]

    @property
    def withheld(self) -> NDArray:
        """Whether the label of each sample is withheld."""
        return self.codes == len(self.classes)

    def counts(self) -> dict[str, int]:
        """Samples of each label that occurs, the most frequent first."""
        number = np.bincount(self.codes, minlength=len(self.words))
        order = np.argsort(-number, kind="stable")
        return {str(self.words[k]): int(number[k]) for k in order if number[k]}

    def table(self) -> pd.DataFrame:
        """One line per sample: label, confidence, ``probability_<class>``, then clusters."""
        columns = {
            "sample": self.names,
            "label": self.labels,
            "confidence": self.confidence,
        }
        for label, column in zip(self.classes, self.probabilities.T, strict=True):
            columns[f"probability_{label}"] = column
        return pd.DataFrame(columns | self.further())

    def further(self) -> dict[str, NDArray]:
        """Columns after the probabilities; what is added here is in every format of labels."""
        found = self.clusters
        if found is None:
            return {}
        shares = {"cluster_label": found.labels, "cluster_share": found.shares}
        return {"cluster": found.names} | shares

    def fields(self, key: str) -> tuple[dict[str, Any], pd.DataFrame]:
        """What is added to ``obs`` and ``obsm`` of an AnnData under a key."""
        columns = {
            key: as_category(self.labels, self.words),
            f"{key}_confidence": self.confidence,
        }
        further = self.further()
        further.pop("cluster", None)  # which the AnnData has
        if "cluster_label" in further:
            further["cluster_label"] = as_category(further["cluster_label"], self.words)
        columns |= {f"{key}_{name}": values for name, values in further.items()}
        names = probability_columns(self.classes)
        index = pd.Index(self.names, dtype=object)
        return columns, pd.DataFrame(self.probabilities, index=index, columns=names)


def probability_columns(classes: NDArray) -> list[str]:
    """Names for columns of probabilities that every format stores: the classes where possible.

    An .h5ad file stores a column under its name as a path, so "/" becomes "|", and a name that is
    no path or is taken already is numbered.
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


def as_category(values: ArrayLike, words: NDArray) -> pd.Categorical:
    """Labels as scanpy likes them: the categories that occur, in the model's order."""
    used, known = set(values), dict.fromkeys([*words, mixed_word(words)])
    return pd.Categorical(values, categories=[word for word in known if word in used])


def majority(
    clusters: pd.Series, codes: NDArray, confidence: NDArray, words: NDArray
) -> Clusters:
    """Give each cluster the label that most of its samples have.

    Samples whose label is withheld have no vote; of labels with as many votes the one with the
    larger sum of confidences wins. A cluster of which the winner has less than half of all samples
    is called "heterogeneous" (or "mixed" where a class is called so).
    """
    known = clusters.notna().to_numpy()
    names, cluster = np.unique(
        clusters[known].astype(str).to_numpy(str), return_inverse=True
    )
    voters = codes[known] < len(words) - 1
    votes, sums = np.zeros((2, len(names), len(words)))
    ballots = cluster[voters], codes[known][voters]
    np.add.at(votes, ballots, 1.0)
    np.add.at(sums, ballots, confidence[known][voters])
    votes[:, -1] = np.where(
        votes[:, :-1].any(axis=1), 0.0, 1e-9
    )  # without a vote: withheld
    winner = (votes + sums / (len(codes) + 1)).argmax(axis=1)
    sizes = np.bincount(cluster, minlength=len(names))
    wins = np.bincount(cluster[codes[known] == winner[cluster]], minlength=len(names))
    share = wins / sizes
    # A cluster is named after the majority of its samples
    label = np.where(share < 0.5, mixed_word(words), words[winner])
    table = pd.DataFrame(
        {"cluster": names, "n_samples": sizes, "label": label, "share": share}
    )
    where, labels = np.full(len(codes), "", dtype=object), words[codes]
    shares = np.full(len(codes), np.nan)
    where[known] = names.astype(object)[cluster]
    labels[known] = label[cluster]
    shares[known] = share[cluster]
    table = table.sort_values(
        "n_samples", ascending=False, kind="stable", ignore_index=True
    )
    return Clusters(table, where, labels, shares)


def check_format(out: Path, query: Path, query_format: str) -> None:
    """Refuse, before any work, a format that labels cannot be written in."""
    if out.suffix not in FORMATS:
        raise DataError(
            f"{out}: labels are written as {', '.join(FORMATS)}: use such a name"
        )
    if out.suffix == ".parquet":
        need("pyarrow", "parquet", f"writing {out}")
    if out.suffix == ".h5ad" and query_format != "h5ad":
        raise DataError(
            f"{out} would be a copy of the query with labels, but {query} is not an .h5ad: write "
            "the labels as .csv"
        )


def write_labels(labelled: Labelled, out: Path, query: Path) -> None:
    """Write labels in the format the name says, whole or not at all."""
    with replacing(out) as temporary:
        if out.suffix == ".csv":
            _write_csv(labelled, temporary)
        elif out.suffix == ".parquet":
            labelled.table().to_parquet(temporary, index=False)
        else:
            shutil.copyfile(query, temporary)
            _add_to_h5ad(labelled, temporary)


def _write_csv(labelled: Labelled, path: Path) -> None:
    """Write the table with four digits; looking the digits up is faster than printing them."""
    top = 10**_DIGITS
    digits = np.array(
        [f"{k / top:.{_DIGITS}f}" for k in range(top + 1)] + [""], dtype=object
    )
    table = labelled.table()
    columns = []
    for name in table.columns:
        values = table[name].to_numpy()
        if (
            values.dtype.kind == "f" and not ((values < 0) | (values > 1)).any()
        ):  # NaN is neither
            places = np.rint(np.nan_to_num(values) * top).astype(np.int64)
            values = digits[np.where(np.isnan(values), top + 1, places)]
        columns.append(values.tolist())
    with open(path, "x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows(zip(*columns, strict=True))


def _add_to_h5ad(labelled: Labelled, path: Path) -> None:
    """Add to a copy what :func:`optirank.tl.annotate` adds in memory."""
    need("anndata", "anndata", f"writing {path}")
    import h5py

    try:
        from anndata.io import write_elem
    except ImportError:  # anndata 0.10
        from anndata.experimental import write_elem

    key = "optirank"
    columns, probabilities = labelled.fields(key)
    with h5py.File(path, "r+") as file:
        obs = file["obs"]
        for name, values in columns.items():
            write_elem(obs, name, values)
        order = [str(name) for name in obs.attrs["column-order"]]
        order += [name for name in columns if name not in order]
        obs.attrs["column-order"] = np.array(order, dtype=h5py.string_dtype())
        for group in ("obsm", "uns"):
            if group not in file:
                write_elem(file, group, {})
        write_elem(file["obsm"], f"{key}_proba", probabilities)
        write_elem(file["uns"], key, labelled.record)
