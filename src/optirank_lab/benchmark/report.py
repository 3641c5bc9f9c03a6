"""What is written from results: tables, figures and one page that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank._util.files import replacing, write_text
from optirank._util.metrics import NO_NUMBER, in_percent
from optirank._util.names import some
from optirank.report.environment import page_template, svg_address
from optirank_lab.benchmark import statistics
from optirank_lab.benchmark.classifiers import CLASSIFIERS, ordered
from optirank_lab.benchmark.results import Results
from optirank_lab.benchmark.synthetic import PUBLISHED, SWEEPS, Point, Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "*o^sDvX<p>HdP8h"


class Group:
    """One comparison: its scores, and the statistics of them."""

    def __init__(self, name: str, scores: pd.DataFrame) -> None:
        self.name, self.scores = name, scores
        self.table = statistics.task_means(scores)  # tasks x classifiers
        first = scores.drop_duplicates("task").set_index("task")["tissue"]
        self.tissues = first.where(first != "", first.index.to_series())
        self.standings = statistics.standings(self.table, self.tissues)
        self.wins = statistics.wins(self.table)
        self.tests = statistics.paired_tests(scores)


@dataclass
class Written:
    """What was written; `missing` is the line that installs what figures and page need."""

    groups: list[Group]
    sweeps: pd.DataFrame | None = None  # of a synthetic experiment
    page: Path | None = None
    missing: str | None = None


def missing_extra() -> str | None:
    """The line that installs what figures and pages need, or None if it is there."""
    there = find_spec("matplotlib") and find_spec("jinja2")
    return None if there else "pip install 'optirank[report]'"


def write(
    results: Results, folder: str | Path, settings: Settings | None = None
) -> Written:
    """Write ``report.html``, ``tables/`` (CSV, Markdown, LaTeX) and ``figures/`` (PNG, SVG).

    Files of the same names are replaced, others stay. ``settings`` are those of a synthetic
    experiment: the default point is compared, all points are shown along the sweeps.

    Without matplotlib or jinja2 only CSV and Markdown tables are written.
    """
    folder, missing = Path(folder), missing_extra()
    scores = results.scores
    compared = (
        scores if settings is None else scores[scores["kind"] == settings.base.key]
    )
    groups = [
        Group(str(name), rows) for name, rows in compared.groupby("group", sort=False)
    ]
    sweeps = None if settings is None else sweep_table(scores, settings)
    written = Written(groups, sweeps, missing=missing)
    _write_tables(results, groups, sweeps, folder, latex=missing is None)
    if missing is None:
        written.page = folder / "report.html"
        default = settings is not None and settings.base == Point()
        write_text(written.page, _page(results, groups, sweeps, default, folder))
    return written


def _write_tables(
    results: Results,
    groups: list[Group],
    sweeps: pd.DataFrame | None,
    folder: Path,
    *,
    latex: bool,
) -> None:
    tables = {
        "scores": results.scores,
        "gaps": results.gaps,
        "tasks": results.tasks,
        **{
            name: pd.concat(
                [getattr(one, name).assign(group=one.name) for one in groups]
            )
            for name in ("standings", "wins", "tests")
            if groups
        },
    }
    if sweeps is not None and len(sweeps):
        tables["sweeps"] = sweeps
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for name, frame in tables.items():
        write_text(folder / "tables" / f"{name}.csv", frame.to_csv(index=False))
    shown = {"standings": standings_text, "wins": wins_text, "by_task": by_task_text}
    for name, make in shown.items():
        frames = {one.name: make(one) for one in groups}
        text = "\n".join(
            f"{title}\n\n{markdown(frame)}" for title, frame in frames.items()
        )
        write_text(folder / "tables" / f"{name}.md", text)
        if latex:
            text = "\n".join(
                frame.to_latex(index=False, escape=True, caption=title)
                for title, frame in frames.items()
            )
            write_text(folder / "tables" / f"{name}.tex", text)


def markdown(frame: pd.DataFrame) -> str:
    """A Markdown table; numbers are expected as text."""
    lines = [
        list(map(str, frame.columns)),
        ["---"] + ["---:"] * (frame.shape[1] - 1),
        *(
            [str(cell).replace("|", "\\|") for cell in row]
            for row in frame.itertuples(index=False)
        ),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def interval(low: float, high: float) -> str:
    """An interval of shares as text in percent."""
    return f"{in_percent(low)} to {in_percent(high)}" if np.isfinite(low) else NO_NUMBER


def standings_text(group: Group) -> pd.DataFrame:
    """The table of means as text."""
    found, genes = (
        group.standings,
        group.scores.groupby("classifier")["n_genes"].median(),
    )
    return pd.DataFrame(
        {
            "classifier": found["classifier"],
            "mean": found["mean"].map(in_percent),
            "95 % interval": [interval(*pair) for pair in zip(found["low"], found["high"],
                                                              strict=True)],
            **{name: found[name].map(_count) for name in ("won", "tied", "lost")},
            "genes": found["classifier"].map(genes).map("{:.0f}".format),
            "median": found["median"].map(in_percent),
            "worst": found["worst"].map(in_percent),
            "rank": found["rank"].map(lambda one: f"{one:.1f}" if np.isfinite(one) else NO_NUMBER),
            "tasks": found["tasks"].astype(str),
        }
    )  # fmt: skip


def _count(value: float) -> str:
    return f"{value:.0f}" if np.isfinite(value) else NO_NUMBER


def wins_text(group: Group) -> pd.DataFrame:
    """Tasks won, tied and lost, as text: the row against the column."""
    cells = group.wins.assign(
        text=[f"{one.won}/{one.tied}/{one.lost}" for one in group.wins.itertuples()]
    )
    names = list(group.standings["classifier"])
    wide = cells.pivot_table(
        index="row", columns="column", values="text", aggfunc="first"
    )
    wide = wide.reindex(index=names, columns=names).fillna("")
    return wide.rename_axis(columns=None).rename_axis("").reset_index()


def by_task_text(group: Group) -> pd.DataFrame:
    """Every task as text; a star marks what is not significantly worse than the best."""
    worse = group.tests[group.tests["sign"] < 0]
    losers = {*zip(worse["task"], worse["row"], worse["column"], strict=True)}
    rows = []
    for task, values in group.table.iterrows():
        best = values.idxmax()
        row = {"task": task, "tissue": group.tissues[task]}
        for name in group.standings["classifier"]:
            star = "*" if (task, name, best) not in losers else ""
            row[name] = in_percent(values[name]) + (
                star if np.isfinite(values[name]) else ""
            )
        rows.append(row)
    return pd.DataFrame(rows)


def costs_text(group: Group) -> pd.DataFrame:
    """Genes and times as text."""
    columns = [
        "n_genes",
        "n_features",
        "fit_seconds",
        "predict_seconds",
        "unit_seconds",
    ]
    found = group.scores.groupby("classifier")[columns].median()
    found = found.reindex(group.standings["classifier"])
    found.columns = ["genes", "of", "one fit (s)", "labelling (s)", "whole search (s)"]
    return found.map(
        lambda one: f"{one:.3g}" if np.isfinite(one) else NO_NUMBER
    ).reset_index()


def sweep_table(scores: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Mean score of each classifier at each point of each sweep."""
    means = scores.pivot_table(index="kind", columns="classifier", values="test")
    rows = [
        {
            "sweep": SWEEPS[name].label,
            "value": getattr(point, SWEEPS[name].field),
            **means.loc[point.key].to_dict(),
        }
        for name in settings.sweeps
        for point in settings.sweep_points(name)
        if point.key in means.index
    ]
    return pd.DataFrame(rows)


