"""`optirank models`: the models that can be called by name, and their cards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from optirank.cli.common import echo
from optirank.cli.outputs import show_table

if TYPE_CHECKING:
    from optirank.model import Model


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
    from optirank.cli.inspect import show_card
    from optirank.model import load
    from optirank.model.catalogue import find_model, known_models

    if name is not None:
        show_card(find_model(name))
        return
    rows = []
    damaged = []
    for known, path in known_models().items():
        try:
            model = load(path.absolute())
        except ValueError as error:  # one damaged file does not hide the others
            damaged.append(f"{path} is left out: {error}")
            continue
        rows.append(_row(known, model))
    columns = ("name", "tissue", "labels", "genes", "samples", "accuracy")
    show_table("Models", columns, rows, whole=("name", "tissue"))
    echo(
        "samples: those it was trained on\n"
        "accuracy: balanced, in %, mean (lowest) over other data sets, or over "
        "sources\nleft out of training\n"
        "optirank models NAME shows a card; predict FILE --model NAME labels samples"
    )
    for text in damaged:
        echo(f"note: {text}", err=True)


def _row(name: str, model: Model) -> tuple[str, ...]:
    """A model in one line of the table."""
    from optirank._util.names import some
    from optirank.workflow.cards import judged_accuracy

    card = model.card
    mean, lowest, n_sets = judged_accuracy(card)
    return (
        name,
        f"{card.species} {card.tissue}".strip(),
        some(model.classes, 20),
        str(model.n_genes),
        str(card.n_samples or ""),
        f"{100 * mean:.0f} ({100 * lowest:.0f})" if n_sets else "",
    )
