"""The shares of the classes as a user gives them: a word, a mapping, or a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from optirank.datasets.errors import DataError
from optirank.model.prior import PRIORS, Prior


def as_prior(prior: Prior | os.PathLike[str]) -> Prior:
    """A prior as :class:`optirank.model.Predictor` takes it; files are read."""
    if isinstance(prior, Mapping) or prior in PRIORS:
        return prior
    path = Path(prior)
    if not path.is_file():
        raise DataError(
            f"prior {os.fspath(prior)!r} is neither one of {', '.join(PRIORS)} nor a file: give "
            "the name of a table with a class and its share on each line"
        )
    return read_prior(path)


def read_prior(path: Path) -> dict[str, float]:
    """The shares in a table of two columns, class and share, with or without a heading."""
    import pandas as pd

    sep = "\t" if path.suffix in (".tsv", ".txt") else ","
    try:
        table = pd.read_csv(path, sep=sep, header=None, dtype=str, keep_default_na=False)
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a table of classes and shares: {error}") from error
    if table.shape[1] != 2:
        raise DataError(
            f"{path} has {table.shape[1]} columns: two are needed, the class and its share"
        )
    names, shares = table[0].str.strip(), pd.to_numeric(table[1], errors="coerce")
    if pd.isna(shares[0]):  # a heading
        names, shares = names[1:], shares[1:]
    if shares.isna().any():
        where = shares.index[shares.isna()][0]
        raise DataError(f"{path}, line {where + 1}: {table.loc[where, 1]!r} is not a number")
    if names.duplicated().any():
        raise DataError(f"{path}: the class {names[names.duplicated()].iloc[0]!r} is listed twice")
    return dict(zip(names, shares.tolist(), strict=True))
