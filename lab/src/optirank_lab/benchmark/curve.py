"""The study "at the same number of genes": accuracy against genes over all pairs of a
folder.

For every ordered pair of sets: at most 200 training samples of each class, about 300
samples of the query with the classes in their shares (at least 8 of each), the 3000
genes of best t statistic as candidates, and every method of `rivals` at k = 10, 20, 30,
50, 100, 300 genes (all where there are fewer) or with all candidates.

The table has one row per pair, method and k. A tool that has no result on a pair has a
row without accuracy, whose ``note`` says why.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray

from optirank import __version__
from optirank._util.files import replacing, write_text
from optirank._util.metrics import balanced_accuracy
from optirank._util.workers import one_blas_thread
from optirank_lab.baselines.peers import PeerFailedError
from optirank_lab.benchmark.designs import Design, RealTasks, genes_of_best_t
from optirank_lab.benchmark.figures import curve_figure
from optirank_lab.benchmark.report import missing_extra
from optirank_lab.benchmark.rivals import (
    ALL,
    METHODS,
    SIZES,
    TOOLS,
    PairData,
    methods_for,
    run_method,
)
from optirank_lab.benchmark.sets import Set
from optirank_lab.benchmark.splits import at_most, stratified
from optirank_lab.benchmark.statistics import (
    bootstrap_interval,
    left_out,
    over_tissues,
)
from optirank_lab.benchmark.tasks import SMALLEST_CLASS, BenchmarkTask

MOST_PER_CLASS = 200  # training samples: many pairs in little time
MOST_OF_QUERY = 300  # samples: a balanced accuracy to a few points
CANDIDATES = 3000  # genes: what a careful person keeps before fitting
COLUMNS = [
    "pair",
    "tissue",
    "shift",
    "n_train",
    "n_query",
    "n_classes",
    "n_candidates",
    "method",
    "k",
    "n_genes",
    "balanced_accuracy",
    "note",
]
_COLUMNS = pd.Index(COLUMNS)


def run(
    data: Path,
    pairs: tuple[BenchmarkTask, ...],
    out: Path,
    jobs: int = 1,
    done: Callable[[], None] = lambda: None,
    pythons: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Evaluate all pairs by all methods, and by the tools that have a Python.

    The CSV grows with every pair. What it has of a pair is not computed again; a tool
    that failed is tried again. Its first line names the command, the versions and the
    date.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    pythons = pythons or {}
    table: Any = read(out) if out.is_file() else pd.DataFrame(columns=_COLUMNS)
    table = table[table["pair"].isin([pair.name for pair in pairs])]
    waiting = []
    for pair in pairs:
        lacking = _lacking(table[table["pair"] == pair.name], methods_for(pythons))
        if lacking:
            waiting.append((pair, lacking))
        else:
            done()
    source = RealTasks(Path(data).resolve(), pairs)
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    results: Any = parallel(
        delayed(evaluate)(source, pair, methods, pythons) for pair, methods in waiting
    )
    for rows in results:
        table = _with_rows(table, rows, pairs)
        write(table, out)
        done()
    return table.reset_index(drop=True)


def _lacking(rows: pd.DataFrame, methods: Sequence[str]) -> list[str]:
    """The methods that a pair has no accuracy of."""
    finished = set(rows["method"][rows["balanced_accuracy"].notna()])
    return [method for method in methods if method not in finished]


def _with_rows(
    table: pd.DataFrame, rows: list[dict], pairs: Sequence[BenchmarkTask]
) -> pd.DataFrame:
    """The table with rows of one pair in place of older ones, by pair and method."""
    new = pd.DataFrame(rows, columns=_COLUMNS)
    older = table["pair"].isin(new["pair"]) & table["method"].isin(new["method"])
    kept = table[~older]
    joined: Any = pd.concat([kept, new], ignore_index=True) if len(kept) else new
    place = {pair.name: number for number, pair in enumerate(pairs)}
    place |= {name: number for number, name in enumerate((*METHODS, *TOOLS))}
    return joined.sort_values(
        ["pair", "method"], key=lambda names: names.map(place), kind="stable"
    )


def read(path: Path) -> pd.DataFrame:
    """The table of a CSV of this study."""
    table = pd.read_csv(path, comment="#", dtype={"k": str})
    if list(table.columns) != COLUMNS:
        raise ValueError(f"{path} is not a table of this study: name another file")
    return table


def write(table: pd.DataFrame, path: Path) -> None:
    """Write a table of this study, with the line that says how it was made."""
    write_text(path, header() + table.to_csv(index=False))


def header(command: str = "optirank-lab benchmark curve") -> str:
    """The line above a table: how it was made."""
    used = [f"optirank {__version__}", f"Python {platform.python_version()}"]
    used += [f"{name} {version(name)}" for name in ("scikit-learn", "numpy")]
    return f"# {command}; {', '.join(used)}; {date.today().isoformat()}\n"


def evaluate(
    source: RealTasks,
    pair: BenchmarkTask,
    methods: Sequence[str],
    pythons: Mapping[str, str],
) -> list[dict]:
    """The rows of one pair."""
    (design,) = source.designs(pair.name)
    data = pair_data(design)
    about = {
        "pair": pair.name,
        "tissue": pair.tissue,
        "shift": pair.shift,
        "n_train": len(data.train.labels),
        "n_query": len(data.query.labels),
        "n_classes": len(design.classes),
        "n_candidates": data.n_candidates,
    }
    with one_blas_thread():
        return [
            about | row
            for method in methods
            for row in _method_rows(method, data, pythons)
        ]


def pair_data(design: Design) -> PairData:
    """Samples and candidate genes of a pair, the same for all methods."""
    (query,) = design.tests.values()
    if query is None:
        raise ValueError(f"{design.task.name} has no query: name a pair of sets")
    train, query, order = drawn_samples(design.source, query)
    return PairData(train.take(slice(None), order), query.take(slice(None), order))


def drawn_samples(reference: Set, query: Set) -> tuple[Set, Set, NDArray]:
    """Training samples of each class, samples of the query, and the candidate genes.

    Samples have all genes; the candidates are positions, best t statistic first.
    """
    random = np.random.default_rng(0)
    train = reference.take(at_most(reference.labels, MOST_PER_CLASS, random))
    rows = stratified(query.labels, MOST_OF_QUERY, SMALLEST_CLASS, random)
    return train, query.take(rows), genes_of_best_t(train, CANDIDATES)


def _method_rows(method: str, data: PairData, pythons: Mapping[str, str]) -> list[dict]:
    """One row per number of genes; one with the reason where a tool failed."""
    try:
        return [
            {
                "method": method,
                "k": given.k,
                "n_genes": given.n_genes,
                "balanced_accuracy": round(
                    balanced_accuracy(data.query.labels, given.labels), 6
                ),
            }
            for given in run_method(method, data, pythons)
        ]
    except PeerFailedError as error:
        return [{"method": method, "k": ALL, "note": str(error)}]


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over tissues of each method and k with a 95 % interval, and the median
    of genes.
    """
    rows = []
    groups: Any = table.groupby(["method", "k"], sort=False)
    for (method, k), part in groups:
        by_pair = part.set_index("pair")
        by_tissue = over_tissues(by_pair["balanced_accuracy"], by_pair["tissue"])
        low, high = bootstrap_interval(by_tissue, by_tissue.index)
        rows.append(
            {
                "method": method,
                "k": k,
                "n_genes": part["n_genes"].median(),
                "mean": by_tissue.mean(),
                "low": low,
                "high": high,
            }
        )
    place = {str(k): number for number, k in enumerate((*SIZES, ALL))}
    return pd.DataFrame(rows).sort_values(
        "k", key=lambda sizes: sizes.map(place), kind="stable", ignore_index=True
    )


def write_left_out(table: pd.DataFrame, out: Path) -> Path | None:
    """Write what the best number of genes is worth where it was chosen without a
    tissue.

    One row per method and tissue, in ``NAME-left-out.csv`` beside the CSV; None for one
    tissue.
    """
    if table["tissue"].nunique() < 2:
        return None
    sizes: Any = table[table["k"] != ALL]
    columns = {"k": "setting", "balanced_accuracy": "score"}
    frames = [
        left_out(rows.rename(columns=columns)).assign(method=method)
        for method, rows in sizes.groupby("method", sort=False)
    ]
    path = out.with_name(f"{out.stem}-left-out.csv")
    write_text(path, header() + pd.concat(frames).to_csv(index=False))
    return path


def draw(table: pd.DataFrame, out: Path) -> Path | None:
    """Write the figure of accuracy against genes beside the CSV; None without
    matplotlib.
    """
    if missing_extra():
        return None
    path = out.with_suffix(".png")
    with replacing(path) as temporary:
        curve_figure(means(table)).savefig(temporary, format="png", dpi=160)
    return path
