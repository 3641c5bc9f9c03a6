"""`optirank models`, `inspect` and `export`: which models there are, what one is, its
genes, and its page for a browser. `example` and `demo`: cells to try the commands on.
"""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.files import replacing
from optirank._util.words import some
from optirank.cli import options as opt
from optirank.cli.command import echo, outputs, show_sizes, show_table

if TYPE_CHECKING:
    from optirank.model import Model

_SHOWN = 15  # genes on the terminal: they fit without scrolling


def models(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Show the card of this model."),
    ] = None,
) -> None:
    """List the models that come with optirank, or show the card of one.

    Wherever a command takes a model file it takes such a name. Accuracies are those of
    other data sets: each was labelled by a model that had not seen it. The variable
    OPTIRANK_MODELS names a folder of more models (*.optirank), which are listed too.
    Nothing is downloaded.

    Examples:

      optirank models
      optirank models pancreas-human
      optirank predict query.h5ad --model pancreas-human
    """
    from optirank.model import load
    from optirank.model.file import find_model, known_models
    from optirank.verbs.cards import judged_accuracy

    if name is not None:
        path = find_model(name)
        _show_card(load(path), path)
        return
    rows = []
    for known, path in known_models().items():
        try:
            model = load(path.absolute())
        except ValueError as error:  # one damaged file does not hide the others
            echo(f"note: {path} is left out: {error}", err=True)
            continue
        card = model.card
        mean, lowest, n_sets = judged_accuracy(card)
        row = (
            known,
            f"{card.species} {card.tissue}".strip(),
            some(model.classes, 20),
            model.n_genes,
            card.n_samples or "",
            f"{100 * mean:.0f} ({100 * lowest:.0f})" if n_sets else "",
        )
        rows.append(row)
    columns = ("name", "tissue", "labels", "genes", "samples", "accuracy")
    show_table("Models", columns, rows, whole=("name", "tissue"))
    echo(
        "samples: those it was trained on\n"
        "accuracy: balanced, in %, mean (lowest) over other data sets, or over "
        "sources\nleft out of training\n"
        "optirank models NAME shows a card; predict FILE --model NAME labels samples"
    )


def inspect(
    model: opt.ModelName,
    n_genes: Annotated[
        int | None, opt.option("N", "The smaller model of N genes in it.", None)
    ] = None,
    out: Annotated[
        Path | None,
        opt.option("MODEL", "Write it; - for stdout.", opt.OUTPUT, "--out", "-o"),
    ] = None,
    force: opt.Force = False,
) -> None:
    """Show what a model is, its genes, and the smaller models in it.

    No other gene has to be measured: a file with only these genes gets the same labels.

    Examples:

      optirank inspect model.optirank
      optirank inspect model.optirank --n-genes 30 -o small.optirank
    """
    from optirank.model import load, save
    from optirank.model.file import find_model

    path = find_model(model)
    fitted = load(path)
    if n_genes is not None:
        fitted = fitted.smaller(n_genes)
    with outputs({"the model": out}, [path], force=force, suffix=".optirank") as target:
        _show_card(fitted, path)
        if target is not None:
            save(fitted, target, overwrite=True)
            echo(f"{out}: a model of {fitted.n_genes} genes")


def _show_card(fitted: Model, path: Path) -> None:
    """Print what there is to know of a model, and its genes of largest weight with the
    class for which they count.
    """
    from optirank.verbs.cards import card_tables, model_card
    from optirank.verbs.performance import size_table

    show_table("Model card", ("", ""), model_card(fitted, path))
    for title, table in card_tables(fitted).items():
        show_table(title, list(table), zip(*table.values(), strict=True))
    panel = fitted.table()
    weights = panel.filter(regex="^weight_").head(_SHOWN)
    heaviest = weights.abs().idxmax(axis=1)
    rows = [
        (gene, f"{weights.loc[row, name]:+.3g}", name.removeprefix("weight_"))
        for (row, name), gene in zip(heaviest.items(), panel["gene"], strict=False)
    ]
    show_table("Genes of the largest weights", ("gene", "weight", "class"), rows)
    if len(panel) > _SHOWN:
        n_more = len(panel) - _SHOWN
        echo(f"and {n_more} more: optirank export MODEL -o genes.csv writes them")
    show_sizes(size_table(fitted))
    echo("Accuracies are balanced; shares are in %, with 95 % intervals.")


