"""`optirank export`: a page that labels samples in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optirank.cli import options as opt
from optirank.cli.common import echo
from optirank.cli.options import option
from optirank.cli.outputs import outputs


def export(
    context: typer.Context,
    model: opt.ModelFile,
    out: Annotated[
        Path, option("PAGE.html", "The page to write.", opt.OUTPUT, "--out", "-o")
    ] = Path("model.html"),
    h5ad: Annotated[
        bool,
        option(
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
