"""What is written from results: tables, figures and one page that needs nothing else."""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank._util.files import replacing, write_text
from optirank._util.names import some
from optirank.benchmark import figures, statistics
from optirank.benchmark.classifiers import CLASSIFIERS
from optirank.benchmark.synthetic import PUBLISHED, SWEEPS, Point

if TYPE_CHECKING:
    from optirank.benchmark.results import Results
    from optirank.benchmark.synthetic import Settings

_DASH = "–"


@dataclass
class Group:
    """One comparison: its scores, and the statistics of them."""

    name: str
    scores: pd.DataFrame
    table: pd.DataFrame = field(init=False)  # tasks x classifiers
    tissues: pd.Series = field(init=False)
    standings: pd.DataFrame = field(init=False)
    wins: pd.DataFrame = field(init=False)
    tests: pd.DataFrame = field(init=False)

    def __post_init__(self) -> None:
        self.table = statistics.task_means(self.scores)
        first = self.scores.drop_duplicates("task").set_index("task")["tissue"]
        self.tissues = first.where(first != "", first.index.to_series())
        self.standings = statistics.standings(self.table, self.tissues)
        self.wins = statistics.wins(self.table)
        self.tests = statistics.paired_tests(self.scores)


@dataclass
class Written:
    """What was written; `missing` is the line that installs what figures and page need."""

    groups: list[Group]
    page: Path | None = None
    missing: str | None = None


def missing_extra() -> str | None:
    """The line that installs what figures and pages need, or None if it is there."""
    from importlib.util import find_spec

    there = find_spec("matplotlib") and find_spec("jinja2")
    return None if there else "pip install 'optirank[report]'"


def write(results: Results, folder: str | Path, settings: Settings | None = None) -> Written:
    """Write ``report.html``, ``tables/`` (CSV, Markdown, LaTeX) and ``figures/`` (PNG, SVG).

    Files of the same names are replaced, others stay. ``settings`` are those of a synthetic
    experiment: the default point is compared, all points are shown along the sweeps.

    Without matplotlib or jinja2 only CSV and Markdown tables are written.
    """
    folder, missing = Path(folder), missing_extra()
    scores = results.scores
    compared = scores if settings is None else scores[scores["kind"] == settings.base.key]
    groups = [Group(str(name), rows) for name, rows in compared.groupby("group", sort=False)]
    written = Written(groups, missing=missing)
    _write_tables(results, groups, settings, folder, latex=missing is None)
    if missing is None:
        written.page = folder / "report.html"
        write_text(written.page, _page(results, groups, settings, folder))
    return written


def _write_tables(
    results: Results,
    groups: list[Group],
    settings: Settings | None,
    folder: Path,
    *,
    latex: bool,
) -> None:
    tables = {
        "scores": results.scores,
        "gaps": results.gaps,
        "tasks": results.tasks,
        **{
            name: pd.concat([getattr(one, name).assign(group=one.name) for one in groups])
            for name in ("standings", "wins", "tests")
            if groups
        },
    }
    if settings is not None and settings.sweeps:
        tables["sweeps"] = sweep_table(results.scores, settings)
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for name, frame in tables.items():
        write_text(folder / "tables" / f"{name}.csv", frame.to_csv(index=False))
    shown = {"standings": standings_text, "wins": wins_text, "by_task": by_task_text}
    for name, make in shown.items():
        frames = {one.name: make(one) for one in groups}
        text = "\n".join(f"{title}\n\n{markdown(frame)}" for title, frame in frames.items())
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
        *([str(cell).replace("|", "\\|") for cell in row] for row in frame.itertuples(index=False)),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def percent(value: float, digits: int = 1) -> str:
    """A share as text in percent."""
    return f"{100 * value:.{digits}f}" if np.isfinite(value) else _DASH


def interval(low: float, high: float) -> str:
    """An interval of shares as text in percent."""
    return f"{percent(low)} to {percent(high)}" if np.isfinite(low) else _DASH


