"""The study "at the same number of genes": accuracy against genes over all pairs of a
folder.

For every ordered pair of sets: at most 200 training samples of each class, about 300
samples of the query with the classes in their shares (at least 8 of each), the 3000
genes of best t statistic as candidates, and every classifier of the experiment "curve"
at k = 10, 20, 30, 50, 100, 300 genes (all where there are fewer) or with all
candidates.

The table has one row per pair, method and k. A classifier that has no result on a pair
has a row without accuracy, whose ``note`` says why.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from optirank import __version__
from optirank._util.files import replacing, write_text
from optirank_lab.benchmark.classifiers import CLASSIFIERS, WHOLE, names_for
from optirank_lab.benchmark.classifiers import CURVE as EXPERIMENT
from optirank_lab.benchmark.designs import ALL as ALL_CLASSES
from optirank_lab.benchmark.designs import CURVE, Design, RealTasks
from optirank_lab.benchmark.engine import Plan, Work, plan_real
from optirank_lab.benchmark.figures import curve_figure
from optirank_lab.benchmark.results import Storage
from optirank_lab.benchmark.rivals import ALL, SIZES
from optirank_lab.benchmark.statistics import (
    bootstrap_interval,
    left_out,
    over_tissues,
)
from optirank_lab.benchmark.tasks import BenchmarkTask
from optirank_lab.benchmark.work import run_unit

PANEL = "panel"
CURVE_METHODS = [
    entry.in_tables
    for entry in map(CLASSIFIERS.get, names_for(EXPERIMENT))
    if entry and not entry.peer
]
"""What needs nothing but this installation, by its names in tables."""

TOOLS = [entry.in_tables for entry in CLASSIFIERS.values() if entry.peer]
"""Competing tools, which come last in tables."""

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


def classifiers_for(pythons: Mapping[str, str]) -> list[str]:
    """The classifiers of a run: all, but for tools that have no Python."""
    names = names_for(EXPERIMENT)
    peers = {name: CLASSIFIERS[name].peer for name in names}
    return [name for name in names if peers[name] in (None, *pythons)]


def plan(source: RealTasks, storage: Storage, pythons: Mapping[str, str]) -> Plan:
    """The units of a run: each classifier on each pair."""
    chosen = {WHOLE: classifiers_for(pythons)}
    return plan_real(source, source.tasks, chosen, CURVE, storage, named=True)


def work(source: RealTasks, pythons: Mapping[str, str]) -> Work:
    """What a worker needs to know of a run."""
    return Work(source, CURVE, peers=tuple(pythons.items()))


def table(storage: Storage, pairs: Sequence[BenchmarkTask]) -> pd.DataFrame:
    """The table of what a folder holds of some pairs."""
    rows: list[dict] = []
    designs = storage.designs()
    for pair in pairs:
        if pair.name in designs:
            n_classes = len(designs[pair.name]["classes"])
            rows += _rows(pair, n_classes, storage.units(pair.name))
    return pd.DataFrame(rows, columns=pd.Index(COLUMNS))


def evaluate(
    design: Design, names: Sequence[str], pythons: Mapping[str, str]
) -> list[dict]:
    """The rows of one pair."""
    (split,) = design.splits
    units = [
        {"classifier": name}
        | run_unit(design, split, ALL_CLASSES, name, CURVE, peers=pythons)
        for name in names
    ]
    return _rows(design.task, len(design.classes), units)


def _rows(pair: BenchmarkTask, n_classes: int, units: list[dict]) -> list[dict]:
    """One row per classifier and number of genes; one with the reason where one
    failed.
    """
    by_name = {unit["classifier"]: unit for unit in units}
    known = next((unit for unit in units if "failed" not in unit), None)
    about: dict[str, Any] = {
        "pair": pair.name,
        "tissue": pair.tissue,
        "shift": pair.shift,
    }
    if known is not None:
        about |= {
            "n_train": known["n_train"],
            "n_query": known["n_test"][pair.name],
            "n_classes": n_classes,
            "n_candidates": known["n_features"],
        }
    rows = []
    for name in names_for(EXPERIMENT):
        unit = by_name.get(name)
        if unit is None:
            continue
        row = about | {"method": CLASSIFIERS[name].in_tables}
        if "failed" in unit:
            rows.append(row | {"k": ALL, "note": unit["failed"]})
            continue
        measured = zip(
            unit["settings"], unit["n_genes"], unit["test"][pair.name], strict=True
        )
        rows += [
            row
            | {
                "k": setting["k"],
                "n_genes": n_genes,
                "balanced_accuracy": round(score, 6),
            }
            for setting, n_genes, score in measured
        ]
    return rows


def with_rows_of(table: pd.DataFrame, older: pd.DataFrame) -> pd.DataFrame:
    """The table with what competing tools said in an older one, where they were not
    run again.
    """
    kept = older["method"].isin(TOOLS) & ~older["method"].isin(table["method"])
    kept &= older["pair"].isin(table["pair"])
    place = {name: number for number, name in enumerate(table["pair"].unique())}
    place |= {name: number for number, name in enumerate((*CURVE_METHODS, *TOOLS))}
    joined: Any = pd.concat([table, older[kept]], ignore_index=True)
    return joined.sort_values(
        ["pair", "method"], key=lambda names: names.map(place), kind="stable"
    )


def read(path: Path) -> pd.DataFrame:
    """The table of a CSV of this study."""
    table = pd.read_csv(path, comment="#", dtype={"k": str})
    if list(table.columns) != COLUMNS:
        raise ValueError(f"{path} is not a table of this study: name another file")
    return table


def write(table: pd.DataFrame, path: Path, first: str = "") -> None:
    """Write a table of this study, with the lines that say how it was made."""
    write_text(path, (first or header()) + table.to_csv(index=False))


def header(command: str = "optirank-lab benchmark curve") -> str:
    """The line above a table: how it was made."""
    used = [f"optirank {__version__}", f"Python {platform.python_version()}"]
    used += [f"{name} {version(name)}" for name in ("scikit-learn", "numpy")]
    return f"# {command}; {', '.join(used)}; {date.today().isoformat()}\n"


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


def draw(table: pd.DataFrame, out: Path) -> Path:
    """Write the figure of accuracy against genes beside the CSV."""
    path = out.with_suffix(".png")
    with replacing(path) as temporary:
        curve_figure(means(table)).savefig(temporary, format="png", dpi=160)
    return path
