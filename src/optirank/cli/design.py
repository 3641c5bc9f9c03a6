"""`optirank design`: a panel for an assay, its model, and how it will do there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.flags import among
from optirank._util.names import counted, some
from optirank._util.progress import progress_bar
from optirank.cli import options as opt
from optirank.cli.common import (
    check_page,
    claimed_outputs,
    echo,
    file_or_stdout,
    listed,
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
    import pandas as pd
    from anndata import AnnData

    from optirank.workflow.design import DesignResult

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
      optirank design ref.h5ad --label lineage,type --per-class 3 -o panel.csv
      optirank design ref.h5ad --label type --list draft.txt -o scored.csv
      optirank design ref.h5ad --label type --list draft.txt --genes 300 -o more.csv
      optirank design ref.h5ad --label type --for probes.txt --genes 50 -o panel.csv
      optirank design ref.h5ad --label type --genes 50 --test spots.h5ad -o panel.csv
    """
    with tidy():
        from optirank import save
        from optirank._util.files import replacing
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
        columns = listed(given["label"])
        with ExitStack() as stack:
            stack.enter_context(claimed_outputs(outputs, inputs, force))
            check_page(report, dated)
            target = stack.enter_context(file_or_stdout(out, ".csv"))
            opened = open_sources(files, columns, given["batch"], **reading)
            data, source_column = stack.enter_context(opened)
            judges = _open_test(stack, test, test_label or columns[-1], reading)
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
    columns = listed(given["label"])
    values["label"] = columns[0] if len(columns) == 1 else columns
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


_WEAKEST = 4  # classes that are listed
_WIDE = 36  # columns of a title

Record = dict[Any, Any]


def summary(result: DesignResult) -> list[str]:
    """What there is to say of a design."""
    lines = [_first_line(result), "Balanced accuracy, % (95 % interval)"]
    conditions = result.conditions.to_dict("records")
    lines.append(_line("held-out samples", _with_interval(conditions[0])))
    path = [
        f"{point.n_genes}: {_share(point.balanced_accuracy)}"
        for point in result.model.card.curve
    ]
    if len(path) > 1:
        lines.append(_line("by number of genes", ", ".join(path)))
    lines += _under_conditions(conditions)
    lines += _weakest(result.classes)
    lines.append(_confused(result.confusions))
    own = sorted(zip(result.classes["n_genes"], result.classes.index, strict=True))
    (fewest, first), (most, last) = own[0], own[-1]
    lines.append(f"Genes per class: {fewest} ({first}) to {most} ({last})")
    if "below" in result.genes:
        numbers = result.genes["below"].value_counts().sort_index()
        places = [f"below {name}" if name else "at the top" for name in numbers.index]
        told = [f"{n} {place}" for n, place in zip(numbers, places, strict=True)]
        lines.append(f"Genes that tell labels apart: {', '.join(told)}")
    return lines + _about_list(result)


def _first_line(result: DesignResult) -> str:
    n_genes = len(result.genes)
    required = f", {result.n_required} of them required" if result.n_required else ""
    words = {
        "chosen": f"A panel of {n_genes} genes is chosen{required}",
        "extended": f"The list is extended to {n_genes} genes{required}",
        "scored": f"A list of {n_genes} genes is scored as it is",
    }
    return f"{words[result.kind]}, for {len(result.classes)} classes."


def _under_conditions(conditions: list[Record]) -> list[str]:
    """A line per kind of condition, and one for the test data."""
    from optirank.workflow.design_tables import PLATFORM_WORDS

    failing = _of_kind(conditions, "failing")
    lines = [_line("genes that fail", _joined(failing, "{:.0%}: {}"))]
    lowest = [
        f"{row['amount']:.0%}: {_share(row['lowest'])} ({row['lowest_class']})"
        for row in failing
    ]
    lines.append(_line("the same, lowest class of any draw", ", ".join(lowest)))
    needed = _of_kind(conditions, "needed")
    lines.append(_line("a class without its best genes", _joined(needed, "{:.0f}: {}")))
    platforms = [
        f"{PLATFORM_WORDS[row['amount']]}: {_share(row['balanced_accuracy'])}"
        for row in _of_kind(conditions, "platform")
    ]
    lines.append(_line("simulated platforms", ", ".join(platforms)))
    thinned = [
        f"to 1/{round(1 / row['amount'])}: {_share(row['balanced_accuracy'])}"
        for row in _of_kind(conditions, "thinned")
    ]
    if thinned:
        lines.append(_line("counts thinned", ", ".join(thinned)))
    return lines + [
        _line(row["condition"], _with_interval(row))
        for row in _of_kind(conditions, "test")
    ]


def _weakest(classes: pd.DataFrame) -> list[str]:
    """The classes of lowest sensitivity."""
    from optirank.workflow.design_tables import condition_words

    lines = ["Weakest classes, % (95 % interval; without the first gene it depends on)"]
    without = condition_words("needed", 1)
    weakest = classes.sort_values("sensitivity", kind="stable").head(_WEAKEST)
    for name, row in zip(weakest.index, weakest.to_dict("records"), strict=True):
        text = f"{_with_interval(row, 'sensitivity')}; {_share(row[without])}"
        depends_on = f", depends on {row['depends_on']}" if row["depends_on"] else ""
        lines.append(_line(str(name), text + depends_on))
    return lines


def _confused(confusions: pd.DataFrame) -> str:
    if confusions.empty:
        return "No two classes are confused."
    pairs = [
        f"{row['class']} as {row['labelled']} {_share(row['share'])} %"
        for row in confusions.head(3).to_dict("records")
    ]
    return f"Most confused: {'; '.join(pairs)}"


def _about_list(result: DesignResult) -> list[str]:
    """What a given list would gain, and which of its genes carry nothing."""
    from optirank._util.metrics import percent

    lines = []
    plain = float(result.conditions["balanced_accuracy"].iloc[0])
    if result.additions is not None and len(result.additions):
        accuracy = float(result.additions["balanced_accuracy"].iloc[0])
        lines.append(
            f"{len(result.additions)} genes more would give {percent(accuracy)} "
            f"({100 * (accuracy - plain):+.1f} points): "
            f"{some(result.additions['gene'], 10)}"
        )
    if result.idle is not None and len(result.idle):
        accuracy = float(result.idle["balanced_accuracy"].iloc[0])
        what = counted(len(result.idle), "gene carries", "genes carry")
        without = "it" if len(result.idle) == 1 else "them"
        lines.append(
            f"{what} nothing (without {without} {percent(accuracy)}): "
            f"{some(result.idle['gene'], 10)}"
        )
    return lines


def _of_kind(conditions: list[Record], kind: str) -> list[Record]:
    return [row for row in conditions if row["kind"] == kind]


def _joined(rows: list[Record], words: str) -> str:
    shown = [
        words.format(row["amount"], _share(row["balanced_accuracy"])) for row in rows
    ]
    return ", ".join(shown)


def _line(title: str, text: str) -> str:
    return f"  {title:<{_WIDE}}{text}" if len(title) < _WIDE else f"  {title}  {text}"


def _with_interval(row: Record, column: str = "balanced_accuracy") -> str:
    return f"{_share(row[column])} ({_share(row['low'])} to {_share(row['high'])})"


def _share(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f}"
