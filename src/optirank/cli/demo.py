"""`optirank demo`: from a generated reference to labels of another platform, in under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from optirank.cli.common import show_performance, tidy
from optirank.cli.options import OUTPUT, option
from optirank.cli.streams import echo


def demo(
    out: Annotated[
        Path, option("FOLDER", "Results; a rerun resumes there.", OUTPUT, "--out", "-o")
    ] = Path("optirank-demo"),
) -> None:
    """Train on generated cells, label cells of another platform, and repeat the paper's experiment.

    First a panel is trained on a generated reference and labels a generated query, whose platform
    changes the level of every gene; reports show how well. Then the synthetic experiment of the
    paper: 40 of 50 genes shift together by a random amount per sample, and labels are defined by
    ranks among the other 10. The size of the reference set is chosen by cross-validation.

    Examples:

      optirank demo
      optirank demo -o results
    """
    with tidy():
        from optirank import save
        from optirank._util.progress import progress_bar
        from optirank.benchmark.synthetic import Settings
        from optirank.cli.running import run_experiment
        from optirank.cli.train import show_sizes
        from optirank.datasets.example import make_example
        from optirank.workflow.evaluate import evaluate_profiles
        from optirank.workflow.report import write_report
        from optirank.workflow.train import TrainingOptions, train

        out.mkdir(parents=True, exist_ok=True)
        reference, query = make_example()
        echo("1. A panel for cells of another platform (generated data)")
        options = TrainingOptions(
            label="cell_type",
            available=[str(name) for name in query.gene_names],
            n_jobs=-1,
            name="cell types of the generated reference",
            description="a demonstration on generated cells",
        )
        with progress_bar("training", lines=True) as bar:
            result = train(
                reference,
                options,
                progress=lambda done, total, what: bar.update(done, total, text=what),
            )
        save(result.model, out / "model.optirank", overwrite=True)
        show_sizes(result.curve)
        done = evaluate_profiles(query, result.model, "cell_type")
        show_performance(done.performance, "The query, from another platform")
        echo(f"Held-out samples of the reference: {result.performance.headline()}")
        echo(f"The query, from another platform:  {done.performance.headline()}")
        for name, what in (("training", result), ("evaluation", done)):
            echo(f"Report: {write_report(what, out / f'{name}.html')}")
        echo("")
        echo("2. The paper's synthetic experiment")
        run_experiment(Settings(repeats=1, sweeps=(), seed=0), out / "synthetic", None)
