"""`optirank inspect`: what a model is, and why it gave a sample its label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank.cli.common import (
    add_row,
    check_outputs,
    listed,
    new_table,
    show,
    show_rules,
    tidy,
)
from optirank.cli.errors import DebugOption, QuietOption
from optirank.cli.options import (
    AnnotationsOption,
    DropClassesOption,
    ForceOption,
    FormatOption,
    GeneColumnOption,
    GenesInOption,
    LayerOption,
    MaxMissingOption,
    ModelArgument,
)
from optirank.cli.streams import echo, file_or_stdout

if TYPE_CHECKING:
    import pandas as pd

    from optirank.workflow.explain import Explanation


def inspect(
    model: ModelArgument,
    explain: Annotated[
        Path | None, typer.Option(help="A file of samples: explain the label of one.")
    ] = None,
    sample: Annotated[
        str | None, typer.Option(help="Name of the sample; default: the first.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--class", help="Class to explain; default: the label of the sample."),
    ] = None,
    genes: Annotated[int, typer.Option(min=1, help="Number of genes shown.")] = 15,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write all contributions (.csv); - for standard output."),
    ] = None,
    max_missing: MaxMissingOption = 0.5,
    drop_classes: DropClassesOption = False,
    layer: LayerOption = None,
    gene_column: GeneColumnOption = None,
    genes_in: GenesInOption = None,
    annotations: AnnotationsOption = None,
    file_format: FormatOption = None,
    force: ForceOption = False,
    debug: DebugOption = False,
    quiet: QuietOption = False,
) -> None:
    """Describe a model; with --explain, show why a sample got its label.

    A gene contributes its weight times its relative rank: the share of the reference genes below it
    in this sample. The contributions and the intercept sum to the score of the class. Of
    a k-TSP model, the votes of the pairs are shown.

    Examples:

      optirank inspect model.optirank

      optirank inspect model.optirank --explain query.h5ad --sample cell_17

      optirank inspect model.optirank --explain query.h5ad --class "t cell" --out why.csv
    """
    with tidy():
        from optirank.model import load

        check_outputs({"the contributions": out}, [model, explain], force)
        fitted = load(model)
        if explain is None:
            for option, value in (("--sample", sample), ("--class", label), ("--out", out)):
                if value is not None:
                    raise ValueError(f"{option} is for --explain FILE")
            _describe(fitted, model)
            return
        from optirank._util.files import replacing
        from optirank.workflow.explain import explain_sample

        found = explain_sample(
            explain,
            fitted,
            sample,
            max_missing=max_missing,
            drop_classes=drop_classes,
            layer=layer,
            gene_column=gene_column,
            genes_in=genes_in.value if genes_in else None,
            annotations=listed(annotations),
            format=file_format.value if file_format else None,
        )
        with file_or_stdout(out, ".csv") as target:
            _show_explanation(found, label, genes)
            if target is not None:
                with replacing(target) as temporary:
                    found.table.to_csv(temporary, index=False)
                typer.echo(f"{out}: {len(found.table)} contributions")


def _describe(fitted: Any, path: Path) -> None:
    from optirank.workflow.explain import describe_model

    about = describe_model(fitted, path)
    for key, text in about.lines:
        echo(f"{key + ':':<14}{text}")
    table = new_table("Classes", *about.classes.columns)
    for row in about.classes.itertuples(index=False):
        add_row(table, *row)
    show(table)
    if about.pairs is not None:
        show_rules(about.pairs)


def _show_explanation(found: Explanation, label: str | None, n_genes: int) -> None:
    for note in found.notes:
        echo(f"note: {note}", err=True)
    echo(f"{found.sample}: {found.label}, confidence {found.confidence:.3f}")
    table = new_table("Scores", "class", "score", "probability")
    for row in found.scores.itertuples(index=False):
        add_row(table, row[0], f"{row[1]:+.3f}", f"{row[2]:.3f}")
    show(table)
    about, lines, rest = found.of_class(label, n_genes)
    if "vote" in lines:
        _show_votes(about, lines, rest)
        return
    side = ["side"] if "side" in lines else []
    columns = ("value", "relative rank", "weight", "contribution")
    table = new_table(f"For {about}", "gene", "role", *side, *columns)
    for row in lines.itertuples():
        value = "missing" if row.missing else "" if row.value != row.value else f"{row.value:g}"
        rank = "" if row.relative_rank != row.relative_rank else f"{row.relative_rank:.3f}"
        weight = "" if row.weight != row.weight else f"{row.weight:+.3g}"
        role = "" if row.role == "intercept" else row.role
        what = [row.gene, role, *(getattr(row, name) for name in side)]
        add_row(table, *what, value, rank, weight, f"{row.contribution:+.4f}")
    if rest is not None:
        empty = [""] * (4 + len(side))
        add_row(table, f"{rest[0]} more genes", *empty, f"{rest[1]:+.4f}")
    show(table)


def _show_votes(about: str, lines: pd.DataFrame, rest: tuple[int, float] | None) -> None:
    """How each pair votes, of a model that is a vote of pairs."""
    table = new_table(f"For {about}", "pair", "values", "vote", "contribution")
    for row in lines.itertuples():
        values = ["missing" if one != one else f"{one:g}" for one in (row.value, row.value_below)]
        vote = f"{row.vote:+g}" if row.vote else "0"
        add_row(table, row.gene, ", ".join(values), vote, f"{row.contribution:+.4f}")
    if rest is not None:
        add_row(table, f"{rest[0]} more pairs", "", "", f"{rest[1]:+.4f}")
    show(table)
