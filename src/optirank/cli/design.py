"""`optirank design`: a panel for an assay, its model, and how it will do there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.flags import among
from optirank._util.progress import progress_bar
from optirank.cli import options as opt
from optirank.cli.common import (
    check_page,
    claimed_outputs,
    echo,
    file_or_stdout,
    show_warnings,
    tell,
    this_command,
    tidy,
    workers,
    write_page,
)
from optirank.cli.options import OUTPUT, option
from optirank.io.options import ReadOptions
from optirank.workflow.options import DesignOptions

if TYPE_CHECKING:
    from anndata import AnnData

_JUDGE = "Options for another platform"


@opt.with_options(DesignOptions, ReadOptions)
def design(
    context: typer.Context,
    files: opt.Files,
    out: Annotated[
        Path,
        option("TABLE.csv", "The genes; - for stdout.", OUTPUT, "--out", "-o"),
    ],
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
    model: Annotated[
        Path | None,
        option("MODEL", "Write the model that labels the assay.", OUTPUT, "--model"),
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
      optirank design ref.h5ad --label type --list draft.txt -o scored.csv
      optirank design ref.h5ad --label type --list draft.txt --genes 300 -o more.csv
      optirank design ref.h5ad --label type --for probes.txt --genes 50 -o panel.csv
      optirank design ref.h5ad --label type --genes 50 --test spots.h5ad -o panel.csv
    """
    with tidy():
        from optirank import save
        from optirank._util.files import replacing
        from optirank.cli.design_words import summary
        from optirank.workflow.design import design as run
        from optirank.workflow.sources import open_sources

        if test_label is not None and test is None:
            raise ValueError("--test-label is about test data: name them (--test FILE)")
        given = context.params
        lists = [*(given["include"] or ()), *(given["exclude"] or ())]
        inputs = [*files, given["samples"], given["gene_list"], given["query_genes"]]
        inputs += [test, *(name for name in lists if name)]
        outputs = {"the panel": out, "the model": model, "the report": report}
        reading = opt.reading_options(context)
        label = given["label"]
        with ExitStack() as stack:
            stack.enter_context(claimed_outputs(outputs, inputs, force))
            check_page(report, dated)
            target = stack.enter_context(file_or_stdout(out, ".csv"))
            opened = open_sources(files, label, given["batch"], **reading)
            data, source_column = stack.enter_context(opened)
            judges = _open_test(stack, test, test_label or label, reading)
            asked = _design_options(given, source_column, reading["genes_in"])
            bar = stack.enter_context(progress_bar("designing", lines=True))
            result = run(
                data,
                asked,
                test=judges,
                test_label=test_label,
                command=this_command(context, recorded=True),
                source=", ".join(path.name for path in files),  # not where they lie
                say=tell,
                progress=bar.update,
            )
            if target is not None:
                with replacing(target) as temporary:
                    result.genes.to_csv(temporary, index=False, float_format="%.6g")
            if model is not None:
                save(result.model, model, overwrite=True)
            for line in summary(result):
                echo(line)
            show_warnings(result)
            echo(f"Panel:  {out}")
            if model is not None:
                echo(f"Model:  {model}")
            write_page(result, report, dated)


def _design_options(
    given: Mapping[str, Any], source_column: str | None, genes_in: str | None
) -> DesignOptions:
    """What is asked of the design, with the names of genes read from their files."""
    from optirank.workflow.sources import gene_names_in

    values = dict(given)
    values["batch"] = source_column
    values["n_jobs"] = workers(given["n_jobs"])
    values["include"] = gene_names_in(given["include"] or ())
    values["exclude"] = gene_names_in(given["exclude"] or ())
    if given["gene_list"] is not None:
        values["gene_list"] = gene_names_in([_existing(Path(given["gene_list"]))])
    if given["query_genes"] is not None:
        values["query_genes"] = _query_genes(Path(given["query_genes"]), genes_in)
    return among(DesignOptions, values)


def _existing(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: name a file of genes (--list)")
    return str(path)


def _query_genes(path: Path, genes_in: str | None) -> list[str]:
    """The genes of the data to be labelled later, from a list or from data."""
    from optirank.io.reading import check_path, is_table, read_gene_names
    from optirank.workflow.sources import gene_names_in

    check_path(path)
    if path.is_file() and is_table(path) and genes_in is None:
        return gene_names_in([str(path)])
    return read_gene_names(path, genes_in)


def _open_test(
    stack: ExitStack, test: Path | None, label: str, reading: dict[str, Any]
) -> AnnData | None:
    """The labelled samples of another platform, whose column is looked for at once."""
    if test is None:
        return None
    from optirank.io.data import annotations_of, check_column
    from optirank.io.reading import is_table, open_file

    options = {}
    if is_table(test):
        options = {"genes_in": reading["genes_in"], "annotations": [label]}
    opened = stack.enter_context(open_file(test, **options))
    check_column(annotations_of(opened), label, str(test))
    return opened
