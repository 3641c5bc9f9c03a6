"""`optirank labels`: the labels of sets side by side, and their Cell Ontology terms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.names import counted, some
from optirank.cli import options as opt
from optirank.cli.common import echo, tell
from optirank.cli.options import option
from optirank.cli.outputs import outputs, show_table

if TYPE_CHECKING:
    from optirank.workflow.sources import LabelSets

_TERMS = "Write the labels with their terms (.csv; - for stdout), to correct."
_ONTOLOGY = "A table that this command wrote, with your corrections."


@opt.with_options(opt.reading)
def labels(
    context: typer.Context,
    files: opt.Files,
    label: opt.Label,
    ontology: Annotated[
        Path | None, option("FILE", _ONTOLOGY, None, "--ontology")
    ] = None,
    out: Annotated[
        Path | None, option("TABLE", _TERMS, opt.OUTPUT, "--out", "-o")
    ] = None,
    force: opt.Force = False,
    **options: Any,
) -> None:
    """Show the labels of one or more sets, and find their Cell Ontology terms.

    A label gets a term where it is its name or a synonym; case, plurals and the order
    of words make no difference. Nothing is taken because it is merely like a name:
    the nearest names are shown, and labels of tumours and tissues stay as they are.
    Labels of several sets that look like one class are shown with the option that
    joins them.

    Examples:

      optirank labels reference.h5ad --label cell_type
      optirank labels a.h5ad b.h5ad --label cell_type -o terms.csv
      optirank labels a.h5ad b.h5ad --label cell_type --ontology terms.csv
    """
    from optirank.ontology import cell_ontology, read_terms, write_terms
    from optirank.workflow.sources import LabelSets, labels_of_files

    reading = opt.reading_options(opt.given_options(context))
    with outputs(context, {"the table": out}) as target:
        known = cell_ontology()
        ids = None if ontology is None else read_terms(ontology, known)
        sets = LabelSets(labels_of_files(files, label, **reading), known, ids)
        if not sets.terms:
            raise ValueError(f"no sample has a label in the column {label!r}")
        _show_sets(sets)
        for note in sets.notes():
            tell(f"note: {note}", err=True)
        if strange := sorted(set(ids or ()) - set(sets.names)):
            echo(
                f"note: {ontology} has labels that no set has: {some(strange)}",
                err=True,
            )
        n_found = sum(bool(term.id) for term in sets.terms)
        of_all = counted(len(sets.terms), "label has", "labels have")
        echo(f"{n_found} of {of_all} a term of the Cell Ontology {known.version}")
        if target is not None:
            counts = sets.counts.sum(axis=1)
            write_terms(target, sets.terms, dict(zip(sets.names, counts, strict=True)))
            echo(f"{out}: correct the ids, and give it back with --ontology")


def _show_sets(sets: LabelSets) -> None:
    """Print samples by label and set, and the term of each label."""
    rows = []
    for term, numbers in zip(sets.terms, sets.counts.to_numpy(), strict=True):
        name = f"{term.id} {term.name}"
        if not term.id:
            near = some([f"{known} {like}" for known, like in term.near])
            name = f"(near: {near})" if term.near else ""
        rows.append((term.label, *numbers, name))
    show_table("Labels", ("label", *map(str, sets.counts), "what"), rows)