def standings_text(group: Group) -> pd.DataFrame:
    """The table of means as text."""
    found, genes = group.standings, group.scores.groupby("classifier")["n_genes"].median()
    return pd.DataFrame(
        {
            "classifier": found["classifier"],
            "mean": found["mean"].map(percent),
            "95 % interval": [interval(*pair) for pair in zip(found["low"], found["high"],
                                                              strict=True)],
            "won": found["won"].map(_count),
            "tied": found["tied"].map(_count),
            "lost": found["lost"].map(_count),
            "genes": found["classifier"].map(genes).map("{:.0f}".format),
            "median": found["median"].map(percent),
            "worst": found["worst"].map(percent),
            "rank": found["rank"].map(lambda one: f"{one:.1f}" if np.isfinite(one) else _DASH),
            "tasks": found["tasks"].astype(str),
        }
    )  # fmt: skip


def _count(value: float) -> str:
    return f"{value:.0f}" if np.isfinite(value) else _DASH


def wins_text(group: Group) -> pd.DataFrame:
    """Tasks won, tied and lost, as text: the row against the column."""
    cells = group.wins.assign(
        text=[f"{one.won}/{one.tied}/{one.lost}" for one in group.wins.itertuples()]
    )
    names = list(group.standings["classifier"])
    wide = cells.pivot_table(index="row", columns="column", values="text", aggfunc="first")
    wide = wide.reindex(index=names, columns=names).fillna("")
    return wide.rename_axis(columns=None).rename_axis("").reset_index()


def by_task_text(group: Group) -> pd.DataFrame:
    """Every task as text; a star marks what is not significantly worse than the best."""
    worse = group.tests[group.tests["sign"] < 0].groupby("task")
    losers = {
        task: {(row, column) for row, column in zip(rows["row"], rows["column"], strict=True)}
        for task, rows in worse
    }
    rows = []
    for task, values in group.table.iterrows():
        best = values.idxmax()
        row = {"task": task, "tissue": group.tissues[task]}
        for name in group.standings["classifier"]:
            star = "*" if (name, best) not in losers.get(task, ()) else ""
            row[name] = percent(values[name]) + (star if np.isfinite(values[name]) else "")
        rows.append(row)
    return pd.DataFrame(rows)


def costs_text(group: Group) -> pd.DataFrame:
    """Genes and times as text."""
    columns = ["n_genes", "n_features", "fit_seconds", "predict_seconds", "unit_seconds"]
    found = group.scores.groupby("classifier")[columns].median()
    found = found.reindex(group.standings["classifier"])
    names = ["genes", "of", "one fit (s)", "labelling (s)", "whole search (s)"]
    text = pd.DataFrame(
        {
            name: found[column].map(lambda one: f"{one:.3g}" if np.isfinite(one) else _DASH)
            for name, column in zip(names, columns, strict=True)
        }
    )
    return text.reset_index()


