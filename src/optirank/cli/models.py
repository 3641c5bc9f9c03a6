"""`optirank models`, `inspect`, `panel` and `export`: which models there are, what one
is and why it labels so, its genes, and its page for a browser.
"""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.files import replacing
from optirank._util.names import some
from optirank.cli import options as opt
from optirank.cli.common import echo
from optirank.cli.outputs import STDOUT, outputs, show_notes, show_sizes, show_table
from optirank.verbs.options import PredictOptions

if TYPE_CHECKING:
    import pandas as pd

    from optirank.verbs.predict import Explanation

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


@opt.with_options(opt.labelling, opt.reading, without=["clusters"])
def inspect(
    context: typer.Context,
    model: opt.ModelFile,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Samples, for --explain.")
    ] = None,
    explain: Annotated[
        str | None,
        opt.option("SAMPLE", "Show why this sample of FILE gets its label.", None),
    ] = None,
    label: Annotated[
        str | None,
        opt.option("CLASS", "Class to explain; default: the label.", None, "--class"),
    ] = None,
    **options: Any,
) -> None:
    """Describe a model; with --explain, show why a sample gets its label.

    The genes of a panel vote in pairs. A gene contributes its weight times its rank
    among the panel, from -1/2 to 1/2; the contributions sum to the score of the class.
    The pairs of genes whose votes count most are listed below.

    Examples:

      optirank inspect model.optirank
      optirank inspect model.optirank query.h5ad --explain cell_17
      optirank inspect model.optirank query.h5ad --explain cell_17 --class "t cell"
    """
    from optirank.model import load
    from optirank.model.file import find_model

    if (file is None) != (explain is None):
        raise ValueError(
            "name the file and the sample: inspect MODEL FILE --explain SAMPLE"
        )
    if file is None:
        show_card(find_model(model))
        return
    from optirank.verbs.label_files import explain_sample

    labels = explain_sample(
        file,
        load(model),
        str(explain),
        opt.among(PredictOptions, context),
        **opt.reading_options(context),
    )
    show_notes(labels)
    assert labels.explanation is not None
    _show_explanation(labels.explanation, label)


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


def _show_explanation(explanation: Explanation, label: str | None) -> None:
    """Print the scores, what each gene contributes, and the votes that count most."""
    withheld = explanation.withheld_because
    echo(
        f"{explanation.sample}: {explanation.label}, confidence "
        f"{explanation.confidence:.3f}{f'; withheld: {withheld}' if withheld else ''}"
    )
    scores = explanation.scores.itertuples(index=False)
    rows = [(name, f"{score:+.3f}", f"{share:.3f}") for name, score, share in scores]
    show_table("Scores", ("class", "score", "probability"), rows)
    name, contributions = explanation.of_class(label)
    columns = ("gene", "value", "rank", "weight", "contribution", "speaks")
    show_table(f"The score of {name}", columns, _contribution_rows(contributions))
    pairs = explanation.pairs.get(name)
    if pairs is not None and len(pairs):
        rows = [
            (
                f"{row['higher']} > {row['lower']}",
                f"{row['vote']:+.4f}",
                row["speaks_for"],
            )
            for row in pairs.to_dict("records")
        ]
        title = f"The pairs of genes that count most for {name}"
        show_table(title, ("gene", "vote", "speaks"), rows)


def _contribution_rows(contributions: pd.DataFrame) -> list[tuple[str, ...]]:
    """What the genes contribute that count most, and all others together."""
    rows = []
    for row in contributions.head(_SHOWN).to_dict("records"):
        value = rank = weight = ""
        if row["weight"] == row["weight"]:  # the intercept has none
            weight = f"{row['weight']:+.3g}"
            value = "missing" if row["missing"] else f"{row['value']:g}"
            rank = "" if row["missing"] else f"{row['rank']:+.3f}"
        amount = f"{row['contribution']:+.4f}"
        rows.append((row["gene"], value, rank, weight, amount, row["speaks_for"]))
    rest = contributions.iloc[_SHOWN:]
    if len(rest):
        total = f"{rest['contribution'].sum():+.4f}"
        rows.append((f"{len(rest)} more", "", "", "", total, ""))
    return rows


def panel(
    context: typer.Context,
    model: opt.ModelFile,
    genes: Annotated[
        int | None, opt.option("N", "Take the panel of N genes.", None, min=2)
    ] = None,
    out: Annotated[
        Path | None, opt.option("FILE", _PANEL_OUT, opt.OUTPUT, "--out", "-o")
    ] = None,
    force: opt.Force = False,
) -> None:
    """List the genes that a model needs, and the smaller panels in it with their
    accuracy.

    No other gene has to be measured: a file with only these genes gets the same labels.
    The genes of a panel are ranked among themselves. The .csv has all that is needed to
    label samples in another program: genes and weights.

    Examples:

      optirank panel model.optirank
      optirank panel model.optirank --genes 30 -o small.optirank
      optirank panel model.optirank -o genes.csv
    """
    from optirank.model import load, save
    from optirank.verbs.cards import size_table

    with outputs(context, {"the panel": out}) as target:
        if out not in (None, STDOUT) and out.suffix.lower() not in (
            ".csv",
            ".optirank",
        ):
            raise ValueError(
                f"{out}: a panel is written as .csv (genes and weights) or .optirank "
                "(a model): use such a name"
            )
        fitted = load(model)
        if genes is not None:
            fitted = fitted.smaller(genes)
        _show_genes(fitted.table())
        show_sizes(size_table(fitted))
        if target is None:
            return
        if target.suffix.lower() == ".optirank":
            save(fitted, target, overwrite=True)
            kind = "a model of"
        else:
            table = fitted.export() if fitted.votes else fitted.table()
            with replacing(target) as temporary:
                table.to_csv(temporary, index=False)
            kind = "a table of"
        echo(f"{out}: {kind} {fitted.n_genes} genes")


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