def sweeps_text(sweeps: pd.DataFrame) -> pd.DataFrame:
    """The sweeps as text, in percent."""
    points = sweeps[["sweep"]].assign(value=sweeps["value"].map("{:g}".format))
    return points.join(sweeps.drop(columns=["sweep", "value"]).map(in_percent))


def duration(seconds: float) -> str:
    """A time in the unit that suits it: seconds, minutes or hours."""
    if seconds < 60:
        return f"{seconds:.1f} seconds"
    if seconds < 3600:
        return f"{seconds / 60:.1f} minutes"
    return f"{seconds / 3600:.1f} hours"


def _page(
    results: Results,
    groups: list[Group],
    sweeps: pd.DataFrame | None,
    default: bool,
    folder: Path,
) -> str:
    run = results.run
    synthetic = sweeps is not None
    sweep_figures = []
    shown = None
    if sweeps is not None and len(sweeps):
        caption = "Mean balanced accuracy when one parameter of the data changes."
        sweep_figures = [_figure(folder, "sweeps", sweeps_figure(sweeps), caption)]
        shown = html(sweeps_text(sweeps))
    tasks = results.tasks.drop(columns=["shift", "kind"], errors="ignore")
    words = pd.DataFrame(
        run["classifiers"].items(), columns=["classifier", "what it is"]
    )
    template = page_template("report.html.jinja", "optirank_lab.benchmark")
    return template.render(
        version=run["version"],
        title="The synthetic experiment" if synthetic else "Classifiers compared",
        groups=[
            _group_on_page(one, k, folder, synthetic) for k, one in enumerate(groups)
        ],
        sweeps=shown,
        sweep_figures=sweep_figures,
        published=html(_published(groups[0])) if default and groups else None,
        gaps=html(_gaps(results.gaps)) if len(results.gaps) else None,
        tasks=html(tasks) if not synthetic else None,
        classifiers=html(words),
        run=run,
        cpu_time=duration(run["cpu_seconds"]),
        fewest_tissues=statistics.FEWEST_TISSUES,
        today=date.today().isoformat(),
    )


