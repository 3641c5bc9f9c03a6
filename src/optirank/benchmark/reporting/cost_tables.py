"""The tables of what classifiers cost: genes, times, settings; and what the tasks are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from optirank.benchmark.classifiers import ordered, tuned_parameters
from optirank.benchmark.reporting.analysis import (
    SCENARIO_NOTES,
    SCENARIO_TITLES,
    SHIFTS,
    Analysis,
    place_title,
    scenario_name,
)
from optirank.benchmark.reporting.costs import sparse_ones
from optirank.benchmark.reporting.layout import (
    NONE,
    Cell,
    Column,
    Table,
    breaks,
    compact,
    listing,
    number,
    seconds,
    text,
    word,
)


def genes(found: Analysis, scenario: str) -> Table:
    """Numbers of genes in one scenario, and who is sparser."""
    frame = found.genes[found.genes["scenario"] == scenario]
    names = ordered(frame["classifier"])
    compared = sparse_ones(names) if frame["percent_sparsest"].notna().any() else []
    rows, shifts = [], []
    for task, here in frame.groupby("task", sort=False):
        cells = here.set_index("classifier").reindex(names)
        shifts.append(found.shift(task))
        line = [text(task), number(here["n_features"].max())]
        line += [number(value) for value in cells["n_genes"]]
        line += [number(cells["percent_sparsest"].get(name, np.nan)) for name in compared]
        rows.append(line)
    columns = [Column("task", latex="{}", words=True), Column("genes offered")]
    columns += [Column(name, latex=rf"$\overline{{s}}_{{\text{{{name}}}}}$") for name in names]
    for name in compared:
        others = [other for other in compared if other != name]
        than = others[0] if len(others) == 1 else "others"
        columns.append(
            Column(
                f"{name} ≤ {than} (%)",
                rf"$100\,\hat{{P}}(s_{{\text{{{name}}}}} \le s_{{\text{{{than}}}}})$",
            )
        )
    caption = "Number of genes that the models need, mean over folds and classes."
    if compared:
        caption += (
            " The last columns give the percentage of folds and classes in which a classifier "
            "needs no more genes than the other named; ties count for both."
            if len(compared) == 2
            else f" The last columns give the percentage of folds and classes in which a "
            f"classifier is the sparsest of {', '.join(compared)}; ties count for all of them."
        )
    return Table(
        name=scenario_name("genes", scenario),
        title=f"Number of genes, {SCENARIO_TITLES[scenario]}",
        caption=f"{caption} {SCENARIO_NOTES[scenario]}",
        columns=columns,
        rows=rows,
        frame=frame,
        breaks=breaks(shifts),
    )


def fit_times(found: Analysis) -> Table:
    """The time of one fit."""

    def cell(row) -> Cell:
        return Cell(seconds(row.fit_seconds, row.fit_seconds_se), row.fit_seconds)

    return _times(
        found,
        cell,
        name="runtimes",
        title="Run time of a fit",
        caption="CPU seconds of one fit: mean ± standard error over folds and classes. Settings "
        "fitted in a chain share its time equally; sorting is not counted.",
    )


def grid_times(found: Analysis) -> Table:
    """The CPU time of the whole grids."""
    return _times(
        found,
        lambda row: Cell(seconds(row.grid_seconds), row.grid_seconds),
        name="grid_times",
        title="CPU time of the whole grids",
        caption="CPU seconds that all settings of the grid took, summed over folds and classes. A "
        "task that tests the models of another one shows their time again.",
    )


def _times(found: Analysis, cell, *, name: str, title: str, caption: str) -> Table:
    frame = found.times
    names = ordered(frame["classifier"])
    rows, shifts = [], []
    for (task, scenario), here in frame.groupby(["task", "scenario"], sort=False):
        cells = {row.classifier: cell(row) for row in here.itertuples()}
        shifts.append(found.shift(task))
        line = [text(place_title(task, scenario))]
        rows.append(line + [cells.get(name, Cell(NONE)) for name in names])
    columns = [Column("task", latex="{}", words=True), *map(Column, names)]
    return Table(name, title, caption, columns, rows, frame, breaks(shifts))


def settings(frame: pd.DataFrame) -> Table:
    """The settings chosen."""
    nested = set(frame.loc[frame["part"] > 0, "task"])

    def problem(row) -> Cell:
        return text(f"{row.positive} (part {row.part})" if row.task in nested else row.positive)

    parameters = {
        "reference" if name == "n_reference" else name: _field(name, compact)
        for name in tuned_parameters()
    }
    return listing(
        "settings",
        "Chosen settings",
        "The setting chosen in each binary problem (the class against the rest) and test part, "
        "with means over the folds. The reference is a fraction of the genes offered.",
        {
            word("task"): lambda row: text(place_title(row.task, row.scenario)),
            word("class"): problem,
            word("classifier"): lambda row: text(row.classifier),
            **parameters,
            "settings tried": lambda row: number(row.n_settings),
            "validation (%)": lambda row: number(100 * row.validation, 1),
            "test (%)": lambda row: number(100 * row.test, 1),
            "genes": lambda row: number(row.n_genes),
        },
        frame,
        by="task",
    )


def tasks(frame: pd.DataFrame) -> Table:
    """What each task is."""
    numbers = ("genes", "classes", "train", "validation", "test", "splits")
    shown = {
        word("task"): lambda row: text(place_title(row.task, row.scenario)),
        word("what"): _field("title", text),
        word("shift"): _field("shift", shift_cell),
        **{word(name): _field(name, text) for name in ("kind", "sources", "target")},
        **{name: _field(f"n_{name}", number) for name in numbers},
        word("names", in_latex=False): _field("classes", text),
        word("note", in_latex=False): _field("note", text),
    }
    return listing(
        "tasks",
        "The tasks",
        "Genes: common to all data sets of the task. Train, validation and test: mean number of "
        "samples in a split. Names: the classes.",
        shown,
        frame,
        by="shift",
    )


def _field(name: str, show: Callable[..., Cell]) -> Callable[..., Cell]:
    return lambda row: show(getattr(row, name))


def shift_cell(name: str) -> Cell:
    """Return a kind of shift, sorted as in the paper's tables."""
    order = list(SHIFTS).index(name) if name in SHIFTS else len(SHIFTS)
    return Cell(SHIFTS.get(name, name) or NONE, float(order))
