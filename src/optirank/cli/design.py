"""`optirank design`: a panel for an assay, its model, and how it will do there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.files import replacing
from optirank._util.names import in_percent, percent
from optirank._util.work import progress_bar
from optirank.cli import options as opt
from optirank.cli.common import echo
from optirank.cli.outputs import outputs, show_notes, write_page
from optirank.verbs.options import DesignOptions

if TYPE_CHECKING:
    import pandas as pd

    from optirank.verbs.design import DesignResult

_WEAKEST = 4  # classes that are listed
_WIDE = 36  # columns of a title
_KINDS = {
    "chosen": "A panel of {n} genes is chosen{required}",
    "extended": "The list is extended to {n} genes{required}",
    "scored": "A list of {n} genes is scored as it is",
}
Record = dict[Any, Any]
_JUDGE = "Options for another platform"


@opt.with_options(opt.reading)
def design(
    context: typer.Context,
    files: opt.Files,
    label: opt.Labels,
    out: Annotated[
        Path,
        opt.option("TABLE.csv", "The genes; - for stdout.", opt.OUTPUT, "--out", "-o"),
    ],
    batch: opt.Batch = None,
    n_jobs: opt.Threads = None,
    test: Annotated[
        Path | None,
        opt.option(
            "FILE",
            "Labelled samples of another platform: they judge the panel, and never "
            "choose it.",
            _JUDGE,
        ),
    ] = None,
    n_genes: Annotated[
        int | None,
        opt.option(
            "N",
            "Genes in the panel; default: 100, or those of the list.",
            opt.GENES,
            "--n-genes",
            min=2,
        ),
    ] = None,
    gene_list: Annotated[
        Path | None,
        opt.option(
            "FILE",
            "A list, one gene per line, to score as it is; with --genes, to extend.",
            opt.GENES,
        ),
    ] = None,
    query: opt.Query = None,
    include: opt.Include = None,
    exclude: Annotated[
        list[str] | None,
        opt.option(
            "GENES",
            "Genes that may not be: names, patterns such as 'MT-*', a file.",
            opt.GENES,
        ),
    ] = None,
    min_mean: Annotated[
        float | None,
        opt.option(
            "COUNTS",
            "Least mean, per 10,000, in the class where a gene is highest.",
            opt.GENES,
            min=0.0,
        ),
    ] = None,
    max_mean: Annotated[
        float | None, opt.option("COUNTS", "Largest such mean.", opt.GENES, min=0.0)
    ] = None,
    per_class: Annotated[
        int | None,
        opt.option(
            "N",
            "Genes of largest weight that each class, or label of a tree, keeps.",
            opt.GENES,
            min=0,
        ),
    ] = None,
    name: opt.Name = None,
    description: opt.Description = None,
    model_out: Annotated[
        Path | None,
        opt.option(
            "MODEL", "Write the model that labels the assay.", opt.OUTPUT, "--model"
        ),
    ] = None,
    report: opt.Report = None,
    force: opt.Force = False,
    **options: Any,
) -> None:
    """Design a panel of genes for an assay, or score a list that somebody else made.

    The genes are chosen by their ranks among each other. Held-out samples tell how each
    class will do, also when genes fail and on simulated platforms; test data tell it
    for another platform.

    Examples:

      optirank design ref.h5ad --label type --n-genes 100 -o panel.csv
      optirank design ref.h5ad --label type --n-genes 100 --exclude 'MT-*' -o p.csv
      optirank design ref.h5ad --label type -o p.csv --model p.optirank --report p.html
      optirank design ref.h5ad --label lineage,type --per-class 3 -o panel.csv
      optirank design ref.h5ad --label type --gene-list draft.txt -o scored.csv
      optirank design ref.h5ad --label type --gene-list a.txt --n-genes 300 -o b.csv
      optirank design ref.h5ad --label type --query probes.txt --n-genes 50 -o panel.csv
      optirank design ref.h5ad --label type --n-genes 50 --test spots.h5ad -o panel.csv
    """
    from optirank.io.reading import is_table, open_file
    from optirank.model import save
    from optirank.verbs.design import design as run
    from optirank.verbs.sources import open_sources

    if gene_list is not None and not gene_list.is_file():
        raise FileNotFoundError(
            f"{gene_list} does not exist: name a file of genes (gene_list)"
        )
    reading = opt.reading_options(context)
    asked = opt.among(DesignOptions, context, **opt.reference_options(context))
    judged_by = asked.label[-1]
    judging: Any = nullcontext()
    if test is not None:
        genes_in = reading.get("genes_in") if is_table(test) else None
        judging = open_file(test, label=judged_by, genes_in=genes_in)
    opened = open_sources(files, asked.label, batch, for_query=bool(query), **reading)
    with (
        outputs(context, {"the panel": out, "the model": model_out}) as target,
        opened as (data, source_column),
        judging as judges,
        progress_bar("designing", lines=True) as bar,
    ):
        result = run(
            data,
            replace(asked, batch=source_column),
            test=judges,
            command=opt.this_command(context, recorded=True),
            source=", ".join(path.name for path in files),  # not where they lie
            progress=bar.update,
        )
        with replacing(target) as temporary:
            result.genes.to_csv(temporary, index=False, float_format="%.6g")
        if model_out is not None:
            save(result.model, model_out, overwrite=True)
        for line in summary(result):
            echo(line)
        show_notes(result)
        echo(f"Panel:  {out}")
        if model_out is not None:
            echo(f"Model:  {model_out}")
        write_page(result, context)


def summary(result: DesignResult) -> list[str]:
    """What there is to say of a design, line by line."""
    required = f", {result.n_required} of them required" if result.n_required else ""
    kind = _KINDS[result.kind].format(n=len(result.genes), required=required)
    confused = [
        f"{row['class']} as {row['labelled']} {percent(row['share'])}"
        for row in result.confusions.head(3).to_dict("records")
    ]
    n_genes = result.classes.sort_values("n_genes", kind="stable")["n_genes"]
    lines = [
        f"{kind}, for {len(result.classes)} classes.",
        "Balanced accuracy, % (95 % interval)",
        *_under_conditions(result),
        "Weakest classes, % (95 % interval)",
        *_weakest(result.classes),
        f"Most confused: {'; '.join(confused)}"
        if confused
        else "No two classes are confused.",
        f"Genes per class: {n_genes.iloc[0]} ({n_genes.index[0]}) to "
        f"{n_genes.iloc[-1]} ({n_genes.index[-1]})",
    ]
    if "below" in result.genes:  # of a tree
        numbers = result.genes["below"].value_counts().sort_index()
        told = [
            f"{n} below {label}" if label else f"{n} at the top"
            for label, n in numbers.items()
        ]
        lines.append(f"Genes that tell labels apart: {', '.join(told)}")
    return lines


def _under_conditions(result: DesignResult) -> list[str]:
    """A line per kind of condition, and one for the test data."""
    from optirank.verbs.design_tables import PLATFORM_WORDS

    rows_of: dict[Any, list[Record]] = {
        kind: rows.to_dict("records")
        for kind, rows in result.conditions.groupby("kind", sort=False)
    }
    lowest = [
        f"{row['amount']:.0%}: {in_percent(row['lowest'])} ({row['lowest_class']})"
        for row in rows_of["failing"]
    ]
    curve = result.model.card.curve
    sizes = [
        f"{point.n_genes}: {in_percent(point.balanced_accuracy)}" for point in curve
    ]
    texts = {
        "held-out samples": _with_interval(rows_of["as it is"][0]),
        "by number of genes": ", ".join(sizes) if len(sizes) > 1 else "",
        "genes that fail": _each(rows_of["failing"], "{:.0%}".format),
        "the same, lowest class of any draw": ", ".join(lowest),
        "simulated platforms": _each(rows_of["platform"], PLATFORM_WORDS.get),
    }
    for row in rows_of.get("test", []):
        texts[row["condition"]] = _with_interval(row)
    return [_line(title, text) for title, text in texts.items() if text]


def _each(rows: list[Record], amount: Callable[[float], object]) -> str:
    """The accuracy under each condition of a kind, whose amounts a function spells."""
    texts = [
        f"{amount(row['amount'])}: {in_percent(row['balanced_accuracy'])}"
        for row in rows
    ]
    return ", ".join(texts)


def _weakest(classes: pd.DataFrame) -> list[str]:
    """The classes of lowest sensitivity."""
    lines = []
    weakest = classes.sort_values("sensitivity", kind="stable").head(_WEAKEST)
    for name, row in zip(weakest.index, weakest.to_dict("records"), strict=True):
        lines.append(_line(str(name), _with_interval(row, "sensitivity")))
    return lines


def _line(title: str, text: str) -> str:
    return f"  {title:<{_WIDE}}{text}" if len(title) < _WIDE else f"  {title}  {text}"


def _with_interval(row: Record, column: str = "balanced_accuracy") -> str:
    low, high = in_percent(row["low"]), in_percent(row["high"])
    return f"{in_percent(row[column])} ({low} to {high})"