def _gaps(gaps: pd.DataFrame) -> pd.DataFrame:
    """One row per classifier and reason, with the tasks."""
    grouped = gaps.groupby(["classifier", "reason"], sort=False)["task"]
    found = grouped.agg(lambda tasks: some(tasks.unique(), 5)).reset_index()
    return found[["classifier", "reason", "task"]].rename(columns={"task": "tasks"})


def html(frame: pd.DataFrame):
    """A table for the page; all cells are escaped."""
    from markupsafe import Markup

    return Markup(frame.to_html(index=False, border=0, escape=True, na_rep=NO_NUMBER))


def _group_on_page(group: Group, number: int, folder: Path, synthetic: bool) -> dict:
    rows = group.standings.to_dict("records")
    told = {
        name for name, one in CLASSIFIERS.items() if one.needs == "truth"
    }  # no competitors
    first, *others = [one for one in rows if one["classifier"] not in told] or rows
    complete = [one for one in others if one["tasks"] == first["tasks"]]
    found = {
        "name": group.name,
        "best": first["classifier"],
        "mean": f"{in_percent(first['mean'])} %",
        "second": None,
        "n_tasks": len(group.table),
        "unit": "data sets" if synthetic else "tasks",
        "n_tissues": group.tissues.nunique(),
        "tissue_unit": "data sets" if synthetic else "tissues",
        "standings": html(standings_text(group)),
        "wins": html(wins_text(group)) if others else None,
        "tasks": html(by_task_text(group)),
        "costs": html(costs_text(group)),
    }
    if complete:
        best, second = first["classifier"], complete[0]["classifier"]
        difference = group.table[best] - group.table[second]
        against = group.wins.query("row == @best and column == @second").iloc[0]
        bounds = statistics.bootstrap_interval(
            difference, group.tissues.reindex(difference.index)
        )
        found |= {
            "second": second,
            "lead": in_percent(difference.mean()),
            "lead_interval": None if np.isnan(bounds[0]) else interval(*bounds),
            "record": f"{against.won} / {against.tied} / {against.lost}",
        }
    drawn = {
        "means": (means_figure(group.standings), "Mean over tasks with its 95 % interval."),
        "tasks": (tasks_figure(group.table, group.standings), "Every task: one mark per "
                  "classifier."),
        "genes": (genes_figure(group.scores, group.standings), "Mean balanced accuracy against "
                  "the median number of genes that a model needs."),
    }  # fmt: skip
    found["figures"] = [
        _figure(folder, f"{name}-{number + 1}", figure, caption)
        for name, (figure, caption) in drawn.items()
    ]
    return found


def _figure(folder: Path, name: str, figure, caption: str) -> dict[str, str]:
    """Write a figure, and return it as the page embeds it."""
    import matplotlib

    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for kind in ("png", "svg"):
        options = {"dpi": 160, "transparent": kind == "svg"}
        options["metadata"] = {"Date": None} if kind == "svg" else None
        with (
            replacing(folder / "figures" / f"{name}.{kind}") as temporary,
            matplotlib.rc_context(
                {"svg.hashsalt": "optirank"}
            ),  # the same file every time
        ):
            figure.savefig(temporary, format=kind, **options)
    svg = (folder / "figures" / f"{name}.svg").read_text("utf-8")
    return {"source": svg_address(svg), "caption": caption}


def _published(group: Group) -> pd.DataFrame:
    """Our figures at the paper's default point beside those of others."""
    means = group.standings.set_index("classifier")["mean"]
    optirank = group.scores[group.scores["classifier"] == "optirank"]
    cosine = optirank["cosine"].astype(float).mean()
    own = {name: in_percent(value) for name, value in means.items()} | {
        "cosine": f"{cosine:.2f}"
    }
    found = pd.DataFrame({"here": own, **PUBLISHED}).reindex([*means.index, "cosine"]).T
    return found.fillna(NO_NUMBER).rename_axis("accuracy (%)").reset_index()


