"""The tables of what classifiers cost: genes, times, settings; and what the tasks are."""

from __future__ import annotations

import numpy as np
import pandas as pd

from optirank.benchmark.classifiers import ordered, tuned_parameters
from optirank.benchmark.reporting.analysis import SCENARIO_TITLES, Analysis, place_title
from optirank.benchmark.reporting.costs import sparse_ones
from optirank.benchmark.reporting.layout import (
    NONE,
    Cell,
    Column,
    Table,
    compact,
    number,
    seconds,
    text,
)
from optirank.benchmark.reporting.table_parts import (
    SCENARIO_NOTES,
    breaks,
    scenario_name,
    shift_cell,
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
    params = tuned_parameters()
    headings = ["reference" if name == "n_reference" else name for name in params]
    headings += ["settings tried", "validation (%)", "test (%)", "genes"]
    rows = [
        [
            text(place_title(row.task, row.scenario)),
            text(f"{row.positive} (part {row.part})" if row.task in nested else row.positive),
            text(row.classifier),
            *(compact(getattr(row, name)) for name in params),
            number(row.n_settings),
            number(100 * row.validation, 1),
            number(100 * row.test, 1),
            number(row.n_genes),
        ]
        for row in frame.itertuples()
    ]
    return Table(
        name="settings",
        title="Chosen settings",
        caption=(
            "The setting chosen in each binary problem (the class against the rest) and test part, "
            "with means over the folds. The reference is a fraction of the genes offered."
        ),
        columns=[*_words("task", "class", "classifier"), *map(Column, headings)],
        rows=rows,
        frame=frame,
        breaks=breaks(frame["task"]),
    )


def tasks(frame: pd.DataFrame) -> Table:
    """What each task is."""
    headings = ("genes", "classes", "train", "validation", "test", "splits")
    names = (Column(name, in_latex=False, words=True) for name in ("names", "note"))
    rows = [
        [
            text(place_title(row.task, row.scenario)),
            text(row.title),
            shift_cell(row.shift),
            text(row.kind),
            text(row.sources),
            text(row.target),
            number(row.n_genes),
            number(row.n_classes),
            number(row.n_train),
            number(row.n_validation),
            number(row.n_test),
            number(row.n_splits),
            text(row.classes),
            text(row.note),
        ]
        for row in frame.itertuples()
    ]
    first = _words("task", "what", "shift", "kind", "sources", "target")
    return Table(
        name="tasks",
        title="The tasks",
        caption=(
            "Genes: common to all data sets of the task. Train, validation and test: mean number "
            "of samples in a split. Names: the classes."
        ),
        columns=[*first, *map(Column, headings), *names],
        rows=rows,
        frame=frame,
        breaks=breaks(frame["shift"]),
    )


def _words(*names: str) -> list[Column]:
    return [Column(name, words=True) for name in names]
