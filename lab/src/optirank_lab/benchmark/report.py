"""What is written from results: tables, figures and one page that needs
nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from optirank._util.files import write_text
from optirank._util.words import NO_NUMBER, counted, in_percent, some
from optirank.pl.axes import svg_address
from optirank.report import page_template
from optirank_lab.benchmark import figures, statistics, text
from optirank_lab.benchmark.classifiers import CLASSIFIERS
from optirank_lab.benchmark.results import Results
from optirank_lab.benchmark.synthetic import PUBLISHED, Point, Settings
from optirank_lab.benchmark.text import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class Written:
    """What was written."""

    comparisons: list[Comparison]
    sweeps: pd.DataFrame | None  # of a synthetic experiment
    page: Path


def write(
    results: Results, folder: str | Path, settings: Settings | None = None
) -> Written:
    """Write ``report.html``, ``tables/`` and ``figures/`` into a folder.

    Tables are CSV, Markdown and LaTeX, figures PNG and SVG. Files of the same names are
    replaced, others stay. ``settings`` are those of a synthetic experiment: the default
    point is compared, all points are shown along the sweeps.
    """
    folder = Path(folder)
    compared: Any = results.scores
    sweeps = None
    if settings is not None:
        compared = compared[compared["kind"] == settings.base.key]
        sweeps = text.sweep_table(results.scores, settings)
    comparisons = [
        Comparison(str(name), rows)
        for name, rows in compared.groupby("group", sort=False)
    ]
    written = Written(comparisons, sweeps, folder / "report.html")
    _write_tables(results, written, folder / "tables")
    is_default = settings is not None and settings.base == Point()
    write_text(written.page, _page(results, written, is_default, folder))
    return written


def _write_tables(results: Results, written: Written, folder: Path) -> None:
    """Write the tables: all values as CSV, those of the page as Markdown and LaTeX."""
    folder.mkdir(parents=True, exist_ok=True)
    comparisons = written.comparisons
    values = {"scores": results.scores, "gaps": results.gaps, "tasks": results.tasks}
    if comparisons:
        for name in ("standings", "wins", "tests"):
            parts = [
                getattr(comparison, name).assign(group=comparison.name)
                for comparison in comparisons
            ]
            values[name] = pd.concat(parts)
    if written.sweeps is not None and len(written.sweeps):
        values["sweeps"] = written.sweeps
    for name, frame in values.items():
        write_text(folder / f"{name}.csv", frame.to_csv(index=False))
    shown = {
        "standings": text.standings_text,
        "wins": text.wins_text,
        "by_task": text.by_task_text,
    }
    for name, as_text in shown.items():
        frames = {comparison.name: as_text(comparison) for comparison in comparisons}
        in_markdown = [
            f"{title}\n\n{text.markdown(frame)}" for title, frame in frames.items()
        ]
        write_text(folder / f"{name}.md", "\n".join(in_markdown))
        in_latex = [
            frame.to_latex(index=False, escape=True, caption=title)
            for title, frame in frames.items()
        ]
        write_text(folder / f"{name}.tex", "\n".join(in_latex))


def _page(results: Results, written: Written, is_default: bool, folder: Path) -> str:
    """The page as text; ``is_default`` means the default point of synthetic data."""
    synthetic = written.sweeps is not None
    sweeps = None
    sweep_figures = []
    if written.sweeps is not None and len(written.sweeps):
        caption = "Mean balanced accuracy when one parameter of the data changes."
        figure = figures.sweeps_figure(written.sweeps)
        sweep_figures = [_embedded(folder, "sweeps", figure, caption)]
        sweeps = html(text.sweeps_text(written.sweeps))
    published = None
    if is_default and written.comparisons:
        published = html(_published(written.comparisons[0]))
    tasks = results.tasks.drop(columns=["shift", "kind"], errors="ignore")
    classifiers = pd.DataFrame(
        {
            "classifier": list(results.run["classifiers"]),
            "what it is": list(results.run["classifiers"].values()),
        }
    )
    template = page_template("report.html.jinja", "optirank_lab.benchmark")
    return template.render(
        title="The synthetic experiment" if synthetic else "Classifiers compared",
        comparisons=[
            _comparison_on_page(comparison, number, folder, synthetic)
            for number, comparison in enumerate(written.comparisons, start=1)
        ],
        sweeps=sweeps,
        sweep_figures=sweep_figures,
        published=published,
        gaps=html(_gaps(results.gaps)) if len(results.gaps) else None,
        tasks=html(tasks) if not synthetic else None,
        classifiers=html(classifiers),
        run=results.run,
        settings=f"{results.run['profile']} {'grid' if synthetic else 'profile'}",
        version=results.run["version"],
        cpu_time=text.duration(results.run["cpu_seconds"]),
        fewest_tissues=statistics.FEWEST_TISSUES,
        today=date.today().isoformat(),
    )


def html(frame: pd.DataFrame) -> Markup:
    """A table for the page; all cells are escaped."""
    return Markup(frame.to_html(index=False, border=0, escape=True, na_rep=NO_NUMBER))


def _gaps(gaps: pd.DataFrame) -> pd.DataFrame:
    """One row per classifier and reason, with the tasks."""
    groups: Any = gaps.groupby(["classifier", "reason"], sort=False)
    return pd.DataFrame(
        [
            {
                "classifier": classifier,
                "reason": reason,
                "tasks": some(rows["task"].unique(), 5),
            }
            for (classifier, reason), rows in groups
        ]
    )


def _comparison_on_page(
    comparison: Comparison, number: int, folder: Path, synthetic: bool
) -> dict[str, Any]:
    """What the page shows of a comparison."""
    several = len(comparison.standings) > 1
    n_tasks = len(comparison.table)
    n_tissues = comparison.tissues.nunique()
    of_tissues = f"of {counted(n_tissues, 'tissue', 'tissues')}"
    size = (counted(n_tasks, "task", "tasks"), of_tissues)
    if synthetic:
        size = (counted(n_tasks, "data set", "data sets"), "drawn per point")
    return {
        "name": comparison.name,
        "size": size,
        "n_tissues": n_tissues,
        "tissue_unit": "data sets" if synthetic else "tissues",
        "standings": html(text.standings_text(comparison)),
        "wins": html(text.wins_text(comparison)) if several else None,
        "tasks": html(text.by_task_text(comparison)),
        "costs": html(text.costs_text(comparison)),
        "figures": _figures_of(comparison, number, folder),
        **_best_and_second(comparison),
    }


def _best_and_second(comparison: Comparison) -> dict[str, str | None]:
    """The best classifier, and its lead over the next that has all of its tasks.

    A classifier that is given the true reference set is no competitor.
    """
    rows = comparison.standings.to_dict("records")
    given_truth = {
        name for name, entry in CLASSIFIERS.items() if entry.needs == "truth"
    }
    competitors = [row for row in rows if row["classifier"] not in given_truth] or rows
    first = competitors[0]
    answer: dict[str, str | None] = {
        "best": first["classifier"],
        "mean": f"{in_percent(first['mean'])} %",
        "second": None,
    }
    complete = [row for row in competitors[1:] if row["tasks"] == first["tasks"]]
    if not complete:
        return answer
    best = first["classifier"]
    second = complete[0]["classifier"]
    difference = comparison.table[best] - comparison.table[second]
    tissues = comparison.tissues.reindex(difference.index)
    low, high = statistics.bootstrap_interval(difference, tissues)
    won, tied, lost = statistics.won_tied_lost(difference)
    return answer | {
        "second": second,
        "lead": in_percent(float(difference.mean())),
        "lead_interval": None if np.isnan(low) else text.interval(low, high),
        "record": f"{won} / {tied} / {lost}",
    }


def _figures_of(
    comparison: Comparison, number: int, folder: Path
) -> list[dict[str, str]]:
    """The figures of a comparison, written and as the page embeds them."""
    standings = comparison.standings
    means = figures.means_figure(standings)
    tasks = figures.tasks_figure(comparison.table, standings)
    genes = figures.genes_figure(comparison.scores, standings)
    has_interval = bool(np.any(standings["low"].notna()))
    of_means = f"Mean over tasks{' with its 95 % interval' if has_interval else ''}."
    of_genes = (
        "Mean balanced accuracy against the median number of genes that a model needs."
    )
    return [
        _embedded(folder, f"means-{number}", means, of_means),
        _embedded(
            folder, f"tasks-{number}", tasks, "Every task: one mark per classifier."
        ),
        _embedded(folder, f"genes-{number}", genes, of_genes),
    ]


def _embedded(folder: Path, name: str, figure: Figure, caption: str) -> dict[str, str]:
    """Write a figure, and return it as the page embeds it."""
    path = folder / "figures" / name
    figures.write_figure(figure, path)
    svg = path.with_name(f"{name}.svg").read_text("utf-8")
    return {"source": svg_address(svg), "caption": caption}


def _published(comparison: Comparison) -> pd.DataFrame:
    """Our figures at the paper's default point beside those of others."""
    means: Any = comparison.standings.set_index("classifier")["mean"]
    is_optirank = comparison.scores["classifier"] == "optirank"
    cosine = comparison.scores["cosine"][is_optirank].astype(float).mean()
    own = {str(name): in_percent(value) for name, value in means.items()}
    own["cosine"] = f"{cosine:.2f}"
    columns = [*means.index, "cosine"]
    frame = pd.DataFrame({"this run": own, **PUBLISHED}).reindex(columns).T
    return frame.fillna(NO_NUMBER).rename_axis("accuracy (%)").reset_index()
