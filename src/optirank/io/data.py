"""`ExpressionData`: a matrix of samples by genes with its names; the errors of data."""

from __future__ import annotations

import contextlib
import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

from optirank._util.names import some
from optirank.io.stored import Sliceable, StoredMatrix, take_rows

if TYPE_CHECKING:
    import pandas as pd

MERGES = ("first", "sum", "drop")


class DataError(ValueError):
    """A file or a choice of data that cannot be used; the message says why and what to do."""


class MissingExtraError(ImportError):
    """An optional dependency that is not installed; the message has the line that installs it."""


def need(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional module, or say which line installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs {module.split('.')[0]}: pip install 'optirank[{extra}]'"
        ) from error


@contextlib.contextmanager
def readable(path: Path | str) -> Iterator[None]:
    """Turn what libraries raise on a damaged file into one DataError with its name and remedy."""
    try:
        yield
    except ImportError:
        raise
    except DataError as error:
        if str(path) in str(error):
            raise
        raise DataError(f"{path}: {error}") from error
    except MemoryError as error:
        raise DataError(
            f"{path} asks for more memory than there is: it is too large for this machine, or "
            "damaged (copy or fetch it again)"
        ) from error
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        raise DataError(
            f"{path} cannot be read, it may be truncated or damaged: {text} "
            "(copy or fetch it again)"
        ) from error


class Profiles(Protocol):
    """A matrix of samples by genes with names and annotations, in memory or larger, on disk."""

    gene_names: np.ndarray
    sample_names: np.ndarray
    obs: pd.DataFrame
    source: str
    n_samples: int
    blocks: Callable[..., Iterator[ExpressionData]]  # as those of ExpressionData


