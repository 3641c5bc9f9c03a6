"""Several sets of profiles as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from optirank._util.names import some
from optirank.io.data import DataError, ExpressionData, Profiles, gene_positions
from optirank.io.homologs import in_names_of

if TYPE_CHECKING:
    import pandas as pd

FILE_COLUMN = "file"  # says which of several sources a sample is from


@dataclass(frozen=True)
class PlacedPart:
    """One set among several: the samples it has of all, and where the common
    genes are.
    """

    data: ExpressionData
    start: int
    stop: int
    places: np.ndarray
    as_sparse: bool  # whether blocks are made sparse, because those of another set are


class JoinedProfiles:
    """Several sets of profiles as one, with the genes that all of them have.

    ``obs`` has the annotations of all and the column ``file``, which names the source
    of a sample. Nothing is read before it is asked for. Genes that share a name within
    one set are merged first (`ExpressionData.unique_genes`), and sets whose genes have
    names of another kind than those of the first are translated (`in_names_of`).

    Parameters
    ----------
    parts : the sets, in order.
    names : what the column says of each; by default the names of their files.
    column : the name of that column.
    """

    def __init__(
        self,
        parts: Sequence[ExpressionData],
        names: Sequence[str] | None = None,
        column: str = FILE_COLUMN,
    ) -> None:
        import pandas as pd

        first = parts[0].unique_genes()
        self.parts = [first]
        for part in parts[1:]:  # such as Ensembl ids beside symbols
            self.parts.append(in_names_of(part, first.gene_names))
        sources = _names_of(self.parts) if names is None else [str(n) for n in names]
        if len(set(sources)) < len(self.parts):
            raise DataError(
                f"{len(self.parts)} sources are called {some(sources)}: give each a "
                "name of its own"
            )
        self.gene_names = _common_genes(self.parts, sources)
        self.obs: pd.DataFrame = pd.concat(
            [
                part.obs.assign(**{column: name})
                for part, name in zip(self.parts, sources, strict=True)
            ]
        )
        self.source = ", ".join(sources)
        self.sample_names = np.concatenate([part.sample_names for part in self.parts])
        self.notes = tuple(
            f"{name}: {note}"
            for part, name in zip(self.parts, sources, strict=True)
            for note in part.notes
        )
        self._starts = np.cumsum([0, *(part.n_samples for part in self.parts)])
        self._places = [
            gene_positions(part.gene_names, self.gene_names, part.source)
            for part in self.parts
        ]
        # Where one set is sparse, all blocks are
        self._sparse = any(map(_is_sparse, self.parts))

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.sample_names)

    def unique_genes(self) -> JoinedProfiles:
        """These profiles: their genes have names of their own."""
        return self

    def placed_parts(self) -> list[PlacedPart]:
        """The sets, in order, with their places among all samples and genes."""
        bounds = zip(self._starts[:-1], self._starts[1:], strict=True)
        return [
            PlacedPart(part, int(start), int(stop), places, self._sparse)
            for part, places, (start, stop) in zip(
                self.parts, self._places, bounds, strict=True
            )
        ]

    def blocks(
        self,
        genes: Sequence[str] | np.ndarray | None = None,
        block_size: int = 1024,
        rows: np.ndarray | None = None,
    ) -> Iterator[ExpressionData]:
        """Blocks of samples of one set after the other."""
        columns = np.arange(len(self.gene_names))
        if genes is not None:
            columns = gene_positions(self.gene_names, genes, self.source)
        rows = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        for k, (part, places) in enumerate(zip(self.parts, self._places, strict=True)):
            start, stop = self._starts[k : k + 2]
            rest = rows[(rows >= start) & (rows < stop)]
            for block in part.blocks(places[columns], block_size, rest - start):
                positions = rest[: block.n_samples]
                rest = rest[block.n_samples :]
                yield ExpressionData(
                    sparse.csr_matrix(block.X) if self._sparse else block.X,
                    self.gene_names[columns],
                    self.sample_names[positions],
                    self.obs.iloc[positions],
                    self.source,
                )


def _names_of(parts: Sequence[Profiles]) -> list[str]:
    """Short names of the sources, that differ where they can."""
    names = [Path(part.source).stem for part in parts]
    if len(set(names)) < len(names):
        names = [part.source for part in parts]
    if len(set(names)) < len(names):
        names = [f"{name} {k + 1}" for k, name in enumerate(names)]
    return names


def _common_genes(parts: Sequence[Profiles], sources: Sequence[str]) -> np.ndarray:
    common = set(map(str, parts[0].gene_names))
    for part in parts[1:]:
        common.intersection_update(map(str, part.gene_names))
    names = [name for name in map(str, parts[0].gene_names) if name in common]
    if len(names) < 2:
        raise DataError(
            f"{some(sources)} have {len(names)} genes in common: their gene names may "
            "be of different kinds (gene_column=, --gene-column)"
        )
    return np.array(names, dtype=object)


def _is_sparse(part: Profiles) -> bool:
    if not part.n_samples:
        return False
    first = next(part.blocks(np.zeros(1, dtype=int), 1, np.zeros(1, dtype=int)))
    return sparse.issparse(first.X)
