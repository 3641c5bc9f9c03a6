"""Everything that is written at the end: tables, figures and one page that needs nothing else."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pandas as pd

from optirank import __version__
from optirank._util.files import write_text
from optirank.benchmark.simulation import figures, table
from optirank.benchmark.simulation.settings import CLASSIFIERS, SWEEPS, Point, Settings, Unit
from optirank.benchmark.style import data_uri, missing_extra, save, template

_CAPTIONS = {
    "picture": (
        "What happened, in the first repeat. Top: one sample, before and after a group of genes "
        "shifts. The informative genes did not change, yet their ranks among all genes did; among "
        "the learned genes they are to stay put. Middle: the same genes in every test sample. "
        "Bottom: the scores of the two classifiers, whose sign is the predicted label."
    ),
    "default": "Test balanced accuracy at the default point.",
    "accuracy-d": "Accuracy against the number of genes; that of perturbed ones stays.",
    "accuracy-dp": "Accuracy against the number of perturbed genes.",
    "accuracy-tau": "Accuracy against the size of the shift.",
    "cosine-d": "Overlap of the learned with the true reference set, against the number of genes.",
    "cosine-dp": "The same overlap against the number of perturbed genes.",
}


@dataclass
class Written:
    """What was written where; `missing` is the line that installs what figures need."""

    header: list[str]
    rows: list[list[str]]
    tables: list[Path]
    figures: list[str] = field(default_factory=list)
    page: Path | None = None
    missing: str | None = None


def write(settings: Settings, results: dict[Unit, dict], folder: str | Path) -> Written:
    """Write the tables, the figures and the page of an experiment into its folder."""
    folder = Path(folder)
    fits, selected = table.fits_frame(results), table.selected_frame(results)
    summary = table.summary_frame(selected)
    header, rows = table.display_rows(summary, settings)
    written = Written(header, rows, tables=[], missing=missing_extra())
    for name, frame in (("fits", fits), ("selected", selected), ("summary", summary)):
        written.tables.append(folder / f"{name}.csv")
        write_text(written.tables[-1], frame.to_csv(index=False))
    default = table.at_point(summary, settings.base)
    for name, text in (
        ("table.csv", default.to_csv(index=False)),
        ("table.md", table.markdown(header, rows)),
    ):
        written.tables.append(folder / name)
        write_text(written.tables[-1], text)
    if written.missing is None:
        written.figures = _draw(settings, results, selected, summary, folder / "figures")
        written.page = folder / "report.html"
        write_text(written.page, _page(settings, fits, written, folder))
    return written


def _draw(
    settings: Settings,
    results: dict[Unit, dict],
    selected: pd.DataFrame,
    summary: pd.DataFrame,
    folder: Path,
) -> list[str]:
    from optirank.benchmark.simulation import picture

    unit = Unit(settings.base, 0)
    story = picture.tell(unit, settings, results[unit])
    save(picture.draw_picture(story), folder, "picture")
    return ["picture", *figures.draw_all(settings, selected, summary, folder)]


def _page(settings: Settings, fits: pd.DataFrame, written: Written, folder: Path) -> str:
    images = {
        name: {
            "source": data_uri(folder / "figures" / f"{name}.svg"),
            "caption": _CAPTIONS[name],
        }
        for name in written.figures
    }
    return template("optirank.benchmark.simulation", "report.html.jinja").render(
        settings=settings,
        base=settings.base,
        default_point=settings.base == Point(),
        header=written.header,
        rows=written.rows,
        images=images,
        panels=[name for name in images if name not in ("picture", "default")],
        sweeps=[SWEEPS[name] for name in settings.sweeps],
        fits=_fit_summary(fits),
        files=[path.name for path in written.tables],
        version=__version__,
        python=platform.python_version(),
        today=date.today().isoformat(),
    )


def _fit_summary(fits: pd.DataFrame) -> list[dict]:
    """Return how many fits each classifier took, how long, and how many did not converge."""
    groups = fits.groupby("classifier")
    return [
        {
            "classifier": name,
            "number": len(rows),
            "milliseconds": f"{1000 * rows['seconds'].mean():.1f}",
            "unconverged": int((~rows["converged"]).sum()),
        }
        for name, rows in ((name, groups.get_group(name)) for name in CLASSIFIERS)
    ]
