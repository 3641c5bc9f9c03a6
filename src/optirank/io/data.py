"""`ExpressionData`: a matrix of samples by genes with its names; the errors of data."""

from __future__ import annotations

import contextlib
import importlib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

from optirank._util.names import counted, some
from optirank._util.scales import value_scale
from optirank.io.stored import ChosenColumns, SummedColumns, as_stored, take_rows

if TYPE_CHECKING:
    import pandas as pd

MERGES = ("first", "sum", "drop")
SCALE_SAMPLES = 200  # samples and genes that tell what kind of values data hold
SCALE_GENES = 2000


class DataError(ValueError):
    """A file or a choice of data that cannot be used; the message says why and
    what to do.
    """


class MissingExtraError(ImportError):
    """An optional dependency that is not installed; the message has the line that
    installs it.
    """


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
    """Turn what libraries raise on a damaged file into one DataError with its name
    and remedy.
    """
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
            f"{path} asks for more memory than there is: it is too large for this "
            "machine, or damaged (copy or fetch it again)"
        ) from error
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        raise DataError(
            f"{path} cannot be read, it may be truncated or damaged: {text} "
            "(copy or fetch it again)"
        ) from error


class Profiles(Protocol):
    """A matrix of samples by genes with names and annotations, in memory or larger."""

    @property
    def gene_names(self) -> np.ndarray:
        """Names of the genes."""
        ...

    @property
    def sample_names(self) -> np.ndarray:
        """Names of the samples."""
        ...

    @property
    def obs(self) -> pd.DataFrame:
        """Annotations of the samples."""
        ...

    @property
    def source(self) -> str:
        """Where the data come from, for messages."""
        ...

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader left out or changed, a sentence each."""
        ...

    def unique_genes(self) -> Profiles:
        """The profiles with genes of the same name merged."""
        ...

    def blocks(
        self,
        genes: Sequence[str] | np.ndarray | None = None,
        block_size: int = 1024,
        rows: np.ndarray | None = None,
    ) -> Iterator[ExpressionData]:
        """Blocks of samples, as those of ExpressionData."""
        ...


def block_rows(n_genes: int) -> int:
    """How many samples of so many genes are read together."""
    # Were it dense, a block has 80 MB in single precision
    return max(64, 20_000_000 // max(1, n_genes))


@dataclass(frozen=True, eq=False)
class ExpressionData:
    """Expression profiles, in memory or, of an opened file, left where they are stored.

    Data of an opened file are pickled as the file's name and the options of reading, so
    that another process can open the file itself.

    Attributes
    ----------
    X : CSR matrix or array, samples by genes; or a stored matrix, for `read` and
        `blocks`
    gene_names, sample_names : arrays of str
    obs : DataFrame
        Annotations of the samples, one row each, in the order of ``X``.
    source : str
        Where the data come from; error messages name it.
    other_gene_names : dict of arrays of str
        What ``gene_column`` could name instead, by column.
    raw_gene_names : array of str, optional
        The genes of ``raw``, where the data have it and it was not asked for.
    notes : tuple of str
        What was left out or changed when the data were read.
    reopen : callable and its arguments, optional
        What opens the same data in another process.
    """

    X: Any
    gene_names: np.ndarray
    sample_names: np.ndarray
    obs: pd.DataFrame
    source: str = "these data"
    other_gene_names: dict[str, np.ndarray] = field(default_factory=dict)
    raw_gene_names: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    reopen: tuple[Callable[..., ExpressionData], tuple[Any, ...]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self.reopen is not None:
            return self.reopen
        values = tuple(getattr(self, entry.name) for entry in fields(self))
        return type(self), values

    def __post_init__(self) -> None:
        expected = (len(self.sample_names), len(self.gene_names))
        if self.X.shape != expected or len(self.obs) != expected[0]:
            raise DataError(
                f"{self.source}: the matrix is {self.X.shape[0]} x {self.X.shape[1]}, "
                f"but there are {expected[0]} sample names, {expected[1]} gene names "
                f"and {len(self.obs)} rows of annotations"
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
        """Gene names that occur more than once, in the order of their first
        occurrence.
        """
        return duplicates(self.gene_names)

    def labels(self, column: str) -> pd.Series:
        """Return a column of ``obs`` as text, missing values as NaN."""
        return text_column(self.obs, column, self.source)

    def read(self, genes: Sequence[str] | np.ndarray | None = None) -> ExpressionData:
        """Read these genes (names or positions, in this order; None: all) of all
        samples.
        """
        return self._reader(genes)(np.arange(self.n_samples))

    def blocks(
        self,
        genes: Sequence[str] | np.ndarray | None = None,
        block_size: int = 1024,
        rows: np.ndarray | None = None,
    ) -> Iterator[ExpressionData]:
        """Read all samples, or those at some sorted positions, in blocks.

        Memory follows the size of a block. Rows that are not asked for are not kept,
        and long runs of them are not read.
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
        columns = None
        names = self.gene_names
        if genes is not None:
            columns = gene_positions(self.gene_names, genes, self.source)
            names = names[columns]
        with readable(self.source):
            reader = as_stored(self.X).reader(columns)

        def read(rows: np.ndarray) -> ExpressionData:
            with readable(self.source):
                X = take_rows(reader, rows)
            return ExpressionData(
                X, names, self.sample_names[rows], self.obs.iloc[rows], self.source
            )

        return read

    def select_genes(self, genes: Sequence[str] | np.ndarray) -> ExpressionData:
        """Keep these genes, by name or by position, in the order given."""
        positions = gene_positions(self.gene_names, genes, self.source)
        if hasattr(self.X, "reader"):
            X = ChosenColumns(self.X, positions)
        else:
            X = self.X[:, positions]
        return replace(
            self,
            X=X,
            gene_names=self.gene_names[positions],
            other_gene_names=_at(self.other_gene_names, positions),
            reopen=_then(self.reopen, "select_genes", positions),
        )

    def select_samples(self, samples: np.ndarray) -> ExpressionData:
        """Keep these samples: a boolean mask or positions."""
        positions = np.arange(self.n_samples)[samples]
        return replace(
            self,
            X=self.X[positions],
            sample_names=self.sample_names[positions],
            obs=self.obs.iloc[positions],
            reopen=None,
        )

    def rename_genes(
        self, names: Sequence[str], notes: Sequence[str] = ()
    ) -> ExpressionData:
        """Give the genes other names, with notes that say why."""
        return replace(
            self,
            gene_names=np.array(list(names), dtype=object),
            notes=(*self.notes, *notes),
            reopen=_then(self.reopen, "rename_genes", list(names), list(notes)),
        )

    def unique_genes(self) -> ExpressionData:
        """Merge genes of the same name, without reading the data: the one rule for it.

        Counts are added up. Of values on another scale the first gene of each name is
        used, since sums of logarithms mean nothing.
        """
        repeated = self.duplicated_genes
        if not repeated:
            return self
        names = self.gene_names.astype(str)
        _, first, group = np.unique(names, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.argsort(order)[
            group
        ]  # of each gene among the unique names, in order
        kept = first[order]
        if self._looks_like_counts():
            X = SummedColumns(as_stored(self.X), place, len(kept))
            how = "their counts are summed"
        else:
            X = ChosenColumns(as_stored(self.X), kept)
            how = "the first of each is used"
        what = counted(len(repeated), "gene name occurs", "gene names occur")
        note = f"{what} more than once, {how}: {some(repeated)}"
        return replace(
            self,
            X=X,
            gene_names=self.gene_names[kept],
            other_gene_names=_at(self.other_gene_names, kept),
            notes=(*self.notes, note),
            reopen=_then(self.reopen, "unique_genes"),
        )

    def _looks_like_counts(self) -> bool:
        """Whether some samples, evenly spaced, hold counts in some genes, likewise."""
        if not self.n_samples:
            return False
        rows = np.arange(0, self.n_samples, max(1, self.n_samples // SCALE_SAMPLES))
        genes = np.arange(0, self.n_genes, max(1, self.n_genes // SCALE_GENES))
        blocks = self.blocks(genes, len(rows), rows)
        return value_scale(next(blocks).X) == "counts"

    def merge_duplicates(self, how: str) -> ExpressionData:
        """Make gene names unique: keep the ``first`` of each, ``sum`` them, or
        ``drop`` them.
        """
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
        ones = np.ones(self.n_genes, self.X.dtype)
        entries = (ones, (np.arange(self.n_genes), group))
        order = np.argsort(first)
        X = (self.X @ csr_matrix(entries, shape=(self.n_genes, len(first))))[:, order]
        return replace(
            self, X=X, gene_names=self.gene_names[first[order]], other_gene_names={}
        )


def _at(
    names: Mapping[str, np.ndarray], positions: np.ndarray
) -> dict[str, np.ndarray]:
    return {column: values[positions] for column, values in names.items()}


def _then(
    reopen: tuple[Callable[..., ExpressionData], tuple[Any, ...]] | None,
    method: str,
    *arguments: Any,
) -> tuple[Callable[..., ExpressionData], tuple[Any, ...]] | None:
    """What opens data in another process and then calls one of their methods."""
    return None if reopen is None else (_reopened, (reopen, method, arguments))


def _reopened(
    reopen: tuple[Callable[..., ExpressionData], tuple[Any, ...]],
    method: str,
    arguments: tuple[Any, ...],
) -> ExpressionData:
    opens, options = reopen
    return getattr(opens(*options), method)(*arguments)


def duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, each once, in order of first
    occurrence.
    """
    return [name for name, count in Counter(names).items() if count > 1]


def text_column(obs: pd.DataFrame, column: str, source: str) -> pd.Series:
    """Return a column of annotations as text, missing values as NaN.

    Letters with accents are single characters (NFC), however a file writes them: the
    same label is the same class.
    """
    import pandas as pd

    check_column(obs, column, source)
    values = obs[column].astype(object)
    text = [
        np.nan if pd.isna(value) else unicodedata.normalize("NFC", str(value))
        for value in values
    ]
    return pd.Series(text, index=obs.index, name=column, dtype=object)


def check_column(obs: pd.DataFrame, column: str, source: str) -> None:
    """Raise a DataError that lists the columns there are where ``column`` is not one
    of them.
    """
    if column not in obs.columns:
        raise DataError(
            f"{source} has no column {column!r} for its samples: there are "
            f"{some(obs.columns, 20)}"
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
            f"{source} lacks {len(missing)} of the {len(wanted)} genes asked for: "
            f"{some(missing)}"
        )
    double = [gene for gene in genes if gene in twice]
    if double:
        raise DataError(
            f"{source} has several genes called {some(double)}: ask for them by "
            "position, merge them (merge_duplicates), or take other names "
            "(gene_column=, --gene-column)"
        )
    return np.array([where[gene] for gene in genes], dtype=np.intp)


def concatenate(
    parts: Sequence[ExpressionData], column: str | None = None
) -> ExpressionData:
    """Several data sets as one, over the genes that all of them have (order of the
    first).

    ``column`` names a column of ``obs`` to add, which says from which source a sample
    is.
    """
    import pandas as pd

    shared = set(parts[0].gene_names).intersection(
        *(part.gene_names for part in parts[1:])
    )
    common = [gene for gene in parts[0].gene_names if gene in shared]
    if not common:
        raise DataError(
            f"{some([part.source for part in parts])} have no gene in common: are "
            "their genes named alike? (gene_column=, --gene-column)"
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
