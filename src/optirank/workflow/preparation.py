"""From files to what a training reads: usable samples and genes, folds, one source."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from optirank._util.names import some
from optirank._util.scales import STANDARDISED, looks_standardised, value_scale
from optirank.estimators.panel_classifier import N_FOLDS, fold_numbers
from optirank.io.data import (
    DataError,
    ExpressionData,
    block_rows,
    check_column,
    duplicates,
    text_column,
)
from optirank.io.genes import match_genes
from optirank.io.reading import is_table, open_expression, read_gene_names
from optirank.tuning.folds import make_folds
from optirank.workflow.gene_lists import excluded, matching, with_close_names
from optirank.workflow.labels import label_notes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.io.data import Profiles
    from optirank.workflow.train import TrainingOptions

MIN_CLASS = 3  # samples: two to learn from while one is held out
_FULL_SOURCE = (
    10  # samples of a class with which a source counts half: one label is never a lot
)
FILE_COLUMN = "file"  # of several reference files: which one a sample is from


class EmptySamplesError(DataError):
    """Some samples have the same value in every gene; ``rows`` are their positions."""

    def __init__(self, rows: NDArray) -> None:
        super().__init__(f"{len(rows)} samples have the same value in every gene")
        self.rows = rows


class ProfilesSource:
    """The usable samples and genes of some profiles, read in blocks.

    The first pass over all genes checks the values, and makes a checksum of names and values.
    """

    def __init__(self, profiles: Profiles, rows: NDArray, columns: NDArray) -> None:
        self._profiles, self._rows, self._columns = profiles, rows, columns
        self.shape = len(rows), len(columns)
        self.genes = np.asarray(profiles.gene_names, dtype=object)[columns]
        # Some 200 samples, evenly spaced, tell the kind of values
        looked_at = rows[:: max(1, len(rows) // 200)]
        sample = next(iter(profiles.blocks(columns, len(looked_at), looked_at))).X
        _refuse_no_numbers(sample, profiles.source)
        self.scale = value_scale(sample)
        self.standardised = looks_standardised(sample)
        self.checksum = ""

    def blocks(self, columns: NDArray | None = None) -> Iterator[Any]:
        """All samples in order, with some genes (all): arrays or CSR matrices."""
        profiles, first = self._profiles, columns is None
        chosen = self._columns if first else self._columns[columns]
        if len(chosen) == len(profiles.gene_names) and (np.diff(chosen) == 1).all():
            chosen = None
        rows = None if len(self._rows) == profiles.n_samples else self._rows
        names = [*map(str, self.genes), *map(str, profiles.sample_names[self._rows])]
        digest = hashlib.blake2b("\0".join(names).encode(), digest_size=16)
        empty, start = [], 0
        for block in profiles.blocks(
            chosen, block_rows(len(profiles.gene_names)), rows
        ):
            X = block.X.tocsr() if sparse.issparse(block.X) else np.asarray(block.X)
            if first:
                _refuse_no_numbers(X, profiles.source)
                same = (
                    np.diff(X.indptr) == 0
                    if sparse.issparse(X)
                    else X.min(axis=1) == X.max(axis=1)
                )
                empty.append(start + np.flatnonzero(same))
                values = sparse.csr_matrix(X)
                for part, kind in zip(
                    (values.indptr, values.indices, values.data),
                    ("<i8", "<i4", "<f8"),
                    strict=True,
                ):
                    digest.update(np.ascontiguousarray(part, dtype=kind).data)
            start += X.shape[0]
            yield X
        if first:
            found = np.concatenate(empty)
            if len(found):
                raise EmptySamplesError(self._rows[found])
            self.checksum = digest.hexdigest()

    def some_samples(self, rows: NDArray) -> Any:
        """Some samples (rising positions) with all genes: an array or a CSR matrix."""
        profiles = self._profiles
        step = block_rows(len(profiles.gene_names))
        blocks = profiles.blocks(self._columns, step, self._rows[rows])
        parts = [block.X for block in blocks]
        if sparse.issparse(parts[0]):
            return sparse.vstack(parts, format="csr")
        return np.concatenate([np.asarray(part) for part in parts])


@dataclass(frozen=True)
class Prepared:
    """Everything that a training works on."""

    source: ProfilesSource
    classes: NDArray
    codes: NDArray  # the class of each sample, as a number
    fold_of: NDArray  # the fold that holds each sample out, -1 for none
    sources: NDArray | None  # the source of each sample, where folds leave sources out
    samples: NDArray  # names
    include: NDArray  # positions of the genes that must be in the panel
    n_genes: int | str  # of the panel; "auto" chooses by held-out accuracy
    n_genes_of_file: int
    notes: list[str]
    allowed: NDArray | None = None  # positions of the genes that may be; None: all
    per_class: int = 0  # genes of largest weight that each class keeps

    @property
    def weights(self) -> NDArray | None:
        """Weights of samples by which, in every class, large sources count the same; or None."""
        if self.sources is None:
            return None
        # A source in which a class is frequent would else be learned in place of the class
        cells = (
            self.codes
            + len(self.classes) * np.unique(self.sources, return_inverse=True)[1]
        )
        weights = 1.0 / (np.bincount(cells)[cells] + _FULL_SOURCE)
        return (
            weights
            * (np.bincount(self.codes) / np.bincount(self.codes, weights))[self.codes]
        )

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(np.unique(self.fold_of[self.fold_of >= 0]))

    def summary(self) -> str:
        """How much there is of everything, in a line."""
        n_samples, n_genes = self.source.shape
        return (
            f"{n_samples} samples, {n_genes} genes, {len(self.classes)} classes, "
            f"{self.n_folds} folds"
        )


def prepare(
    data: Profiles, options: TrainingOptions, empty: NDArray | None = None
) -> Prepared:
    """Check everything that can be wrong, and leave out what cannot be used.

    ``empty`` are the positions of samples that turned out to have no values to rank.
    """
    notes: list[str] = []  # every step adds its own
    data = _unique_genes(data, notes)
    labels = text_column(data.obs, options.label, data.source)
    groups = (
        None
        if options.batch is None
        else text_column(data.obs, options.batch, data.source)
    )
    columns = _usable_genes(
        np.asarray(data.gene_names, object), data.source, options, notes
    )
    rows = _usable_samples(data, options, labels, groups, empty, notes)
    y = labels.to_numpy()[rows].astype(str)
    notes += label_notes(y)
    sources = None if groups is None else groups.to_numpy()[rows].astype(str)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        found = f"one class ({classes[0]})" if len(classes) else "no class"
        raise DataError(
            f"{data.source}: column {options.label!r} has {found} of at least {MIN_CLASS} usable "
            "samples: a classifier needs two classes"
        )
    if options.n_genes != "auto" and options.n_genes > len(columns):
        raise DataError(
            f"a panel of {options.n_genes} genes: {data.source} has {len(columns)} genes that can "
            "be used; ask for fewer"
        )
    source = ProfilesSource(data, rows, columns)
    if source.standardised:
        notes.append(STANDARDISED)
    return Prepared(
        source=source,
        classes=classes,
        codes=codes,
        include=required_genes(source.genes, data.source, options, notes),
        fold_of=_folds(codes, classes, sources, options, data.source, notes),
        sources=sources,
        samples=np.asarray(data.sample_names, dtype=object)[rows],
        n_genes=_panel_size(options, len(columns)),
        n_genes_of_file=len(data.gene_names),
        notes=notes,
    )


def _panel_size(options: TrainingOptions, n_usable: int) -> int | str:
    """The size asked for; of a list of genes all, unless fewer are asked for."""
    if options.n_genes == "auto" and options.gene_list is not None:
        return n_usable
    return options.n_genes


def _usable_genes(
    names: NDArray, source: str, options: TrainingOptions, notes: list[str]
) -> NDArray:
    """Rising positions of the genes to choose from."""
    kept = np.ones(len(names), dtype=bool)
    texts = [str(name) for name in names]
    if options.gene_list is not None:
        wanted = list(dict.fromkeys(str(one) for one in options.gene_list))
        kept = np.isin(np.array(texts, dtype=object).astype(str), wanted)
        if kept.sum() < 2:
            raise DataError(
                f"{source} has {kept.sum()} of the {len(wanted)} genes asked for, too few: it "
                f"has genes such as {some(texts, 3)}, asked for were {some(wanted, 3)}"
            )
        if lost := sorted(set(wanted).difference(texts)):
            notes.append(
                f"{len(lost)} of {len(wanted)} genes asked for are missing: {some(lost)}"
            )
    kept &= ~excluded(texts, options.exclude, notes)
    positions = np.flatnonzero(kept)
    if len(positions) < 2:
        raise DataError(
            f"{source}: {len(positions)} of {len(names)} genes are left to choose from, and ranks "
            "need at least 2"
        )
    if options.query_genes is not None:
        here = names[positions]
        match = match_genes(here, options.query_genes)
        n = int(match.present.sum())
        if n < 2:
            raise DataError(
                f"{source} shares {n} genes with the data to be labelled: it has genes such as "
                f"{some(here, 3)}, those have {some(options.query_genes, 3)}"
            )
        notes.append(
            f"{n} of {len(here)} genes are used: those that the data to be labelled have"
        )
        notes += match.spelling_notes()
        positions = positions[match.present]
    return positions


def required_genes(
    genes: NDArray, source: str, options: TrainingOptions, notes: list[str]
) -> NDArray:
    """Positions of the genes that must be in the panel."""
    texts = [str(gene) for gene in genes]
    hits = {pattern: matching(texts, pattern) for pattern in options.include}
    lost = [pattern for pattern, mask in hits.items() if not mask.any()]
    if lost:
        raise DataError(
            f"{source} lacks {len(lost)} of the genes that must be in the panel: they were "
            "excluded, the query lacks them, or they have other names: "
            f"{some([with_close_names(name, texts) for name in lost], 30)}"
        )
    found = np.flatnonzero(np.any([np.zeros(len(texts), bool), *hits.values()], axis=0))
    if options.n_genes != "auto" and len(found) > options.n_genes:
        raise DataError(
            f"{len(found)} genes must be in a panel of {options.n_genes}: ask for more genes, or "
            "include fewer"
        )
    if len(found):
        notes.append(
            f"{len(found)} genes are in the panel as asked: {some(genes[found])}"
        )
    return found


def _folds(
    codes: NDArray,
    classes: NDArray,
    sources: NDArray | None,
    options: TrainingOptions,
    source: str,
    notes: list[str],
) -> NDArray:
    """The fold of each sample."""
    if sources is not None and len(np.unique(sources)) < 2:
        raise DataError(
            f"{source}: column {options.batch!r} has the single value {str(sources[0])!r}, so no "
            "source can be left out: leave the column out, or name another (batch=, --batch)"
        )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            folds = make_folds(codes, N_FOLDS, sources)
        except ValueError:
            folds = []
    notes += [str(warning.message) for warning in told]
    lost = {
        one for train, test in folds for one in np.setdiff1d(codes[test], codes[train])
    }
    folds = [
        (train, test)
        for train, test in folds
        if np.isin(codes[test], codes[train]).any()
    ]
    if not folds:
        raise DataError(
            f"{source}: no class is in two sources of column {options.batch!r}, so none that is "
            "learned from some can be tested on another: leave the column out, or name another "
            "(batch=, --batch)"
        )
    if lost:
        notes.append(
            "where its only source is left out a class cannot be learned, and its samples there "
            f"are not counted: {some([classes[k] for k in sorted(lost)])}"
        )
    return fold_numbers(codes, folds)


def _unique_genes(data: Profiles, notes: list[str]) -> Profiles:
    """The data with names of their own for the genes; where some share one, all are read."""
    twice = duplicates(data.gene_names)
    if not twice:
        return data
    whole = next(iter(data.blocks(None, max(1, data.n_samples))))
    how = "sum" if value_scale(whole.X) == "counts" else "first"
    told = "their counts are summed" if how == "sum" else "the first of each is used"
    notes.append(f"{len(twice)} gene names occur more than once, {told}: {some(twice)}")
    return whole.merge_duplicates(how)


def _usable_samples(
    data: Profiles,
    options: TrainingOptions,
    labels: pd.Series,
    groups: pd.Series | None,
    empty: NDArray | None,
    notes: list[str],
) -> NDArray:
    """Positions of the samples with a label, a source, values to rank and a class large enough."""
    if not data.n_samples:
        raise DataError(f"{data.source} holds no samples")
    keep, told = np.ones(data.n_samples, dtype=bool), []

    def leave_out(mask: NDArray, what: str) -> None:
        n = int((keep & mask).sum())
        if n:
            told.append(f"{n} sample{'s are' if n > 1 else ' is'} left out: {what}")
        keep[mask] = False

    for column, values in ((options.label, labels), (options.batch, groups)):
        if values is not None:
            what = "label" if values is labels else "source"
            missing = values.isna() | (values.astype(str).str.strip() == "")
            leave_out(missing.to_numpy(), f"no {what} in {column!r}")
    if empty is not None:
        leave_out(
            np.isin(np.arange(data.n_samples), empty), "every gene has the same value"
        )
    if not keep.any():
        raise DataError(
            f"{data.source}: no sample is left to train on; {'; '.join(told)}"
        )
    counts = labels[keep].value_counts()
    small = counts[counts < MIN_CLASS]
    if len(small):
        named = some([f"{name} ({n})" for name, n in small.items()])
        what = f"their class has fewer than {MIN_CLASS}: {named}"
        leave_out(labels.isin(small.index).to_numpy(), what)
    notes += told
    return np.flatnonzero(keep)


def _refuse_no_numbers(X: Any, source: str) -> None:
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind not in "buif":
        raise DataError(f"{source}: the matrix holds {values.dtype}, not numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        n = int((~np.isfinite(values)).sum())
        what = "1 value is" if n == 1 else f"{n} values are"
        raise DataError(
            f"{source}: {what} missing or infinite (NaN, inf): fill in what is missing, or "
            "leave these genes or samples out"
        )


class JoinedProfiles:
    """Several sets of profiles as one, with the genes that all of them have.

    ``obs`` has the annotations of all and the column ``file``. Nothing is read before it is asked
    for.
    """

    def __init__(self, parts: Sequence[Profiles]) -> None:
        self.parts = list(parts)
        common = set(map(str, self.parts[0].gene_names))
        for part in self.parts[1:]:
            common.intersection_update(map(str, part.gene_names))
        self.gene_names = np.array(
            [name for name in map(str, self.parts[0].gene_names) if name in common],
            dtype=object,
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
        self._places = []  # of a name that a file has twice, the first
        for part in self.parts:
            place = {
                str(name): k for k, name in reversed(list(enumerate(part.gene_names)))
            }
            self._places.append(
                np.array([place[name] for name in self.gene_names], dtype=np.intp)
            )
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
        self,
        genes: NDArray | None = None,
        block_size: int = 1024,
        rows: NDArray | None = None,
    ) -> Iterator[ExpressionData]:
        """Blocks of samples of one file after the other."""
        genes = np.arange(len(self.gene_names)) if genes is None else np.asarray(genes)
        rows = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        for k, (part, places) in enumerate(zip(self.parts, self._places, strict=True)):
            start, stop = self._starts[k : k + 2]
            mine = rows[(rows >= start) & (rows < stop)]
            for block in part.blocks(places[genes], block_size, mine - start):
                here, mine = mine[: block.n_samples], mine[block.n_samples :]
                X = sparse.csr_matrix(block.X) if self._sparse else block.X
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
                options["annotations"] = [
                    *dict.fromkeys([*options["annotations"], *needed])
                ]
            one = stack.enter_context(open_expression(path, **options))
            for column in (label, batch):
                if column is not None:
                    check_column(one.obs, column, str(options.get("samples") or path))
            opened.append(one)
        if len(opened) == 1:
            yield opened[0], batch
        else:
            yield JoinedProfiles(opened), batch or FILE_COLUMN


def genes_of_queries(
    files: Sequence[Path], genes_in: str | None = None
) -> list[str] | None:
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
        names = [
            line.replace("\t", ",").split(",")[0].strip().strip('"') for line in lines
        ]
        names = [name for name in names if name and not name.startswith("#")]
        names = (
            names[1:]
            if names and names[0].lower() in ("gene", "genes", "symbol")
            else names
        )
        if not names:
            raise DataError(f"{item} names no gene: write one per line")
        found += names
    return found