# Figures, with matplotlib's defaults


def look(name: str) -> dict[str, str]:
    """Colour and marker of a classifier, by its place in the registry."""
    k = ordered({*CLASSIFIERS, name}).index(name)
    return {"color": f"C{k % 10}", "marker": _MARKERS[k % len(_MARKERS)]}


def _new(height: float, columns: int = 1, **options) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, height), layout="constrained")
    axes = figure.subplots(1, columns, **options)
    for ax in np.atleast_1d(axes):
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.3)
        ax.set_axisbelow(True)
    return figure, axes


def means_figure(standings: pd.DataFrame) -> Figure:
    """The mean of each classifier with its interval, best on top."""
    figure, ax = _new(0.9 + 0.28 * len(standings))
    for k, one in enumerate(standings.itertuples()):
        if np.isfinite(one.low):
            ax.plot(
                [100 * one.low, 100 * one.high],
                [k, k],
                color=look(one.classifier)["color"],
            )
        ax.plot(100 * one.mean, k, ms=7, linestyle="none", **look(one.classifier))
    ax.set_yticks(range(len(standings)), standings["classifier"])
    ax.invert_yaxis()
    ax.set_xlabel("balanced accuracy (%)")
    return figure


def tasks_figure(table: pd.DataFrame, standings: pd.DataFrame) -> Figure:
    """Every task in a row, with one mark per classifier."""
    figure, ax = _new(1.4 + 0.22 * len(table))
    for name in reversed(list(standings["classifier"])):
        ax.plot(100 * table[name], np.arange(len(table)), ls="none", alpha=0.8, label=name,
                **look(name))  # fmt: skip
    ax.set_yticks(range(len(table)), [str(name) for name in table.index], fontsize=8)
    ax.set_ylim(-0.7, len(table) - 0.3)
    ax.invert_yaxis()
    ax.set_xlabel("balanced accuracy (%)")
    figure.legend(
        loc="outside upper center", ncols=5, fontsize=8, frameon=False, reverse=True
    )
    return figure


def genes_figure(scores: pd.DataFrame, standings: pd.DataFrame) -> Figure:
    """Mean accuracy against the median number of genes, which is on a logarithmic axis."""
    figure, ax = _new(4.0)
    needed = scores.groupby("classifier")["n_genes"].median()
    for one in standings.itertuples():
        ax.plot(needed[one.classifier], 100 * one.mean, ls="none", ms=8, label=one.classifier,
                **look(one.classifier))  # fmt: skip
    ax.set(
        xscale="log",
        xlabel="genes that the model needs",
        ylabel="balanced accuracy (%)",
    )
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return figure


def sweeps_figure(table: pd.DataFrame) -> Figure:
    """Mean accuracy along each sweep of the synthetic experiment."""
    labels = list(dict.fromkeys(table["sweep"]))
    figure, axes = _new(3.2, len(labels), sharey=True)
    names = ordered(set(table.columns) - {"sweep", "value"})
    for ax, label in zip(np.atleast_1d(axes), labels, strict=True):
        rows = table[table["sweep"] == label]
        for name in names:
            ax.plot(rows["value"], 100 * rows[name], label=name, **look(name))
        ax.set_xlabel(label)
    np.atleast_1d(axes)[0].set_ylabel("balanced accuracy (%)")
    handles, names = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=5, frameon=False)
    return figure


def curve_figure(means: pd.DataFrame) -> Figure:
    """Accuracy against the number of genes, one line per method with its interval.

    ``means`` has the columns ``method``, ``n_genes``, ``mean``, ``low`` and ``high``.
    """
    figure, ax = _new(4.6)
    columns = ("n_genes", "mean", "low", "high")
    for k, (method, rows) in enumerate(means.groupby("method", sort=False)):
        rows = rows.sort_values("n_genes")
        genes, mean, low, high = (rows[name].to_numpy() for name in columns)
        ax.errorbar(
            genes * 1.02 ** (k - 3),  # side by side, so that the bars can be seen
            100 * mean,
            100 * np.array([mean - low, high - mean]),
            label=method,
            color=f"C{k}",
            marker=_MARKERS[k % len(_MARKERS)],
            linewidth=2.5 if method == "panel" else 1.2,
            elinewidth=0.6,
        )
    ax.set(xscale="log", xlabel="genes", ylabel="mean balanced accuracy (%)")
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return figure
