"""`optirank models`, `inspect`, `panel` and `export`: which models there are, what one
is and why it labels so, its genes, and its page for a browser.
"""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank._util.names import some
from optirank.cli import options as opt
from optirank.cli.common import echo
from optirank.cli.outputs import outputs, show_table

if TYPE_CHECKING:
    import pandas as pd


_SHOWN = 15  # genes on the terminal: they fit without scrolling
_PANEL_OUT = (
    "Write a model (.optirank), or the genes with their weights (.csv; - for stdout)."
)


def models(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Show the card of this model."),
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
      optirank predict query.h5ad --model pancreas-human --report labels.html
    """
    from optirank.model import load
    from optirank.model.file import find_model, known_models
    from optirank.verbs.cards import judged_accuracy

    if name is not None:
        show_card(find_model(name))
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
    context: typer.Context,
    model: opt.ModelFile,
    n_genes: Annotated[
        int | None, opt.option("N", "The model of its N best genes.", None, min=2)
    ] = None,
    out: Annotated[
        Path | None,
        opt.option("FILE", "Write this model (.optirank).", opt.OUTPUT, "--out", "-o"),
    ] = None,
    force: opt.Force = False,
) -> None:
    """Describe a model and its genes; with --n-genes, the smaller model in it.

    Examples:

      optirank inspect model.optirank
      optirank inspect model.optirank --n-genes 30 -o small.optirank
    """
    from optirank.model import load, save
    from optirank.model.file import find_model

    with outputs(context, {"the model": out}, ".optirank") as target:
        if n_genes is None:
            show_card(find_model(model))
        else:
            fitted = load(model).smaller(n_genes)
            _show_genes(fitted.table())
            if target is not None:
                save(fitted, target, overwrite=True)
                echo(f"{out}: a model of {fitted.n_genes} genes")


def show_card(path: Path) -> None:
    """Print what there is to know of a model."""
    from optirank.model import load
    from optirank.verbs.cards import card_tables, model_card

    fitted = load(path.absolute())  # not a name again
    width = max(60, shutil.get_terminal_size().columns)
    for name, text in model_card(fitted, path):
        lines = textwrap.fill(
            f"{name + ':':<18}{text}",
            width,
            subsequent_indent=" " * 18,
            break_long_words=False,
            break_on_hyphens=False,
        )
        echo(lines)
    for title, table in card_tables(fitted).items():
        show_table(title, list(table), zip(*table.values(), strict=True))
    echo("Accuracies are balanced; shares are in %, with 95 % intervals.")


def _show_genes(table: pd.DataFrame) -> None:
    """Print the genes of largest weight, and for which class they count."""
    weights = table.filter(regex="^weight_")
    names = [name.removeprefix("weight_") for name in weights.columns]
    shown = [name for name in ("gene", "role") if name in table]
    rows = []
    for (_, row), values in zip(
        table.head(_SHOWN).iterrows(), weights.to_numpy(), strict=False
    ):
        largest = int(abs(values).argmax())
        rows.append((*row[shown], f"{values[largest]:+.3g}", names[largest]))
    show_table(
        f"{len(table)} genes, the largest weights", (*shown, "weight", "class"), rows
    )
    if len(table) > _SHOWN:
        echo(f"and {len(table) - _SHOWN} more: -o genes.csv writes them all")


def export(
    context: typer.Context,
    model: opt.ModelFile,
    out: Annotated[
        Path, opt.option("PAGE.html", "The page to write.", opt.OUTPUT, "--out", "-o")
    ] = Path("model.html"),
    h5ad: Annotated[
        bool,
        opt.option(
            None,
            "Let the page read .h5ad and .h5 of 10x too: 1.4 MB more.",
            opt.OUTPUT,
            "--h5ad",
        ),
    ] = False,
    force: opt.Force = False,
) -> None:
    """Write a page that labels samples in a browser, by a panel model.

    The page is one HTML file, to be mailed, put on a server or kept with a paper. It
    needs no network and no installation, and its data go nowhere: the browser lets it
    connect to nothing. It reads tables (.csv, .tsv, .txt, also .gz) and pasted cells,
    and gives the labels, notes and warnings of optirank predict.

    Examples:

      optirank export blood-human -o blood.html
      optirank export model.optirank --h5ad -o model.html
    """
    from optirank.web import write_page

    with outputs(context, {"the page": out}):
        if out.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"{out}: a page is written as .html: use such a name")
        write_page(model, out, h5ad=h5ad, overwrite=True)
    echo(f"{out}: a page of {out.stat().st_size / 1e3:.0f} kB; open it in a browser")
