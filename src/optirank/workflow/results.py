"""What the results of training, labelling, evaluation and design have in common."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from optirank.model import Model


class Result:
    """What a verb gives: a model, what there is to say, tables, and a page.

    Attributes
    ----------
    model : the model that was made or used; a result can be given wherever a model can.
    notes : sentences for the reader.
    warnings : sentences that need attention; they are not among the notes.
    """

    model: Model
    notes: list[str]
    warnings: list[str]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name."""
        raise NotImplementedError

    def report(self, path: str | os.PathLike[str], *, dated: bool = False) -> Path:
        """Write the page of the result, one HTML file.

        The same result gives the same bytes, unless ``dated`` adds today's date.
        """
        # The room of pages imports this one, and is found by its name
        pages = importlib.import_module("optirank.report.pages")
        return pages.write_report(self, path, dated=dated)