def sweep_table(scores: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Mean score of each classifier at each point of each sweep."""
    means = scores.pivot_table(index="kind", columns="classifier", values="test")
    rows = [
        {
            "sweep": SWEEPS[name].label,
            "value": asdict(point)[SWEEPS[name].field],
            **means.loc[point.key].to_dict(),
        }
        for name in settings.sweeps
        for point in settings.sweep_points(name)
        if point.key in means.index
    ]
    return pd.DataFrame(rows)


def _page(results: Results, groups: list[Group], settings: Settings | None, folder: Path) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("optirank.benchmark", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    run = results.run
    sweeps = published = None
    sweep_figures = []
    if settings is not None and settings.sweeps:
        table = sweep_table(results.scores, settings)
        sweep_figures = [_figure(folder, "sweeps", figures.sweeps(table), "Mean balanced accuracy "
                                 "when one parameter of the data changes.")]  # fmt: skip
        shown = table.apply(lambda one: one.map(percent) if one.name not in ("sweep", "value")
                            else one)  # fmt: skip
        sweeps = html(shown)
    if settings is not None and settings.base == Point() and groups:
        published = html(_published(groups[0]))
    tasks = results.tasks.drop(columns=["shift", "kind"], errors="ignore")
    words = pd.DataFrame(run["classifiers"].items(), columns=["classifier", "what it is"])
    synthetic = settings is not None
    return environment.get_template("report.html.jinja").render(
        title="The synthetic experiment" if synthetic else "Classifiers compared",
        groups=[_group_on_page(one, k, folder, synthetic) for k, one in enumerate(groups)],
        sweeps=sweeps,
        sweep_figures=sweep_figures,
        published=published,
        gaps=html(_gaps(results.gaps)) if len(results.gaps) else None,
        tasks=html(tasks) if not synthetic else None,
        classifiers=html(words),
        run=run,
        minutes=_duration(run["cpu_seconds"]),
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

    return Markup(frame.to_html(index=False, border=0, escape=True, na_rep=_DASH))


def _group_on_page(group: Group, number: int, folder: Path, synthetic: bool) -> dict:
    rows = group.standings.to_dict("records")
    told = [one for one in rows if one["classifier"] in names_of_truth()]  # no competitors
    first, *others = [one for one in rows if one not in told] or rows
    complete = [one for one in others if one["tasks"] == first["tasks"]]
    found = {
        "name": group.name,
        "best": first["classifier"],
        "mean": f"{percent(first['mean'])} %",
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
        bounds = statistics.bootstrap_interval(difference, group.tissues.reindex(difference.index))
        found |= {
            "second": second,
            "lead": percent(difference.mean()),
            "lead_interval": interval(*bounds),
            "record": f"{against.won} / {against.tied} / {against.lost}",
        }
    drawn = {
        "means": (figures.means(group.standings), "Mean over tasks with its 95 % interval."),
        "tasks": (figures.tasks(group.table, group.standings), "Every task: one mark per "
                  "classifier."),
        "genes": (figures.genes(group.scores, group.standings), "Mean balanced accuracy against "
                  "the median number of genes that a model needs."),
    }  # fmt: skip
    found["figures"] = [
        _figure(folder, f"{name}-{number + 1}", figure, caption)
        for name, (figure, caption) in drawn.items()
    ]
    return found


def names_of_truth() -> list[str]:
    """Classifiers that are told the true reference set."""
    return [name for name, one in CLASSIFIERS.items() if one.needs == "truth"]


def _figure(folder: Path, name: str, figure, caption: str) -> dict[str, str]:
    """Write a figure, and return it as the page embeds it."""
    import matplotlib

    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for kind in ("png", "svg"):
        options = {"dpi": 160, "transparent": kind == "svg"}
        options["metadata"] = {"Date": None} if kind == "svg" else None
        with (
            replacing(folder / "figures" / f"{name}.{kind}") as temporary,
            matplotlib.rc_context({"svg.hashsalt": "optirank"}),  # the same file every time
        ):
            figure.savefig(temporary, format=kind, **options)
    content = base64.b64encode((folder / "figures" / f"{name}.svg").read_bytes()).decode("ascii")
    return {"source": f"data:image/svg+xml;base64,{content}", "caption": caption}


def _published(group: Group) -> pd.DataFrame:
    """Our figures at the paper's default point beside those of others."""
    means = group.standings.set_index("classifier")["mean"]
    optirank = group.scores[group.scores["classifier"] == "optirank"]
    cosine = optirank["cosine"].astype(float).mean()
    own = {name: percent(value) for name, value in means.items()} | {"cosine": f"{cosine:.2f}"}
    rows = {"here": own, **PUBLISHED}
    names = [*means.index, "cosine"]
    return pd.DataFrame(
        [
            {"accuracy (%)": key, **{n: row.get(n, _DASH) for n in names}}
            for key, row in rows.items()
        ]
    )


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
