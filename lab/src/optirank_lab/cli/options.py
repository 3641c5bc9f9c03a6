"""Options that several commands of the laboratory share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from optirank.cli.options import OUTPUT, option

_DATA = "Folder of .h5ad files; default: OPTIRANK_DATA, else the cache."
Data = Annotated[Path | None, option("FOLDER", _DATA, None, "--data")]
ResultsFolder = Annotated[
    Path, option("FOLDER", "Results; a rerun resumes there.", OUTPUT, "--out", "-o")
]
Device = Annotated[
    str,
    option("cpu|cuda", "Device to fit on: CPU, or NVIDIA GPU ([gpu] extra).", None),
]
Processes = Annotated[
    int | None,
    option("N", "Processes; default: all processors.", None, "--jobs", "-j"),
]


def one_of(*words: str) -> Any:
    """The type of an option that is one of some words."""
    return StrEnum("Words", {word: word for word in words})
