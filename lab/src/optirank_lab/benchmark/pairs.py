"""Pairs of sets that a CSV names: read, and checked before any work.

Everything that is wrong is listed at once. What a pair consists of (samples, classes
kept and dropped, common genes, platforms, checksums of its files) is one row of a
table, which stays with the results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from optirank._util.numbers import STANDARDISED, looks_standardised
from optirank._util.words import some
from optirank.data.opening import open_profiles
from optirank.data.profiles import DataError
from optirank_lab.benchmark import sets
from optirank_lab.benchmark.tasks import (
    FEWEST_GENES,
    OTHER_PLATFORM,
    SAME_PLATFORM,
    SCALED_REFERENCE,
    SMALLEST_CLASS,
    UNKNOWN_PLATFORM,
    BenchmarkTask,
    platform_of,
    shift_between,
)
from optirank_lab.data.registry import LABEL, find_path, local_paths

_NEEDED = ("reference", "query", "problem")
# What the column `platform` may say of the two sets of a pair; else the files decide.
_SHIFTS = {
    "same": SAME_PLATFORM,
    "other": OTHER_PLATFORM,
    "scaled": SCALED_REFERENCE,
    "": UNKNOWN_PLATFORM,
}
_FEWEST_CLASSES = 2
_ENOUGH_VALUES = 50  # other than 0: two samples that agree in these are one


def read_pairs(path: Path) -> tuple[tuple[BenchmarkTask, ...], list[str]]:
    """The pairs that a CSV names, and what is wrong with others.

    ``reference`` and ``query`` are names of sets, with or without ``.h5ad``;
    ``problem`` takes the place of a tissue: pairs of one problem are averaged first.
    Two columns may be left out or empty: ``label``, the column of labels
    (``cell_type`` by default), and ``platform``, ``same`` or ``other``, which says
    whether both sets are of one platform (else `check_pairs` looks into the files), or
    ``scaled``, where the values of the reference are standardised per gene.
    """
    columns = f"{', '.join(_NEEDED)} and, if needed, label and platform"
    try:
        table = pd.read_csv(path, dtype=str, comment="#", keep_default_na=False)
    except FileNotFoundError:
        return (), [f"{path} does not exist: write a CSV with the columns {columns}"]
    except (OSError, ValueError) as error:
        return (), [f"{path} cannot be read as CSV: {' '.join(str(error).split())}"]
    lacking = [name for name in _NEEDED if name not in table]
    if lacking:
        return (), [f"{path} lacks {', '.join(lacking)}: its columns are {columns}"]
    if table.empty:
        return (), [f"{path} names no pair: write one line per pair"]
    pairs: dict[str, BenchmarkTask] = {}
    problems: list[str] = []
    for number, record in enumerate(table.to_dict("records"), 1):
        row = {str(column): text.strip() for column, text in record.items()}
        of_row = [*_problems_of_row(row)]
        pair = _task(row)
        if not of_row and pair.name in pairs:
            of_row = [f"{pair.name} stands there before: name each pair once"]
        problems += [f"{path}, pair {number}: {problem}" for problem in of_row]
        if not of_row:
            pairs[pair.name] = pair
    return tuple(pairs.values()), problems


def shipped_pairs(data: Path) -> tuple[BenchmarkTask, ...]:
    """The pairs of the project's evidence whose sets are in a folder."""
    path = files("optirank_lab.data").joinpath("pairs.csv")
    with as_file(path) as table:
        pairs, problems = read_pairs(table)
    assert not problems, problems
    there = local_paths(data) if data.is_dir() else {}
    return tuple(pair for pair in pairs if there.keys() >= {*pair.sets})


