"""The files of a training: references and lists of genes, their labels side by side,
joined, and the coarser labels above them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from optirank._util.names import counted, some
from optirank.io.data import (
    DataError,
    annotations_of,
    duplicates,
    readable,
    source_of,
    text_column,
)
from optirank.io.objects import FILE_COLUMN, join
from optirank.io.reading import guess_format, is_table, open_file, read_gene_names
from optirank.io.table_files import find_layout, open_text, read_pairs
from optirank.io.tables import TABLE
from optirank.model.tree import Terms, Tree, tree_of_columns, tree_of_table
from optirank.ontology import (
    LabelTerm,
    Ontology,
    alike,
    cell_ontology,
    match_labels,
    parents_among,
    read_terms,
)
from optirank.verbs.options import ONTOLOGY

if TYPE_CHECKING:
    from anndata import AnnData

    from optirank.verbs.options import TrainingOptions

_HEADINGS = ("gene", "genes", "symbol")


@contextlib.contextmanager
def open_sources(
    files: Sequence[Path],
    labels: Sequence[str],
    batch: str | None = None,
    *,
    for_query: bool = False,
    **reading: Any,
) -> Iterator[tuple[list[AnnData], str | None]]:
    """Open the reference files of a training; columns that must be there are looked for
    first.

    Gives the profiles and the column of the sources: of several files, the file where
    no other column is named. ``for_query`` says that ``genes_in`` may be about the
    query's table.
    """
    columns = [*labels] if batch is None else [*labels, batch]
    names = names_of_files(files)
    with contextlib.ExitStack() as stack:
        parts = []
        for path in files:
            options = dict(reading)
            if for_query and not is_table(path, options.get("format")):
                options["genes_in"] = None
            opened = open_file(path, label=columns, **options)
            parts.append(stack.enter_context(opened))
        if len(parts) == 1:
            yield parts, batch
        else:
            yield join(parts, names), batch or FILE_COLUMN


def names_of_files(paths: Sequence[Path]) -> list[str]:
    """Short names of files that differ: without folder and ending where that
    suffices.
    """
    for names in ([path.stem for path in paths], [path.name for path in paths]):
        if len(set(names)) == len(names):
            return names
    names = [str(path) for path in paths]
    if repeated := duplicates(names):
        raise DataError(f"{some(repeated)} is named twice: name each file once")
    return names


def genes_of_queries(
    files: Sequence[Path], genes_in: str | None = None
) -> list[str] | None:
    """The genes that all of some files have, in the order of the first; None
    without files.

    Text of no format that says where its genes are, about which ``genes_in`` says
    nothing either, is a list of genes, see `gene_names_in`.
    """
    common: list[str] | None = None
    for file in map(Path, files):
        is_list = False
        if genes_in is None and file.is_file() and guess_format(file) == TABLE.name:
            with readable(file), open_text(file) as lines:
                is_list = not find_layout(file, lines).format
        if is_list:
            names = gene_names_in([str(file)])
        else:
            names = read_gene_names(file, genes_in)
        known = set(names)
        common = names if common is None else [name for name in common if name in known]
    return common


def gene_names_in(items: Sequence[str]) -> list[str]:
    """Names and patterns: each item is some separated by commas, or a file whose first
    column has them, without a heading such as "gene" and lines with #.
    """
    names: list[str] = []
    for item in items:
        path = Path(item)
        if not path.is_file():
            names += [name.strip() for name in item.split(",") if name.strip()]
            continue
        with readable(path), open_text(path) as file:
            lines = file.read().splitlines()
        fields = [line.replace("\t", ",").split(",")[0].strip() for line in lines]
        listed = [field.strip('"') for field in fields if not field.startswith("#")]
        listed = [name for name in listed if name]
        if listed and listed[0].lower() in _HEADINGS:
            listed = listed[1:]
        if not listed:
            raise DataError(f"{path} names no gene: write one per line")
        names += listed
    return names


def labels_of_files(
    paths: Sequence[Path], column: str, **reading: Any
) -> dict[str, Sequence[object]]:
    """The labels of the samples of each file, by its name."""
    sets: dict[str, Sequence[object]] = {}
    for path, name in zip(paths, names_of_files(paths), strict=True):
        with open_file(path, label=column, **reading) as opened:
            sets[name] = text_column(annotations_of(opened), column, str(path)).tolist()
    return sets


class LabelSets:
    """The labels of sets side by side; missing labels are left out.

    Parameters
    ----------
    sets : the labels of each set, by its name.
    ontology : where labels are looked for.
    ids : terms that the user gave to labels; they win over those that are found.

    Attributes
    ----------
    counts : samples of each label (rows) in each set (columns), the labels of most
        sets first.
    terms : of each label, in the order of the rows.
    alike : groups of labels that look like one class.
    """

    def __init__(
        self,
        sets: Mapping[str, Sequence[object]],
        ontology: Ontology,
        ids: Mapping[str, str] | None = None,
    ) -> None:
        self.counts = label_counts(sets)
        self.terms = [
            LabelTerm(
                term.label,
                ids[term.label],
                ontology.terms[ids[term.label]].name,
                "given",
            )
            if ids and term.label in ids
            else term
            for term in match_labels(self.names, ontology)
        ]
        self.alike = alike(self.terms)

    @property
    def names(self) -> list[str]:
        """The labels."""
        return [str(label) for label in self.counts.index]

    def notes(self) -> list[str]:
        """Labels that look like one class, with what joins them; and those that one set
        alone has and that do not look like another's.
        """
        notes = []
        for group in self.alike:  # joined under the name of most samples
            kept = max(group, key=lambda label: self.counts.loc[label].sum())
            mapping = {label: kept for label in group if label != kept}
            notes.append(
                f"the labels {some(group, 20, quoted=True)} look like one class; they "
                f"are different classes unless they are joined: mapping={mapping}"
            )
        if self.counts.shape[1] == 1:
            return notes
        own = self.counts.drop(index=[label for group in self.alike for label in group])
        own = own[(own > 0).sum(axis=1) == 1]
        for name, labels in own.groupby(own.idxmax(axis=1), sort=False).groups.items():
            notes.append(
                f"{name} alone has {counted(len(labels), 'class', 'classes')} that no "
                f"other set can judge: {some(labels)}"
            )
        return notes


def label_counts(sets: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """Samples of each label (rows) in each set, the labels of most sets first."""
    columns = {
        name: pd.Series(labels, dtype=object).dropna().astype(str).value_counts()
        for name, labels in sets.items()
    }
    counts = pd.DataFrame(columns).fillna(0).astype(int)
    order = pd.DataFrame(
        {
            "sets": -(counts > 0).sum(axis=1),
            "samples": -counts.sum(axis=1),
            "label": counts.index,
        },
        index=counts.index,
    ).sort_values(["sets", "samples", "label"])
    return counts.loc[order.index]


def counts_by_file(data: Sequence[AnnData], options: TrainingOptions) -> pd.DataFrame:
    """Samples of each label in each of several files that are used together."""
    obs = annotations_of(data)
    columns = _joined(obs, options, source_of(data))
    return label_counts(_by_file(obs, columns[options.label[-1]]))


def _by_file(obs: pd.DataFrame, labels: pd.Series) -> dict[str, list[object]]:
    """The labels of each file."""
    files = obs[FILE_COLUMN].to_numpy(dtype=object).astype(str)
    return {name: labels[files == name].tolist() for name in sorted(set(files))}


def _joined(
    obs: pd.DataFrame, options: TrainingOptions, source: str
) -> dict[str, pd.Series]:
    """The columns of labels, under the names that these are joined to."""
    columns = {name: text_column(obs, name, source) for name in options.label}
    mapping = options.mapping or {}
    known = {label for labels in columns.values() for label in labels.dropna()}
    for theirs, ours in mapping.items():
        asked = {theirs: ours}
        if theirs not in known:
            raise DataError(
                f"mapping={asked}: no set has the label {theirs!r}; there are "
                f"{some(sorted(known), 20)}"
            )
        if mapping.get(ours, ours) != ours:
            raise DataError(
                f"mapping={asked}: {ours!r} is itself renamed to "
                f"{mapping[ours]!r}: give {theirs!r} that name"
            )
    return {
        name: labels.map(lambda label: mapping.get(label, label)).astype(object)
        for name, labels in columns.items()
    }


def labelled_samples(
    obs: pd.DataFrame,
    options: TrainingOptions,
    source: str,
    notes: list[str],
    *,
    several: bool,
) -> tuple[pd.Series, Tree | None, Terms | None]:
    """The labels of samples as a training asks for them, NaN where there is none; the
    tree of coarser labels above them; and their terms of the Cell Ontology.

    Labels are joined first. Several columns are a tree from coarse to fine; a table of
    labels and parents, or the Cell Ontology, is one above a single column. A sample
    that is known to an inner label alone has no class, and is left out. ``several``
    says that the samples are of several files. ``notes`` gets sentences for the user.
    """
    columns = _joined(obs, options, source)
    labels = columns[options.label[-1]]
    if several:  # before anything is fitted
        notes += LabelSets(_by_file(obs, labels), cell_ontology()).notes()
    tree = terms = None
    if len(columns) > 1:
        tree, finest = tree_of_columns(pd.DataFrame(columns))
        labels = pd.Series(finest, index=obs.index, dtype=object)
    if options.tree is not None or options.ontology is not None:
        counts = {str(name): int(n) for name, n in labels.value_counts().items()}
        ids = _ids(options, {*counts, *(tree.labels if tree else ())})
        tree = tree or given_tree(options.tree, counts, ids)
        if ids:
            terms = Terms(ids, cell_ontology().version)
            names = [*counts] if tree is None else tree.labels
            lacking = [name for name in names if name not in ids]
            without = f"; without one: {some(lacking)}" if lacking else ""
            notes.append(
                f"{len(names) - len(lacking)} of {len(names)} labels have a term of "
                f"the Cell Ontology {terms.version}{without}"
            )
    if tree is None:
        return labels, None, terms
    if tree.depth == 1:
        notes.append("no label stands above another: the model has no tree of labels")
        return labels, None, terms
    inner = labels.isin(set(tree.labels) - set(tree.leaves))
    if inner.any():
        numbers = pd.Series(labels[inner]).value_counts()
        what = counted(int(inner.sum()), "sample is", "samples are")
        listed = some([f"{name} ({n})" for name, n in numbers.items()])
        notes.append(
            f"{what} known to a coarser label alone, which says nothing of the finer "
            f"ones, and left without a label: {listed}"
        )
    return labels.mask(inner), tree, terms


def _ids(options: TrainingOptions, labels: Iterable[str]) -> dict[str, str]:
    """The terms of labels: those that were given, else by names and synonyms."""
    if isinstance(options.ontology, Mapping):
        return dict(options.ontology)
    if options.ontology is not None:
        return read_terms(Path(options.ontology), cell_ontology())
    if options.tree != ONTOLOGY:
        return {}
    terms = match_labels(sorted(labels), cell_ontology())
    return {term.label: term.id for term in terms if term.id}


def given_tree(
    tree: Mapping[str, str] | str | os.PathLike[str] | None,
    counts: Mapping[str, int],
    ids: Mapping[str, str],
) -> Tree | None:
    """The tree of a mapping from labels to parents, of a table, or of the ontology.

    A table has two columns below a header, a label and its parent. In the tree of the
    ontology labels without a term are at the top.

    Parameters
    ----------
    tree : what is given.
    counts : the samples of each label in the data.
    ids : terms of labels. Some may be of the user's table alone: one that stands above
        labels with samples becomes an inner label, others are left out.
    """
    if tree is None:
        return None
    if isinstance(tree, Mapping):
        return tree_of_table([*tree.items()], counts, "the tree")
    if tree == ONTOLOGY:
        ontology = cell_ontology()
        there = ids.keys() & counts.keys()
        above = {higher for name in there for higher in ontology.ancestors(ids[name])}
        at_hand = {
            label: term
            for label, term in ids.items()
            if label in counts or term in above
        }
        rows = parents_among(at_hand, ontology)
        return tree_of_table(rows, counts, "the Cell Ontology")
    path = Path(tree)
    rows = read_pairs(path, "a tree has two, a label and its parent")
    return tree_of_table(rows[1:], counts, str(path))
