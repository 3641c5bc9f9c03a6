"""`optirank design`: a panel for an assay, its model, and how it will do there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.work import progress_bar
from optirank.cli import options as opt
from optirank.cli.common import echo, tell
from optirank.cli.options import option
from optirank.cli.outputs import outputs, show_warnings, write_page
from optirank.cli.remedies import this_command

if TYPE_CHECKING:
    from anndata import AnnData

    from optirank.workflow.options import DesignOptions

_JUDGE = "Options for another platform"


@opt.with_options(opt.reading)
def design(
    context: typer.Context,
    files: opt.Files,
    label: opt.Labels,
    out: Annotated[
        Path,
        option("TABLE.csv", "The genes; - for stdout.", opt.OUTPUT, "--out", "-o"),
    ],
    batch: opt.Batch = None,
    n_jobs: opt.Threads = None,
    test: Annotated[
        Path | None,
        option(
            "FILE",
            "Labelled samples of another platform: they judge the panel, and never "
            "choose it.",
            _JUDGE,
        ),
    ] = None,
    test_label: Annotated[
        str | None,
        option("COLUMN", "Their classes; default: as --label.", _JUDGE),
    ] = None,
    n_genes: Annotated[
        int | None,
        option(
            "N",
            "Genes in the panel; default: 100, or those of the list.",
            opt.GENES,
            "--genes",
            min=2,
        ),
    ] = None,
    gene_list: Annotated[
        Path | None,
        option(
            "FILE",
            "A list, one gene per line, to score as it is; with --genes, to extend.",
            opt.GENES,
            "--list",
        ),
    ] = None,
    skip_unknown: Annotated[
        bool,
        option(
            None,
            "Go on without genes of the list that the reference lacks.",
            opt.GENES,
            "--skip-unknown",
        ),
    ] = False,
    query: Annotated[
        Path | None,
        option(
            "QUERY",
            "To be labelled later: use only its genes; a list of genes will do.",
            opt.GENES,
            "--for",
        ),
    ] = None,
    include: opt.Include = None,
    exclude: Annotated[
        list[str] | None,
        option(
            "GENES",
            "Genes that may not be: names, patterns such as 'MT-*', a file, or the "
            "word housekeeping (ribosomal, mitochondrial, haemoglobin, cell cycle).",
            opt.GENES,
        ),
    ] = None,
    min_mean: Annotated[
        float | None,
        option(
            "COUNTS",
            "Least mean, per 10,000, in the class where a gene is highest.",
            opt.GENES,
            min=0.0,
        ),
    ] = None,
    max_mean: Annotated[
        float | None, option("COUNTS", "Largest such mean.", opt.GENES, min=0.0)
    ] = None,
    per_class: Annotated[
        int | None,
        option(
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
        option(
            "MODEL", "Write the model that labels the assay.", opt.OUTPUT, "--model"
        ),
    ] = None,
    report: opt.Report = None,
    dated: opt.Dated = False,
    force: opt.Force = False,
    **options: Any,
) -> None:
    """Design a panel of genes for an assay, or score a list that somebody else made.

    The genes are chosen by their ranks among each other. Held-out samples tell how each
    class will do, also when genes fail, on simulated platforms and with fewer counts;
    test data tell it for another platform.

    Examples:

      optirank design ref.h5ad --label type --genes 100 -o panel.csv
      optirank design ref.h5ad --label type --genes 100 --exclude housekeeping -o p.csv
      optirank design ref.h5ad --label type -o p.csv --model p.optirank --report p.html
      optirank design ref.h5ad --label lineage,type --per-class 3 -o panel.csv
      optirank design ref.h5ad --label type --list draft.txt -o scored.csv
      optirank design ref.h5ad --label type --list draft.txt --genes 300 -o more.csv
      optirank design ref.h5ad --label type --for probes.txt --genes 50 -o panel.csv
      optirank design ref.h5ad --label type --genes 50 --test spots.h5ad -o panel.csv
    """
    from optirank import save
    from optirank._util.files import replacing
    from optirank.cli.design_summary import summary
    from optirank.workflow.design import design as run
    from optirank.workflow.sources import open_sources

    if test_label is not None and test is None:
        raise ValueError("--test-label is about test data: name them (--test FILE)")
    given = opt.given_options(context)
    reading = opt.reading_options(given)
    asked = _design_options(given)
    judged_by = test_label or asked.columns[-1]
    with (
        outputs(context, {"the panel": out, "the model": model_out}) as target,
        open_sources(files, asked.columns, batch, **reading) as (data, source_column),
        _open_test(test, judged_by, given.get("genes_in")) as judges,
        progress_bar("designing", lines=True) as bar,
    ):
        result = run(
            data,
            replace(asked, batch=source_column),
            test=judges,
            test_label=judged_by,
            command=this_command(context, recorded=True),
            source=", ".join(path.name for path in files),  # not where they lie
            say=tell,
            progress=bar.update,
        )
        with replacing(target) as temporary:
            result.genes.to_csv(temporary, index=False, float_format="%.6g")
        if model_out is not None:
            save(result.model, model_out, overwrite=True)
        for line in summary(result):
            echo(line)
        show_warnings(result)
        echo(f"Panel:  {out}")
        if model_out is not None:
            echo(f"Model:  {model_out}")
        write_page(result, context)


def _design_options(given: Mapping[str, Any]) -> DesignOptions:
    """What is asked of the design, with the names of genes read from their files."""
    from optirank.workflow.options import DesignOptions

    gene_list = given.get("gene_list")
    if gene_list is not None and not Path(gene_list).is_file():
        raise FileNotFoundError(
            f"{gene_list} does not exist: name a file of genes (--list)"
        )
    values = opt.genes_asked(given)
    if "query" in given:
        values["query_genes"] = _query_genes(
            Path(given["query"]), given.get("genes_in")
        )
    return opt.among(DesignOptions, values)


def _query_genes(path: Path, genes_in: str | None) -> list[str]:
    """The genes of the data to be labelled later, from a list or from data."""
    from optirank.io.reading import check_path, is_table, read_gene_names
    from optirank.workflow.sources import gene_names_in

    check_path(path)
    if path.is_file() and is_table(path) and genes_in is None:
        return gene_names_in([str(path)])
    return read_gene_names(path, genes_in)


def _open_test(
    test: Path | None, label: str, genes_in: str | None
) -> AbstractContextManager[AnnData | None]:
    """The labelled samples of another platform, whose column is looked for at once."""
    from optirank.io.reading import is_table, open_file

    if test is None:
        return nullcontext()
    return open_file(test, label=label, genes_in=genes_in if is_table(test) else None)
