"""From a file to a model, from a model to labels, and how good these are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import pandas as pd

    from optirank.model import Model

METHODS = {
    "panel": "optirank.workflow.methods:train_panel",
    "optirank": "optirank.workflow.methods:train_settings",
    "rank-lr": "optirank.workflow.methods:train_settings",
}
"""The methods of ``train``: a module and a function of it, of the prepared samples, the
options and a callback for the progress, which returns a `train.Fitted`."""


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
    # Given by `optirank.tl`, since the room of pages is above this one
    write_page: ClassVar[Callable[..., Path]]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name."""
        raise NotImplementedError

    def report(self, path: str | os.PathLike[str], *, dated: bool = False) -> Path:
        """Write the page of the result, one HTML file.

        The same result gives the same bytes, unless ``dated`` adds the date.
        """
        return self.write_page(self, path, dated=dated)