def _problems_of_row(row: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with a line of the CSV."""
    for column in _NEEDED:
        if not row[column]:
            yield f"the column {column} is empty: fill it"
    reference, query = _set_names(row)
    if reference and reference == query:
        yield f"{reference} would be tested on itself: name another query"
    platform = row.get("platform", "").lower()
    if platform not in _SHIFTS:
        yield (
            f"platform is {row['platform']!r}: write same, other or scaled, or leave "
            "it empty"
        )


def _set_names(row: Mapping[str, str]) -> tuple[str, str]:
    reference, query = (row[column] for column in ("reference", "query"))
    return reference.removesuffix(".h5ad"), query.removesuffix(".h5ad")


def _task(row: Mapping[str, str]) -> BenchmarkTask:
    """The pair of a line of the CSV."""
    reference, query = _set_names(row)
    label = row.get("label", "") or LABEL
    name = f"{reference} to {query}"
    if label != LABEL:  # two questions may be asked of one pair of sets
        name += f" ({label})"
    return BenchmarkTask(
        name=name,
        title=name,
        tissue=row["problem"],
        shift=_SHIFTS.get(row.get("platform", "").lower(), UNKNOWN_PLATFORM),
        train=(reference,),
        test=query,
        scheme="all",
        label=label,
    )


@dataclass(frozen=True)
class _SetContents:
    """What a check keeps of a set; its values are not held in memory."""

    name: str
    path: Path
    checksum: str
    counts: dict[str, int]  # samples of each class
    genes: dict[str, None]  # in the order of the file
    platform: str
    samples: frozenset[bytes]  # hashes of their values


class CheckedPairs(NamedTuple):
    """Pairs that can be run, a table with one row for each, and why others cannot."""

    pairs: tuple[BenchmarkTask, ...]
    table: pd.DataFrame
    problems: list[str]


def check_pairs(pairs: Sequence[BenchmarkTask], data: Path) -> CheckedPairs:
    """Look into the files of all pairs, once per set and column of labels.

    A pair whose ``shift`` is not known gets that of its two files.
    """
    wanted = {(name, pair.label): pair for pair in pairs for name in pair.sets}
    contents: dict[tuple[str, str], _SetContents] = {}
    problems: list[str] = []
    for (name, label), pair in wanted.items():
        try:
            contents[name, label] = _contents(name, pair, data)
        except (ValueError, OSError) as error:
            reason = " ".join(str(error).split())
            problems.append(reason if name in reason else f"{name}: {reason}")
    checked: list[BenchmarkTask] = []
    rows: list[dict[str, Any]] = []
    for pair in pairs:
        reference, query = (contents.get((name, pair.label)) for name in pair.sets)
        if reference is None or query is None:
            continue
        of_pair = [*_problems_of_pair(reference, query)]
        problems += [f"{pair.name}: {problem}" for problem in of_pair]
        if of_pair:
            continue
        if pair.shift == UNKNOWN_PLATFORM:
            shift = shift_between(reference.platform, query.platform)
            pair = replace(pair, shift=shift)
        checked.append(pair)
        rows.append(_row(pair, reference, query))
    return CheckedPairs(tuple(checked), pd.DataFrame(rows), problems)


def _contents(name: str, pair: BenchmarkTask, data: Path) -> _SetContents:
    """Read a set; `DataError` where it cannot be used."""
    path = find_path(name, data)
    with path.open("rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    part = sets.load(name, pair, data)
    if looks_standardised(part.raw):
        raise DataError(f"{name}: {STANDARDISED}")
    with open_profiles(path) as opened:
        platform = platform_of(name, opened.obs)
    return _SetContents(
        name=name,
        path=path.resolve(),
        checksum=checksum,
        counts=sets.class_counts(part),
        genes=dict.fromkeys(map(str, part.genes)),
        platform=platform,
        samples=_hashes(part),
    )


def _hashes(part: sets.Set) -> frozenset[bytes]:
    """One hash per sample, of its values in the order of gene names.

    Samples with few values have none: two of them may be equal by chance.
    """
    by_name = np.argsort(part.genes.astype(str), kind="stable")
    matrix = sp.csr_array(part.raw)[:, by_name]
    matrix.sort_indices()
    hashes = set()
    for begin, end in pairwise(matrix.indptr):
        if end - begin >= _ENOUGH_VALUES:
            values = matrix.indices[begin:end], matrix.data[begin:end]
            hashes.add(hashlib.sha256(b"".join(map(bytes, values))).digest())
    return frozenset(hashes)


def _problems_of_pair(reference: _SetContents, query: _SetContents) -> Iterator[str]:
    """Why two sets are no pair."""
    if reference.path == query.path or reference.checksum == query.checksum:
        yield "both are the same file, so the set would be tested on itself"
        return
    n_shared = len(reference.samples & query.samples)
    if n_shared:
        yield (
            f"{n_shared} samples of the query are in the reference too, with the same "
            "values: take them out of one set"
        )
    kept = _kept(reference, query)
    if len(kept) < _FEWEST_CLASSES:
        yield _too_few_classes(kept, reference, query)
    n_genes = len(reference.genes.keys() & query.genes.keys())
    if n_genes < FEWEST_GENES:
        examples = "; ".join(
            f"{part.name} has {some(part.genes, 3)}" for part in (reference, query)
        )
        yield (
            f"{n_genes} common genes, the panel of 100 needs {FEWEST_GENES}: "
            f"{examples}: name genes alike, or leave the pair out"
        )


def _kept(reference: _SetContents, query: _SetContents) -> list[str]:
    """The classes with enough samples in both sets."""
    return sorted(
        name
        for name, count in reference.counts.items()
        if min(count, query.counts.get(name, 0)) >= SMALLEST_CLASS
    )


def _too_few_classes(
    kept: list[str], reference: _SetContents, query: _SetContents
) -> str:
    """What is wrong where two sets share too few classes, with the remedy."""
    common = sorted(reference.counts.keys() & query.counts.keys())
    needed = (
        f"at least {_FEWEST_CLASSES} common classes of {SMALLEST_CLASS} samples or "
        "more in both sets are needed, "
    )
    if len(common) < _FEWEST_CLASSES:
        return (
            f"{needed}and {len(common)} are common by name: {reference.name} has "
            f"{some(reference.counts, 10)}; {query.name} has {some(query.counts, 10)}: "
            "name classes alike in both files, or leave the pair out"
        )
    sizes = _with_counts(common, reference, query)
    return (
        f"{needed}and there are {len(kept)}. Samples of the common classes in "
        f"{reference.name} and {query.name}: {sizes}: add samples, or leave the pair "
        "out"
    )


def _with_counts(
    names: Sequence[str], reference: _SetContents, query: _SetContents
) -> str:
    """Classes with their numbers of samples in both sets."""
    both = (reference.counts, query.counts)
    texts = []
    for name in names:
        n_reference, n_query = (counts.get(name, 0) for counts in both)
        texts.append(f"{name} ({n_reference} and {n_query})")
    return some(texts, 20)


def _row(pair: BenchmarkTask, reference: _SetContents, query: _SetContents) -> dict:
    """What a pair consists of."""
    kept = _kept(reference, query)
    dropped = sorted((reference.counts.keys() | query.counts.keys()) - {*kept})
    return {
        "pair": pair.name,
        "tissue": pair.tissue,
        "shift": pair.shift,
        "n_reference": sum(reference.counts[name] for name in kept),
        "n_query": sum(query.counts[name] for name in kept),
        "classes": some(kept, len(kept)),
        "dropped": _with_counts(dropped, reference, query) if dropped else "",
        "n_genes": len(reference.genes.keys() & query.genes.keys()),
        "reference_sha256": reference.checksum,
        "query_sha256": query.checksum,
    }
