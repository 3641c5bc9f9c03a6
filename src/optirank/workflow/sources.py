"""The data of a training: several reference files as one, and what is known of the queries."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.datasets.data import DataError, ExpressionData, check_column
from optirank.datasets.reading import is_table, open_expression, read_gene_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.datasets.data import Profiles

FILE_COLUMN = "file"  # of several reference files: which one a sample is from


class JoinedProfiles:
    """Several sets of profiles as one, with the genes that all of them have.

    ``obs`` has the annotations of all and the column ``file``. Nothing is read before it is asked
    for.
    """

    def __init__(self, parts: Sequence[Profiles]) -> None:
        import pandas as pd

        self.parts = list(parts)
        common = set(map(str, self.parts[0].gene_names))
        for part in self.parts[1:]:
            common.intersection_update(map(str, part.gene_names))
        self.gene_names = np.array(
            [name for name in map(str, self.parts[0].gene_names) if name in common], dtype=object
        )
        names = [Path(part.source).stem for part in self.parts]
        if len(set(names)) < len(names):
            names = [str(part.source) for part in self.parts]
        if len(self.gene_names) < 2:
            raise DataError(
                f"{some(names)} have {len(self.gene_names)} genes in common: their gene names may "
                "be of different kinds (--gene-column)"
            )
        frames = [
            part.obs.assign(**{FILE_COLUMN: name})
            for part, name in zip(self.parts, names, strict=True)
        ]
        self.obs = pd.concat(frames)
        self.source = ", ".join(names)
        self.sample_names = np.concatenate([part.sample_names for part in self.parts])
        self._starts = np.cumsum([0, *(part.n_samples for part in self.parts)])
        self._places = [_places(part.gene_names, self.gene_names) for part in self.parts]
        first = [
            next(iter(part.blocks(places[:1], 1, np.zeros(1, dtype=int)))).X
            for part, places in zip(self.parts, self._places, strict=True)
            if part.n_samples
        ]
        self._sparse = any(hasattr(X, "indptr") for X in first)  # then all blocks are

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.sample_names)

    def blocks(
        self, genes: NDArray | None = None, block_size: int = 1024, rows: NDArray | None = None
    ) -> Iterator[ExpressionData]:
        """Blocks of samples of one file after the other."""
        from scipy.sparse import csr_matrix

        genes = np.arange(len(self.gene_names)) if genes is None else np.asarray(genes)
        rows = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        for k, (part, places) in enumerate(zip(self.parts, self._places, strict=True)):
            start, stop = self._starts[k : k + 2]
            mine = rows[(rows >= start) & (rows < stop)]
            for block in part.blocks(places[genes], block_size, mine - start):
                here, mine = mine[: block.n_samples], mine[block.n_samples :]
                X = csr_matrix(block.X) if self._sparse else block.X
                names, obs = self.sample_names[here], self.obs.iloc[here]
                yield ExpressionData(X, self.gene_names[genes], names, obs, self.source)


@contextlib.contextmanager
def open_sources(
    files: Sequence[Path],
    label: str,
    batch: str | None = None,
    *,
    for_query: bool = False,
    **reading: Any,
) -> Iterator[tuple[Profiles, str | None]]:
    """Open the reference files of a training; columns that must be there are looked for first.

    Gives the profiles and the column of the sources: of several files, the file where no other
    column is named. ``for_query`` says that ``genes_in`` may be about the query's table.
    """
    with contextlib.ExitStack() as stack:
        opened = []
        for path in map(Path, files):
            options = dict(reading)
            if for_query and not is_table(path, options.get("format")):
                options["genes_in"] = None
            if options.get("genes_in") == "columns" and options.get("samples") is None:
                needed = [label, *([batch] if batch else [])]
                options["annotations"] = [*dict.fromkeys([*options["annotations"], *needed])]
            one = stack.enter_context(open_expression(path, **options))
            for column in (label, batch):
                if column is not None:
                    check_column(one.obs, column, str(options.get("samples") or path))
            opened.append(one)
        if len(opened) == 1:
            yield opened[0], batch
        else:
            yield JoinedProfiles(opened), batch or FILE_COLUMN


def genes_of_queries(files: Sequence[Path], genes_in: str | None = None) -> list[str] | None:
    """The genes that all of some files have, in the order of the first; None without files."""
    common: list[str] | None = None
    for file in map(Path, files):
        there = read_gene_names(file, genes_in)
        known = set(there)
        common = there if common is None else [name for name in common if name in known]
    return common


def gene_names_in(items: Sequence[str]) -> list[str]:
    """Names and patterns: each item is a file of them, or some separated by commas.

    Of a file the first column counts; a heading such as "gene" and lines that begin with # do not.
    """
    found: list[str] = []
    for item in items:
        if not Path(item).is_file():
            found += [name.strip() for name in item.split(",") if name.strip()]
            continue
        lines = Path(item).read_text(encoding="utf-8-sig").splitlines()
        names = [line.replace("\t", ",").split(",")[0].strip().strip('"') for line in lines]
        names = [name for name in names if name and not name.startswith("#")]
        names = names[1:] if names and names[0].lower() in ("gene", "genes", "symbol") else names
        if not names:
            raise DataError(f"{item} names no gene: write one per line")
        found += names
    return found


def _places(names: NDArray, wanted: NDArray) -> NDArray:
    place = {str(name): k for k, name in reversed(list(enumerate(names)))}  # the first of doubles
    return np.array([place[name] for name in wanted], dtype=np.intp)
