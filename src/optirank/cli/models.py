"""`optirank models`: the models that can be called by name, and their cards."""

from __future__ import annotations

from typing import Annotated

import typer

from optirank.cli.common import echo, show_table, tidy


def models(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Show the card of this model."),
    ] = None,
) -> None:
    """List the models that come with optirank, or show the card of one.

    Wherever a command takes a model file it takes such a name. Accuracies are those of other data
    sets: each was labelled by a model that had not seen it. The variable OPTIRANK_MODELS names a
    folder of more models (*.optirank), which are listed too. Nothing is downloaded.

    Examples:

      optirank models
      optirank models pancreas-human
      optirank predict query.h5ad --model pancreas-human --report labels.html
    """
    with tidy():
        from optirank.cli.inspect import show_card
        from optirank.model.catalogue import find_model, known_models
        from optirank.model.file import read_summary
        from optirank.workflow.explain import judged

        if name is not None:
            show_card(find_model(name))
            return
        rows, damaged = [], []
        for known, path in known_models().items():
            try:
                summary = read_summary(path)
                mean, lowest, n_sets = judged(summary)
            except Exception as error:  # one damaged file does not hide the others
                damaged.append(f"{path} is left out: {error}")
                continue
            seen = {
                name for one in summary.get("sources", ()) for name in one["classes"]
            }
            rows.append(
                (
                    *(
                        known,
                        " ".join(
                            str(summary.get(key, "")) for key in ("species", "tissue")
                        ),
                    ),
                    *(f"{len(seen)}/{len(summary['classes'])}", summary["n_panel"]),
                    summary.get("n_samples", ""),
                    f"{100 * mean:.0f} ({100 * lowest:.0f})" if n_sets else "",
                    f"{path.stat().st_size / 1e3:.0f}",
                )
            )
        columns = ("name", "tissue", "classes", "genes", "samples", "accuracy", "kB")
        show_table("Models", columns, rows)
        echo(
            "classes: judged on other data sets / all; samples: those it was trained on"
        )
        echo(
            "accuracy: balanced, in %, mean (lowest) over data sets or sources left out"
        )
        echo(
            "optirank models NAME shows a card; predict FILE --model NAME labels samples"
        )
        for text in damaged:
            echo(f"note: {text}", err=True)
