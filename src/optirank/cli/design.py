"""`optirank design`: a panel for an assay, its model, and how it will do there."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.progress import progress_bar
from optirank.cli import options as opt
from optirank.cli.common import (
    check_outputs,
    echo,
    file_or_stdout,
    this_command,
    tidy,
    workers,
)
from optirank.cli.options import OUTPUT, option

if TYPE_CHECKING:
    from optirank.workflow.design import DesignResult

_GENES = "Options for the genes"
_JUDGE = "Options for another platform"


def design(
    context: typer.Context,
    files: opt.Files,
    label: Annotated[str, option("COLUMN", "Class labels.", None, "--label", "-l")],
    out: Annotated[
        Path,
        option("TABLE.csv", "The genes; - for stdout.", OUTPUT, "--out", "-o"),
    ],
    batch: Annotated[
        str | None,
        option("COLUMN", "Source (data set, donor); each is held out in turn.", None),
    ] = None,
    jobs: opt.Processes = None,
    n_genes: Annotated[
        int | None,
        option("N", "Genes in the panel; default: 100.", _GENES, "--genes", min=2),
    ] = None,
    gene_list: Annotated[
        Path | None,
        option(
            "FILE",
            "A list, one gene per line, to score as it is; with --genes, to extend.",
            _GENES,
            "--list",
        ),
    ] = None,
    skip_unknown: Annotated[
        bool,
        option(
            None, "Go on without genes of the list that the reference lacks.", _GENES
        ),
    ] = False,
    include: Annotated[
        list[str] | None,
        option(
            "GENES",
            "Genes that must be in the panel: names, patterns or a file.",
            _GENES,
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        option(
            "GENES",
            "Genes that may not be: names, patterns such as 'MT-*', a file, or the word "
            "housekeeping (ribosomal, mitochondrial, haemoglobin, cell cycle).",
            _GENES,
        ),
    ] = None,
    min_mean: Annotated[
        float | None,
        option(
            "COUNTS",
            "Least mean, per 10,000, in the class where a gene is highest.",
            _GENES,
            min=0.0,
        ),
    ] = None,
    max_mean: Annotated[
        float | None, option("COUNTS", "Largest such mean.", _GENES, min=0.0)
    ] = None,
    per_class: Annotated[
        int,
        option("N", "Genes of largest weight that each class keeps.", _GENES, min=0),
    ] = 0,
    assay: Annotated[
        Path | None,
        option(
            "FILE",
            "Genes that the assay can measure: a list, or data that have them.",
            _GENES,
            "--for",
        ),
    ] = None,
    query: Annotated[
        Path | None,
        option(
            "QUERY",
            "Labelled samples of another platform: they judge the panel, and never choose "
            "it.",
            _JUDGE,
        ),
    ] = None,
    query_label: Annotated[
        str | None,
        option("COLUMN", "Their classes; default: as --label.", _JUDGE),
    ] = None,
    model: Annotated[
        Path | None,
        option("MODEL", "Write the model that labels the assay.", OUTPUT, "--model"),
    ] = None,
    report: opt.Report = None,
    name: Annotated[str, option("TEXT", "Name of the model.", OUTPUT)] = "",
    description: Annotated[
        str,
        option("TEXT", "Its intended use, kept in the model.", OUTPUT, "--describe"),
    ] = "",
    force: opt.Force = False,
    layer: opt.Layer = None,
    gene_column: opt.GeneColumn = None,
    genes_in: opt.GenesIn = None,
    annotations: opt.Annotations = None,
    samples: opt.Samples = None,
    drop_missing: opt.DropMissing = False,
) -> None:
    """Design a panel of genes for an assay, or score a list that somebody else made.

    The genes are chosen by their ranks among each other. Held-out samples tell how each class
    will do, also when genes fail, on simulated platforms and with fewer counts; a query tells
    it for another platform.

    Examples:

      optirank design reference.h5ad --label cell_type --genes 100 -o panel.csv
      optirank design reference.h5ad --label cell_type --genes 100 --exclude housekeeping \\
          -o panel.csv --model panel.optirank --report panel.html
      optirank design reference.h5ad --label cell_type --list draft.txt -o scored.csv
      optirank design reference.h5ad --label cell_type --list draft.txt --genes 300 -o more.csv
      optirank design reference.h5ad --label cell_type --for probes.txt --genes 50 -o panel.csv
      optirank design reference.h5ad --label cell_type --query spots.h5ad -o panel.csv
    """
    with tidy():
        from optirank import save
        from optirank._util.files import replacing
        from optirank.workflow.design import DesignOptions
        from optirank.workflow.design import design as run
        from optirank.workflow.design_words import summary
        from optirank.workflow.preparation import gene_names_in, open_sources

        if query_label is not None and query is None:
            raise ValueError(
                "--query-label is about the query: name it (--query QUERY)"
            )
        outputs = {"the panel": out, "the model": model, "the report": report}
        lists = [name for name in (*(include or ()), *(exclude or ())) if name]
        check_outputs(
            outputs, [*files, samples, gene_list, assay, query, *lists], force
        )
        if report is not None:
            from optirank.report.pages import check_report

            check_report()
        reading = opt.reading_options(context)
        given = dict(context.params)
        given["include"] = gene_names_in(include or [])
        given["exclude"] = gene_names_in(exclude or [])
        given["n_jobs"] = workers(jobs)
        if gene_list is not None:
            given["gene_list"] = gene_names_in([_existing(gene_list)])
        if assay is not None:
            given["assay_genes"] = _assay_genes(assay, reading["genes_in"])
        with ExitStack() as stack:
            target = stack.enter_context(file_or_stdout(out, ".csv"))
            opened = open_sources(files, label, batch, **reading)
            data, given["batch"] = stack.enter_context(opened)
            judge = _open_query(stack, query, query_label or label, reading)
            bar = stack.enter_context(progress_bar("designing", lines=True))
            result = run(
                data,
                DesignOptions.among(given),
                query=judge,
                query_label=query_label,
                command=this_command(context, names=True),
                source=", ".join(path.name for path in files),  # not where they lie
                say=echo,
                progress=bar.update,
            )
            if target is not None:
                with replacing(target) as temporary:
                    result.genes.to_csv(temporary, index=False, float_format="%.6g")
            if model is not None:
                save(result.model, model, overwrite=True)
            if report is not None:
                from optirank.report.design import write_design_report

                write_design_report(result, report)
            for line in summary(result):
                echo(line)
            _show_outputs(result, outputs)


def _existing(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: name a file of genes (--list)")
    return str(path)


def _assay_genes(path: Path, genes_in: str | None) -> list[str]:
    """Genes that an assay can measure, from a list or from data."""
    from optirank.io.reading import check_path, is_table, read_gene_names
    from optirank.workflow.preparation import gene_names_in

    check_path(path)
    if path.is_file() and is_table(path) and genes_in is None:
        return gene_names_in([str(path)])
    return read_gene_names(path, genes_in)


def _open_query(
    stack: ExitStack, query: Path | None, label: str, reading: dict[str, Any]
) -> Any:
    """The labelled samples of another platform, whose column is looked for at once."""
    if query is None:
        return None
    from optirank.io.data import check_column
    from optirank.io.reading import is_table, open_expression

    options = {}
    if is_table(query):
        options = {"genes_in": reading["genes_in"], "annotations": [label]}
    opened = stack.enter_context(open_expression(query, **options))
    check_column(opened.obs, label, str(query))
    return opened


def _show_outputs(result: DesignResult, outputs: dict[str, Path | None]) -> None:
    for warning in result.warnings:
        echo(f"Warning: {warning}", err=True)
    for what, path in outputs.items():
        if path is not None:
            title = what.removeprefix("the ").capitalize()
            echo(f"{title + ':':<8}{path}")
