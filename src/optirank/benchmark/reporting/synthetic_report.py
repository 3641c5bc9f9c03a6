"""Everything that is written at the end: tables, figures and one page that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pandas as pd

from optirank import __version__
from optirank.benchmark.classifiers import get
from optirank.benchmark.reporting import synthetic_figures, synthetic_picture, synthetic_table
from optirank.benchmark.reporting.output import Output
from optirank.benchmark.reporting.style import data_uri, missing_extra, template
from optirank.benchmark.synthetic import SWEEPS, Point, Settings

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
    tables: list[Path] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    page: Path | None = None
    missing: str | None = None


def write(
    settings: Settings,
    fits: pd.DataFrame,
    selected: pd.DataFrame,
    folder: str | Path,
    run: dict | None = None,
) -> Written:
    """Write the tables, the figures and the page of an experiment into its folder.

    ``fits`` and ``selected`` are as `synthetic_table.gather` returns them; ``run`` tells how it was
    run.
    """
    output = Output(folder)
    summary = synthetic_table.summary_frame(selected)
    header, rows = synthetic_table.display_rows(summary, settings)
    default = synthetic_table.at_point(summary, settings.base)
    frames = {"fits": fits, "selected": selected, "summary": summary, "table": default}
    texts = {f"{name}.csv": frame.to_csv(index=False) for name, frame in frames.items()}
    texts["table.md"] = synthetic_table.markdown(header, rows)
    written = Written(header, rows, missing=missing_extra())
    written.tables = [output.write(name, text) for name, text in texts.items()]
    if written.missing is None:
        story = synthetic_picture.tell(settings, selected)
        drawn = {"picture": synthetic_picture.draw_picture(story)}
        drawn |= synthetic_figures.draw_all(settings, selected, summary)
        for name, figure in drawn.items():
            output.draw(name, figure)
        written.figures = list(drawn)
        page = _page(settings, fits, written, output.folder, run or {})
        written.page = output.write("report.html", page)
    output.finish()
    return written


def _page(settings: Settings, fits: pd.DataFrame, written: Written, folder: Path, run: dict) -> str:
    images = {
        name: {
            "source": data_uri(folder / "figures" / f"{name}.svg"),
            "caption": _CAPTIONS[name],
        }
        for name in written.figures
    }
    return template("synthetic.html.jinja").render(
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
        classifiers=[get(name) for name in dict.fromkeys(fits["classifier"])],
        version=__version__,
        python=run.get("python"),
        today=date.today().isoformat(),
    )


def _fit_summary(fits: pd.DataFrame) -> list[dict]:
    """Return how many fits each classifier took, how long, and how many did not converge."""
    return [
        {
            "classifier": name,
            "number": len(rows),
            "milliseconds": f"{1000 * rows['seconds'].mean():.1f}",
            "unconverged": int((~rows["converged"]).sum()),
        }
        for name, rows in fits.groupby("classifier", sort=False)
    ]