def export(
    model: opt.ModelName,
    out: Annotated[
        Path,
        opt.option(
            "FILE",
            "A page (.html), or genes and weights (.csv, -).",
            opt.OUTPUT,
            "--out",
            "-o",
        ),
    ] = Path("model.html"),
    h5ad: Annotated[
        bool,
        opt.option(
            None, "Let the page read .h5ad too: 1.4 MB more.", opt.OUTPUT, "--h5ad"
        ),
    ] = False,
    force: opt.Force = False,
) -> None:
    """Write a page that labels samples in a browser, or the genes with their weights.

    The page is one HTML file, to be mailed, put on a server or kept with a paper. It
    needs no network and no installation, and its data go nowhere: the browser lets it
    connect to nothing. The .csv has all that is needed to label samples in another
    program.

    Examples:

      optirank export blood-human -o blood.html
      optirank export model.optirank -o genes.csv
    """
    from optirank.model import load
    from optirank.web import write_page

    with outputs({"the export": out}, [model], force=force) as target:
        if target.suffix.lower() in (".html", ".htm"):
            write_page(model, target, h5ad=h5ad, overwrite=True)
            echo(f"{out}: a page of {target.stat().st_size // 1000} kB for a browser")
        elif target.suffix.lower() == ".csv":
            fitted = load(model)
            genes = fitted.export() if fitted.votes else fitted.table()
            with replacing(target) as temporary:
                genes.to_csv(temporary, index=False)
            echo(f"{out}: a table of {fitted.n_genes} genes")
        else:
            raise ValueError(
                f"{out}: a page is written as .html, genes and weights as .csv: use "
                "such a name"
            )


def example(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to write the pair.")
    ],
    force: opt.Force = False,
) -> None:
    """Write a small generated pair: a labelled reference, a query of another platform.

    Both contain counts of blood cells with known marker genes, as .h5ad and as .csv
    with genes in columns. The query also contains its true labels, for comparison.

    Examples:

      optirank example pair
    """
    from optirank.datasets.example import write_example

    for path in write_example(folder, force=force):
        echo(str(path))


def demo(
    context: typer.Context,
    out: Annotated[
        Path,
        opt.option("FOLDER", "Where to write the results.", opt.OUTPUT, "--out", "-o"),
    ] = Path("optirank-demo"),
) -> None:
    """Train on generated cells, label cells of another platform, and show how well.

    A reference and a query are generated; the platform of the query changes the level
    of every gene. A panel is trained on the reference and labels the query. Each
    command is printed as one would type it.

    Examples:

      optirank demo -o results
    """
    reference, query, model, labels = (
        str(out / name)
        for name in ("reference.h5ad", "query.h5ad", "model.optirank", "labels.csv")
    )
    commands = {
        "example": [str(out)],
        "train": [reference, "--label", "cell_type", "--query", query, "-o", model],
        "predict": [query, "--model", model, "-o", labels],
        "evaluate": [query, "--model", model, "--label", "cell_type"],
    }
    if find_spec("jinja2") and find_spec("matplotlib"):
        for name in ("train", "predict", "evaluate"):
            commands[name] += ["--report", str(out / f"{name}.html")]
    root: Any = context.find_root().command
    for name, words in commands.items():
        words.append("--force")
        echo(f"\n$ optirank {shlex.join([name, *words])}")
        code = root.commands[name].main(
            words, prog_name=name, standalone_mode=False, parent=context.parent
        )
        if code:
            raise typer.Exit(code)
