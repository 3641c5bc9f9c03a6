"""Genes of another species: a table of homologs gives them the names that a model knows."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from optirank._util.names import some
from optirank.datasets.errors import DataError, readable
from optirank.datasets.registry import homolog_table
from optirank.datasets.tables import open_text, separator
from optirank.model.genes import GeneMatch, check_case
from optirank.model.linear import linear_parts

SAME_CASE = "case"  # names that differ in case alone are the same gene
MOUSE = "mouse"  # the table of mouse and human genes that is shipped, in either direction
Homologs = Mapping[str, str] | str | os.PathLike[str] | None


def read_homologs(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """The pairs of a table with two columns, of which one has the names of the query's genes."""
    path = homolog_table() if path == MOUSE else Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: give a table, or one of 'mouse', 'case'")
    with readable(path), open_text(path) as file:
        lines = [line for line in csv.reader(file, delimiter=separator(path, None)) if any(line)]
    wrong = next((k for k, line in enumerate(lines) if len(line) != 2), None)
    if wrong is not None:
        raise DataError(
            f"{path}: line {wrong + 1} has {len(lines[wrong])} columns: a table of homologs has "
            "two, the gene of one species and that of the other"
        )
    return [(one.strip(), other.strip()) for one, other in lines if one.strip() and other.strip()]


def model_names(
    names: Iterable[str], model: Any, homologs: Homologs
) -> tuple[list[str], list[str]]:
    """The query's gene names in the model's species, and what there is to say about them.

    Which column of the table has the model's genes is seen from the names. A gene with several
    homologs, in either direction, keeps its name: which of them it is would be a guess.
    """
    names = [str(name) for name in names]
    if homologs is None or homologs == SAME_CASE:
        return names, []
    whence = "homologs" if isinstance(homologs, Mapping) else os.fspath(homologs)
    pairs = list(homologs.items()) if isinstance(homologs, Mapping) else read_homologs(homologs)
    parts = linear_parts(model)
    known = set(parts.genes if parts.names is None else parts.names)
    given = set(names)
    forward = sum(one in given and other in known for one, other in pairs)
    backward = sum(other in given and one in known for one, other in pairs)
    if not forward and not backward:
        raise DataError(
            f"{whence} has no line with a gene of the query and one of the model: the query has "
            f"{some(names, 3)}, the model {some(parts.genes, 3)}"
        )
    if backward > forward:
        pairs = [(other, one) for one, other in pairs]
    pairs = list(dict.fromkeys(pairs))
    theirs, ours = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    unique = {one: other for one, other in pairs if theirs[one] == 1 == ours[other]}
    renamed = sum(name in unique for name in names)
    note = f"{renamed} of {len(names)} genes have the names of their homologs in {whence}"
    return [unique.get(name, name) for name in names], [note]


def check_species(match: GeneMatch, homologs: Homologs) -> None:
    """Refuse genes that mostly match in another case, unless that was asked for."""
    if homologs != SAME_CASE:
        check_case(match)
