"""What is written from a benchmark's results: tables, figures and one page that needs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from optirank import __version__
from optirank.benchmark.reporting import (
    figures,
    latex,
    markdown,
    ranking_tables,
    tables,
    whole_figures,
    whole_tables,
    whole_task_tables,
    words,
)
from optirank.benchmark.reporting.analysis import Analysis, analyse, place_title, training_sets
from optirank.benchmark.reporting.layout import Table
from optirank.benchmark.reporting.output import Output
from optirank.benchmark.reporting.rankings import Ranking
from optirank.benchmark.reporting.style import data_uri, missing_extra, template
from optirank.benchmark.reporting.whole_analysis import WholeAnalysis, analyse_whole
from optirank.benchmark.reporting.whole_words import summarise_whole

if TYPE_CHECKING:
    from optirank.benchmark.reporting.results import Results

SELECTIONS = {
    "one_se": "one-standard-error rule",
    "best": "best validation score",
    "transfer": "validation scores on simulated platforms too",
}
_CAPTIONS = {
    "scores": "Balanced accuracy of each classifier on each task, by kind of shift.",
    "wins": (
        "In how many tasks the row has a higher mean balanced accuracy than the column; ties count "
        "for neither."
    ),
    "genes": (
        "Balanced accuracy against the number of genes that a model needs (logarithmic). Small and "
        "light: one task; large: mean over the tasks of the panel."
    ),
    "sources": "Balanced accuracy with the first source alone and with both sources merged.",
    "times": "A dot is a task; the line is the median over tasks. Both axes are logarithmic.",
    **whole_figures.CAPTIONS,
}


@dataclass
class Written:
    """What was written where; `missing` is the line that installs what figures and page need."""

    tables: list[Path] = field(default_factory=list)
    summaries: list[Table] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    page: Path | None = None
    missing: str | None = None


def write(results: Results, folder: str | Path) -> Written:
    """Write the report into a folder, in place of an earlier one.

    Parameters
    ----------
    results : Results
        Scores, tasks and facts of a run; it need not be finished.
    folder : path
        Gets ``report.html``, ``tables/`` (CSV, Markdown, LaTeX), ``figures/`` (PNG, SVG) and a
        record of these files. Files of an earlier report that this one does not have are removed.

    Returns
    -------
    Written
        The files; without matplotlib or jinja2 only tables are written, and `missing` says what
        to install.
    """
    output = Output(folder)
    found = analyse(results)
    whole = analyse_whole(results.whole, found.tasks)
    built = [*tables.build(found), *whole_tables.build(whole)]
    written = Written(missing=missing_extra())
    shown = ("summary", whole_tables.OVERALL)
    written.summaries = [table for table in built if table.name.startswith(shown)]
    written.tables = _write_tables(found, whole, built, output)
    if written.missing is None:
        drawn = {**figures.draw_all(found), **whole_figures.draw_whole(whole)}
        for name, figure in drawn.items():
            output.draw(name, figure)
        written.figures = list(drawn)
        page = _page(results, found, whole, built, written.figures, output.folder / "figures")
        written.page = output.write("report.html", page)
    output.finish()
    return written


def _write_tables(
    found: Analysis, whole: WholeAnalysis, built: list[Table], output: Output
) -> list[Path]:
    texts = {
        name: frame.to_csv(index=False)
        for name, frame in (("scores.csv", found.scores), ("whole_splits.csv", whole.scores))
        if not frame.empty or frame is found.scores
    }
    for table in built:
        texts[f"{table.name}.csv"] = table.frame.to_csv(index=False)
        texts[f"{table.name}.md"] = markdown.render(table)
        texts[f"{table.name}.tex"] = latex.render(table)
    return [output.write(f"tables/{name}", text) for name, text in texts.items()]


def _page(
    results: Results,
    found: Analysis,
    whole: WholeAnalysis,
    built: list[Table],
    names: list[str],
    folder: Path,
) -> str:
    captions = {
        **_CAPTIONS,
        "ranks": _ranking_caption(found.ranking, found),
        "whole_ranks": _ranking_caption(whole.ranking, found),
    }
    images = {
        name: {"source": data_uri(folder / f"{name}.svg"), "caption": captions[name]}
        for name in names
    }
    by_name = {table.name: table for table in built}
    starting = {
        start: [table for name, table in by_name.items() if name.startswith(start)]
        for start in ("summary", "genes")
    }
    return template("benchmark.html.jinja").render(
        tables=by_name,
        summaries=starting["summary"],
        genes=starting["genes"],
        pairwise=[table for table in built if table.place is not None],
        place_title=place_title,
        images=images,
        sentences=[] if found.scores.empty and whole.tools() else words.summarise(found),
        whole_sentences=summarise_whole(whole) if whole.tools() else [],
        whole_costs=[table for table in built if table.name in whole_task_tables.BY_TASK],
        unfinished=_unfinished(found),
        problems=results.problems,
        missing=list(results.run.get("missing", ())),
        quick=results.run.get("profile") == "quick",
        selection=results.run.get("selection", ["one_se"]),
        facts=_facts(results, found),
        version=results.run.get("version", __version__),
        today=date.today().isoformat(),
    )


def _ranking_caption(ranking: Ranking | None, found: Analysis) -> str:
    if ranking is None:
        return ""
    return ranking_tables.caption(ranking, training_sets(found.tasks, ranking.tasks))


def _unfinished(found: Analysis) -> list[str]:
    """Return where a classifier has fewer pairs than the others of its task."""
    rows = found.summary[~found.summary["complete"].astype(bool)]
    return [f"{place_title(row.task, row.scenario)}: {row.classifier}" for row in rows.itertuples()]


def _facts(results: Results, found: Analysis) -> dict[str, str]:
    run = results.run
    facts = {
        "profile": run.get("profile"),
        "selection": ", ".join(SELECTIONS.get(rule, rule) for rule in run.get("selection", ())),
        "classifiers": ", ".join(run.get("classifiers", ())),
        "tools of whole tasks": ", ".join(run.get("tools", ())),
        **(_binary_facts(run, found) if len(found.scores) or not results.whole else {}),
        "elapsed": _duration(run.get("wall_seconds")),
        "processes": run.get("jobs"),
        "seed": run.get("seed"),
        "optirank": run.get("version"),
        "Python": run.get("python"),
        "platform": run.get("platform"),
    }
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}


def _binary_facts(run: dict, found: Analysis) -> dict[str, object]:
    return {
        "scores": f"{len(found.scores)} (class, fold and classifier)",
        "fits not converged": run.get("unconverged"),
        "CPU time": _duration(run.get("cpu_seconds")),
    }


def _duration(seconds: float | None) -> str | None:
    if seconds is None or seconds != seconds:
        return None
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
