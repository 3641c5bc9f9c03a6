"""`optirank simulate` and `optirank demo`: the paper's synthetic experiment, and a
first look.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank.cli import options as opt
from optirank.cli.common import UNEXPECTED, echo, show_performance, tidy
from optirank_lab.cli.benchmark import compute, show_means

if TYPE_CHECKING:
    from optirank_lab.benchmark.report import Written
    from optirank_lab.benchmark.synthetic import Settings

if TYPE_CHECKING:
    _Grid = str
else:
    _Grid = opt.one_of("extended", "paper")


def simulate(
    repeats: Annotated[
        int, typer.Option(min=1, help="Number of data sets per point.")
    ] = 4,
    sweeps: Annotated[
        str, typer.Option(help="none, all, or some of d,dp,tau, comma-separated.")
    ] = "all",
    grid: Annotated[
        _Grid, typer.Option(help="The paper's penalties, or extended by 1e-6 and 1e-5.")
    ] = "extended",
    out: opt.ResultsFolder = Path("optirank-simulation"),
    jobs: opt.Processes = None,
    device: opt.Device = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the data.")] = 0,
) -> None:
    """Run the paper's synthetic experiment: lr, rank-lr, optirank and an oracle.

    Writes tables (CSV, Markdown, LaTeX), figures (PNG, SVG) and one page, report.html,
    into the folder given by --out. Finished fits are kept after Ctrl-C, and the same
    command resumes.

    Examples:

      optirank simulate                            4 repeats, all sweeps
      optirank simulate --sweeps none --repeats 10 only the paper's table
      optirank simulate --sweeps d,tau --jobs 8 --out results
    """
    with tidy():
        from optirank.solver.device.backend import check_device
        from optirank_lab.benchmark.synthetic import GRIDS, Settings, parse_sweeps

        settings = Settings(
            repeats=repeats,
            sweeps=parse_sweeps(sweeps),
            grid=GRIDS[str(grid)],
            seed=seed,
        )
        check_device(str(device))
        run_experiment(settings, out, jobs, str(device))


def demo(out: opt.ResultsFolder = Path("optirank-demo")) -> None:
    """Train on generated cells, label cells of another platform, and repeat the paper's
    experiment.

    First a panel is trained on a generated reference and labels a generated query,
    whose platform changes the level of every gene; reports show how well. Then the
    synthetic experiment of the paper: 40 of 50 genes shift together by a random amount
    per sample, and labels are defined by ranks among the other 10. The size of the
    reference set is chosen by cross-validation.

    Examples:

      optirank demo
      optirank demo -o results
    """
    with tidy():
        from optirank import save
        from optirank._util.progress import progress_bar
        from optirank.cli.train import show_sizes
        from optirank.datasets.example import make_example
        from optirank.report.pages import write_report
        from optirank.workflow.evaluate import evaluate_profiles
        from optirank.workflow.train import TrainingOptions, train
        from optirank_lab.benchmark.synthetic import Settings

        out.mkdir(parents=True, exist_ok=True)
        reference, query = make_example()
        echo("1. A panel for cells of another platform (generated data)")
        options = TrainingOptions(
            label="cell_type",
            query_genes=[str(name) for name in query.gene_names],
            n_jobs=-1,
            name="cell types of the generated reference",
            description="a demonstration on generated cells",
        )
        with progress_bar("training", lines=True) as bar:
            result = train(reference, options, progress=bar.update)
        save(result.model, out / "model.optirank", overwrite=True)
        show_sizes(result.curve, auto=True)
        done = evaluate_profiles(query, result.model, "cell_type")
        show_performance(done.performance, "The query, from another platform")
        echo(f"Held-out samples of the reference: {result.performance.headline()}")
        echo(f"The query, from another platform:  {done.performance.headline()}")
        for name, what in (("training", result), ("evaluation", done)):
            echo(f"Report: {write_report(what, out / f'{name}.html')}")
        echo("\n2. The paper's synthetic experiment")
        run_experiment(Settings(repeats=1, sweeps=(), seed=0), out / "synthetic", None)


def run_experiment(
    settings: Settings, out: Path, jobs: int | None, device: str = "cpu"
) -> Written:
    """Run a synthetic experiment, write its report and show the table."""
    from optirank_lab.benchmark import report
    from optirank_lab.benchmark.engine import Work
    from optirank_lab.benchmark.results import Storage, collect

    storage = Storage(out, "synthetic")
    storage.check(settings.grid, settings.seed)
    with storage.open(settings.grid, settings.seed):
        work = Work(settings, settings.grid, device)
        if compute(settings.plan(), work, storage, jobs):
            raise typer.Exit(UNEXPECTED)
        written = report.write(collect(storage), out, settings)
    show_means(written)
    return written
