"""How a trained model shows itself: classes, genes, held-out accuracy, source and date.

A model shows its card where it carries a training summary or comes from a file; before that, and
for a model fitted by ``fit`` alone, it has scikit-learn's representation.
"""

from __future__ import annotations

import functools
import html
from typing import Any

from sklearn.base import BaseEstimator

from optirank._util.names import printable, some
from optirank.estimators.panel import carried
from optirank.estimators.summary import data_text, date_text, held_out_text, lines_html

_LINE = 300  # characters of one line
_CLASSES = 6  # classes named


class ModelCard:
    """The representations of an estimator, as text and as HTML."""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The card, or scikit-learn's representation."""
        lines = card_lines(self)
        if not lines:
            return _parameters(self, N_CHAR_MAX)
        rows = "".join(f"\n  {name + ':':<10} {text}" for name, text in lines)
        return f"{type(self).__name__}, trained{rows}"

    @property
    def _repr_html_(self) -> Any:
        """What a notebook shows where it does not know ``_repr_mimebundle_``."""
        return self._card_html if card_lines(self) else super()._repr_html_

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows."""
        if not card_lines(self):
            return super()._repr_mimebundle_(**kwargs)
        return {"text/plain": repr(self), "text/html": self._card_html()}

    def _card_html(self) -> str:
        settings = html.escape(_parameters(self, 2000))
        return (
            '<div style="border: 1px solid #8888; border-radius: 6px; padding: .6em 1em; '
            f'max-width: 50em"><b>{type(self).__name__}</b>{lines_html(card_lines(self))}'
            f"<details><summary>settings</summary><pre>{settings}</pre></details></div>"
        )


def card_lines(model: Any) -> list[tuple[str, str]]:
    """Names and texts of a model's card; none for a model that has no card."""
    summary, file = carried(model, "training_summary_"), vars(model).get("_file")
    if (summary is None and file is None) or not hasattr(model, "classes_"):
        return []
    summary = summary if isinstance(summary, dict) else {}
    names = [str(name) for name in model.classes_]
    needed = int(model.genes_.sum())
    lines = [
        ("classes", f"{len(names)}: {some(names, _CLASSES)}"),
        ("genes", f"{needed} needed, of {model.n_features_in_} in training"),
        ("held out", held_out_text(summary)),
        ("data", data_text(summary)),
        ("date", date_text(summary)),
        ("file", file or ""),
    ]
    return [(name, printable(text, _LINE)) for name, text in lines if text]


def _parameters(model: Any, limit: int) -> str:
    """scikit-learn's representation: the class and the parameters that are not the defaults.

    Its printer breaks long lines only for classes that have its own ``__repr__``, so it is given
    such a class.
    """
    plain = object.__new__(_plain_class(type(model)))
    plain.__dict__ = model.__dict__
    return BaseEstimator.__repr__(plain, limit)


@functools.cache
def _plain_class(cls: type) -> type:
    return type(cls.__name__, (cls,), {"__repr__": BaseEstimator.__repr__})
