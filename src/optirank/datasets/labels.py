"""Labels of different sources brought to common names, by the tables in labels.toml."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable
from importlib.resources import files

import numpy as np


@functools.cache
def tables() -> dict[str, dict]:
    """Return the tables: ``common`` and, under ``sets``, one a data set."""
    return tomllib.loads(files("optirank.datasets").joinpath("labels.toml").read_text("utf-8"))


def harmonise(labels: Iterable[object], dataset: str | None = None) -> np.ndarray:
    """Return the common names of labels; NaN where there is none."""
    common, own = tables()["common"], tables()["sets"].get(dataset, {})
    known: dict[object, object] = {}
    result = []
    for label in labels:
        if label not in known:
            known[label] = _common_name(label, own, common)
        result.append(known[label])
    return np.array(result, dtype=object)


def _common_name(label: object, own: dict[str, str], common: dict[str, str]) -> object:
    if label is None or label != label:
        return np.nan
    text = str(label).strip()
    if text in own:
        name = own[text]
    else:
        plain = " ".join(text.lower().replace("_", " ").split())
        name = common.get(plain, plain)
    return name or np.nan
