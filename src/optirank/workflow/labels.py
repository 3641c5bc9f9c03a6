"""The labels of many samples: withheld below a threshold, by majority in clusters, in a file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from optirank._util.files import replacing
from optirank.datasets.errors import DataError, need
from optirank.model.predict import withheld_word

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

MIN_SHARE = 0.5  # of a cluster's samples that must have its label
HETEROGENEOUS = "heterogeneous"
FORMATS = (".csv", ".parquet", ".h5ad")
_BLOCK = 8192  # samples written together
_NUMBER = "%.6f"  # confidences and probabilities in a CSV
_TEXT = ("sample", "label", "cluster", "cluster_label")


@dataclass(frozen=True)
class Clusters:
    """The majority label of each cluster, and what that gives each sample."""

    table: pd.DataFrame  # cluster, n_samples, label, share; the largest first
    names: NDArray  # (n,): the cluster of each sample, "" where it has none
    labels: NDArray  # (n,): its label, the sample's own where it has no cluster
    shares: NDArray  # (n,): share of the cluster's samples with that label


@dataclass(frozen=True)
class Labels:
    """Labels of all samples; their probabilities lie on disk, one row of float64 a sample."""

    names: NDArray
    classes: NDArray  # as text
    codes: NDArray  # (n,): positions in classes; one beyond for a label that is withheld
    confidence: NDArray
    probabilities: IO[bytes]
    record: dict[str, Any]  # what is kept of the model and its genes beside the labels
    clusters: Clusters | None = None

    @property
    def words(self) -> NDArray:
        """What the codes stand for."""
        return label_words(self.classes)

    def blocks(self) -> Iterator[tuple[slice, NDArray]]:
        """Rows, and their probabilities read back from disk."""
        self.probabilities.seek(0)
        width = len(self.classes)
        for start in range(0, len(self.names), _BLOCK):
            rows = slice(start, min(start + _BLOCK, len(self.names)))
            values = np.fromfile(self.probabilities, np.float64, (rows.stop - start) * width)
            yield rows, values.reshape(-1, width)

    def table(self, rows: slice, probabilities: NDArray) -> pd.DataFrame:
        """One line per sample: label, confidence, ``probability_<class>``, then clusters."""
        import pandas as pd

        columns = {
            "sample": self.names[rows],
            "label": self.words[self.codes[rows]],
            "confidence": self.confidence[rows],
        }
        for label, column in zip(self.classes, probabilities.T, strict=True):
            columns[f"probability_{label}"] = column
        if self.clusters is not None:
            columns["cluster"] = self.clusters.names[rows]
            columns["cluster_label"] = self.clusters.labels[rows]
            columns["cluster_share"] = self.clusters.shares[rows]
        return pd.DataFrame(columns)


def label_words(classes: NDArray) -> NDArray:
    """The classes, and the word for labels that are withheld."""
    return np.array([*classes, withheld_word(classes)], dtype=object)


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
    import pandas as pd

    used, known = set(values), dict.fromkeys([*words, HETEROGENEOUS])
    return pd.Categorical(values, categories=[word for word in known if word in used])


def check_share(min_share: float) -> None:
    """Refuse what is no share."""
    if not 0 <= min_share <= 1:
        raise ValueError(f"min_share={min_share!r}: use a share between 0 and 1")


def majority(
    clusters: pd.Series,
    codes: NDArray,
    confidence: NDArray,
    words: NDArray,
    min_share: float = MIN_SHARE,
) -> Clusters:
    """Give each cluster the label that most of its samples have.

    Samples whose label is withheld have no vote; of labels with as many votes the one with the
    larger sum of confidences wins. A cluster of which the winner has less than ``min_share`` of
    all samples is called "heterogeneous".
    """
    import pandas as pd

    check_share(min_share)

    known = clusters.notna().to_numpy()
    names, cluster = np.unique(clusters[known].astype(str).to_numpy(str), return_inverse=True)
    voters = codes[known] < len(words) - 1
    votes, sums = np.zeros((2, len(names), len(words)))
    ballots = cluster[voters], codes[known][voters]
    np.add.at(votes, ballots, 1.0)
    np.add.at(sums, ballots, confidence[known][voters])
    votes[:, -1] = np.where(votes[:, :-1].any(axis=1), 0.0, 1e-9)  # without a vote: withheld
    winner = (votes + sums / (len(codes) + 1)).argmax(axis=1)
    sizes = np.bincount(cluster, minlength=len(names))
    wins = np.bincount(cluster[codes[known] == winner[cluster]], minlength=len(names))
    label = np.where(wins / np.maximum(sizes, 1) < min_share, HETEROGENEOUS, words[winner])
    table = pd.DataFrame(
        {"cluster": names, "n_samples": sizes, "label": label, "share": wins / sizes}
    )
    where, labels, shares = (
        np.full(len(codes), "", dtype=object),
        words[codes],
        np.full(len(codes), np.nan),
    )
    where[known] = names.astype(object)[cluster]
    labels[known] = label[cluster]
    shares[known] = (wins / sizes)[cluster]
    table = table.sort_values("n_samples", ascending=False, kind="stable", ignore_index=True)
    return Clusters(table, where, labels, shares)


def check_format(out: Path, query: Path, query_format: str) -> None:
    """Refuse, before any work, a format that labels cannot be written in."""
    if out.suffix not in FORMATS:
        raise DataError(f"{out}: labels are written as {', '.join(FORMATS)}: use such a name")
    if out.suffix == ".parquet":
        _need_pyarrow(out)
    if out.suffix == ".h5ad" and query_format != "h5ad":
        raise DataError(
            f"{out} would be a copy of the query with labels, but {query} is not an .h5ad: write "
            "the labels as .csv"
        )


def write_labels(labels: Labels, out: Path, query: Path, key: str) -> None:
    """Write labels in the format the name says, whole or not at all."""
    with replacing(out) as temporary:
        if out.suffix == ".csv":
            _write_csv(labels, temporary)
        elif out.suffix == ".parquet":
            _write_parquet(labels, temporary)
        else:
            shutil.copyfile(query, temporary)
            _add_to_h5ad(labels, temporary, key)


def _write_csv(labels: Labels, path: Path) -> None:
    """As pandas would write it, several times faster."""
    empty = labels.table(slice(0, 0), np.empty((0, len(labels.classes))))
    text = [name in _TEXT for name in empty.columns]
    template = ",".join("%s" if words else _NUMBER for words in text) + "\n"
    with open(path, "x", encoding="utf-8", newline="") as file:
        file.write(",".join(map(_quoted, empty.columns)) + "\n")
        for rows, probabilities in labels.blocks():
            table = labels.table(rows, probabilities)
            columns = [table[name].tolist() for name in table]
            for k in np.flatnonzero(text):
                columns[k] = map(_quoted, columns[k])
            lines = (template % line for line in zip(*columns, strict=True))
            if labels.clusters is not None:  # samples without a cluster have no share
                lines = (line.replace(",nan\n", ",\n") for line in lines)
            file.writelines(lines)


def _quoted(text: str) -> str:
    if any(sign in text for sign in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _write_parquet(labels: Labels, path: Path) -> None:
    pyarrow, parquet = _need_pyarrow(path)
    empty = labels.table(slice(0, 0), np.empty((0, len(labels.classes))))
    schema = pyarrow.schema(
        [(name, pyarrow.string() if name in _TEXT else pyarrow.float64()) for name in empty.columns]
    )
    with parquet.ParquetWriter(path, schema) as writer:
        for rows, probabilities in labels.blocks():
            table = labels.table(rows, probabilities)
            writer.write_table(
                pyarrow.Table.from_pandas(table, schema=schema, preserve_index=False)
            )


def _need_pyarrow(out: Path) -> tuple[Any, Any]:
    return (need("pyarrow", "parquet", f"writing {out}"), need("pyarrow.parquet", "parquet", ""))


def _add_to_h5ad(labels: Labels, path: Path, key: str) -> None:
    """Add to a copy what :func:`optirank.tl.annotate` would add in memory."""
    need("anndata", "anndata", f"writing {path}")
    import h5py

    try:
        from anndata.io import write_elem
    except ImportError:  # anndata 0.10
        from anndata.experimental import write_elem

    columns = {
        key: as_category(labels.words[labels.codes], labels.words),
        f"{key}_confidence": labels.confidence,
    }
    if labels.clusters is not None:
        columns[f"{key}_cluster_label"] = as_category(labels.clusters.labels, labels.words)
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
        _add_probabilities(labels, file["obsm"], f"{key}_proba", write_elem)
        write_elem(file["uns"], key, labels.record)


def _add_probabilities(labels: Labels, obsm: Any, name: str, write_elem: Any) -> None:
    """Add the probabilities as a data frame, block by block."""
    import pandas as pd

    obsm.pop(name, None)
    columns = probability_columns(labels.classes)
    write_elem(obsm, name, pd.DataFrame(index=pd.Index(labels.names, dtype=object)))
    frame = obsm[name]
    stored = [frame.create_dataset(one, len(labels.names), np.float64) for one in columns]
    for one in stored:
        one.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    frame.attrs["column-order"] = np.array(columns, dtype=object)
    for rows, probabilities in labels.blocks():
        for one, values in zip(stored, probabilities.T, strict=True):
            one[rows] = values