def block_rows(n_genes: int) -> int:
    """How many samples of so many genes are read together."""
    # Were it dense, a block has 80 MB in single precision
    return max(64, 20_000_000 // max(1, n_genes))


@dataclass(frozen=True, eq=False)
class ExpressionData:
    """Expression profiles, in memory or, of an opened file, left where they are stored.

    Attributes
    ----------
    X : CSR matrix or array, samples by genes; or a stored matrix, for `read` and `blocks`
    gene_names, sample_names : arrays of str
    obs : DataFrame
        Annotations of the samples, one row each, in the order of ``X``.
    source : str
        Where the data come from; error messages name it.
    other_gene_names : dict of arrays of str
        What ``gene_column`` could name instead, by column.
    """

    X: csr_matrix | np.ndarray | StoredMatrix
    gene_names: np.ndarray
    sample_names: np.ndarray
    obs: pd.DataFrame
    source: str = "these data"
    other_gene_names: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        expected = (len(self.sample_names), len(self.gene_names))
        if self.X.shape != expected or len(self.obs) != expected[0]:
            raise DataError(
                f"{self.source}: the matrix is {self.X.shape[0]} x {self.X.shape[1]}, but there "
                f"are {expected[0]} sample names, {expected[1]} gene names and {len(self.obs)} "
                "rows of annotations"
            )

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.sample_names)

    @property
    def n_genes(self) -> int:
        """Number of genes."""
        return len(self.gene_names)

    @property
    def duplicated_genes(self) -> list[str]:
        """Gene names that occur more than once, in the order of their first occurrence."""
        return duplicates(self.gene_names)

    def labels(self, column: str) -> pd.Series:
        """Return a column of ``obs`` as text, missing values as NaN."""
        return text_column(self.obs, column, self.source)

    def read(self, genes: Sequence[str] | np.ndarray | None = None) -> ExpressionData:
        """Read these genes (names or positions, in this order; None: all) of all samples."""
        return self._reader(genes)(np.arange(self.n_samples))

    def blocks(
        self,
        genes: Sequence[str] | np.ndarray | None = None,
        block_size: int = 1024,
        rows: np.ndarray | None = None,
    ) -> Iterator[ExpressionData]:
        """Read all samples, or those at some sorted positions, in blocks.

        Memory follows the size of a block. Rows that are not asked for are not kept, and long runs
        of them are not read.
        """
        rows = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        if len(rows):
            read = self._reader(genes)
            for first in range(0, len(rows), block_size):
                yield read(rows[first : first + block_size])

    def _reader(
        self, genes: Sequence[str] | np.ndarray | None
    ) -> Callable[[np.ndarray], ExpressionData]:
        """Choose genes, and return what reads rows of them."""
        columns = (
            None
            if genes is None
            else gene_positions(self.gene_names, genes, self.source)
        )
        names = self.gene_names if columns is None else self.gene_names[columns]
        with readable(self.source):
            stored = self.X if isinstance(self.X, StoredMatrix) else Sliceable(self.X)
            reader = stored.reader(columns)

        def read(rows: np.ndarray) -> ExpressionData:
            with readable(self.source):
                X = take_rows(reader, rows)
            samples, obs = self.sample_names[rows], self.obs.iloc[rows]
            return ExpressionData(X, names, samples, obs, self.source)

        return read

    def select_genes(self, genes: Sequence[str] | np.ndarray) -> ExpressionData:
        """Keep these genes, by name or by position, in the order given."""
        positions = gene_positions(self.gene_names, genes, self.source)
        return replace(
            self, X=self.X[:, positions], gene_names=self.gene_names[positions]
        )

    def select_samples(self, samples: np.ndarray) -> ExpressionData:
        """Keep these samples: a boolean mask or positions."""
        samples = np.arange(self.n_samples)[samples]
        names, obs = self.sample_names[samples], self.obs.iloc[samples]
        return replace(self, X=self.X[samples], sample_names=names, obs=obs)

    def merge_duplicates(self, how: str) -> ExpressionData:
        """Make gene names unique: keep the ``first`` of each, ``sum`` them, or ``drop`` them."""
        if how not in MERGES:
            raise ValueError(f"how={how!r}: use one of {', '.join(MERGES)}")
        _, first, group, counts = np.unique(
            self.gene_names.astype(str),
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        if how == "drop":
            return self.select_genes(np.sort(first[counts == 1]))
        if how == "first":
            return self.select_genes(np.sort(first))
        entries = np.ones(self.n_genes, self.X.dtype), (np.arange(self.n_genes), group)
        order = np.argsort(first)
        X = (self.X @ csr_matrix(entries, shape=(self.n_genes, len(first))))[:, order]
        return replace(self, X=X, gene_names=self.gene_names[first[order]])


def duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, each once, in order of first occurrence."""
    return [name for name, count in Counter(names).items() if count > 1]


def text_column(obs: pd.DataFrame, column: str, source: str) -> pd.Series:
    """Return a column of annotations as text, missing values as NaN."""
    import pandas as pd

    check_column(obs, column, source)
    values = obs[column].astype(object)
    text = [np.nan if pd.isna(value) else str(value) for value in values]
    return pd.Series(text, index=obs.index, name=column, dtype=object)


def check_column(obs: pd.DataFrame, column: str, source: str) -> None:
    """Raise a DataError that lists the columns there are where ``column`` is not one of them."""
    if column not in obs.columns:
        raise DataError(
            f"{source} has no column {column!r} for its samples: there are {some(obs.columns, 20)}"
        )


def gene_positions(
    names: np.ndarray, genes: Sequence | np.ndarray, source: str
) -> np.ndarray:
    """Turn gene names, or positions, into positions in ``names``."""
    wanted = np.asarray(genes)
    if len(np.unique(wanted)) < len(wanted):
        raise DataError(
            f"{source}: asked for the same gene twice: {some(duplicates(genes))}"
        )
    if wanted.dtype.kind in "iu":
        if wanted.size and (wanted.min() < 0 or wanted.max() >= len(names)):
            raise DataError(f"{source}: gene positions must be 0 to {len(names) - 1}")
        return wanted.astype(np.intp)
    where = {name: position for position, name in enumerate(names)}
    twice = set(duplicates(names)) if len(where) < len(names) else set()
    missing = [gene for gene in genes if gene not in where]
    if missing:
        raise DataError(
            f"{source} lacks {len(missing)} of the {len(wanted)} genes asked for: {some(missing)}"
        )
    double = [gene for gene in genes if gene in twice]
    if double:
        raise DataError(
            f"{source} has several genes called {some(double)}: ask for them by position, merge "
            "them (merge_duplicates), or take other names (gene_column=, --gene-column)"
        )
    return np.array([where[gene] for gene in genes], dtype=np.intp)


def concatenate(
    parts: Sequence[ExpressionData], column: str | None = None
) -> ExpressionData:
    """Several data sets as one, over the genes that all of them have (order of the first).

    ``column`` names a column of ``obs`` to add, which says from which source a sample is.
    """
    import pandas as pd

    shared = set(parts[0].gene_names).intersection(
        *(part.gene_names for part in parts[1:])
    )
    common = [gene for gene in parts[0].gene_names if gene in shared]
    if not common:
        raise DataError(
            f"{some([part.source for part in parts])} have no gene in common: are their genes "
            "named alike? (gene_column=, --gene-column)"
        )
    if len(parts) > 1:
        parts = [part.select_genes(common) for part in parts]
    matrices = [part.X for part in parts]
    sparse = any(map(issparse, matrices))
    return ExpressionData(
        vstack(matrices, format="csr") if sparse else np.concatenate(matrices),
        parts[0].gene_names,
        np.concatenate([part.sample_names for part in parts]),
        pd.concat(
            [
                part.obs.assign(**{column: part.source} if column else {})
                for part in parts
            ]
        ),
        parts[0].source if len(parts) == 1 else some([part.source for part in parts]),
    )
