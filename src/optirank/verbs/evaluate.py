"""A model on labelled data of another cohort: its labels against the true ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank._util.metrics import wilson
from optirank._util.names import look_alike, some
from optirank.data.errors import DataError
from optirank.data.profiles import text_column
from optirank.model.tree import NO_LABEL, Tree
from optirank.verbs.labels import level_names
from optirank.verbs.options import DEFAULTS, PredictOptions, Result
from optirank.verbs.performance import (
    Performance,
    performance,
)
from optirank.verbs.predict import label_profiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank._util.matrices import Progress
    from optirank.data.profiles import Profiles
    from optirank.model import Model
    from optirank.verbs.labels import Labels


@dataclass(frozen=True, repr=False)
class Evaluation(Result):
    """How a model does on labelled samples.

    Attributes
    ----------
    performance : the tables, of the samples whose true class the model has; with a tree
        of its classes, and labels that are coarser count as withheld.
    label, source : the column of the true classes, and where the samples come from.
    samples : one line per such sample: ``sample``, ``label`` (true), ``predicted``
        (before withholding), ``confidence``, ``withheld``.
    unknown : samples of each class that the model does not have; they are in no table.
    labels : what the model says of all samples, with the missing genes.
    notes, warnings : sentences about the query and the comparison; those that need
        attention.
    levels : with a tree, what became of the samples by the level of their label.
    confusions : with a tree, true labels and labels given at each level.
    """

    model: Model
    performance: Performance
    label: str
    source: str
    samples: pd.DataFrame
    unknown: dict[str, int]
    labels: Labels
    notes: list[str]
    warnings: list[str]
    levels: pd.DataFrame | None = None
    confusions: dict[str, pd.DataFrame] = field(default_factory=dict)

    def __repr__(self) -> str:
        accuracy = f"balanced accuracy {self.performance.headline()}"
        n_samples = self.performance.n_samples
        return f"Evaluation on {self.source}: {n_samples} samples, {accuracy}"

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Those of the performance, ``samples``, and with a tree ``levels`` and the
        confusion of each.
        """
        tables = self.performance.tables | {"samples": self.samples}
        if self.levels is not None:
            tables["levels"] = self.levels
        of_levels = {f"confusion of {name}": c for name, c in self.confusions.items()}
        return tables | of_levels


def evaluate_profiles(
    profiles: Profiles,
    model: Model,
    label: str,
    options: PredictOptions = DEFAULTS,
    *,
    mapping: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Label the samples of an open file or an AnnData and compare with a column.

    Samples without a true class are left out; those of classes that the model does not
    have are counted apart.

    Parameters
    ----------
    profiles, model, options, progress : as in `label_profiles`.
    label : the column with the true classes.
    mapping : names of classes in that column, and the model's names for them.
    """
    source = profiles.source
    truth = _mapped(text_column(profiles.obs, label, source), mapping, model, source)
    labels = label_profiles(profiles, model, options, progress)
    names = np.array(labels.model.labels, dtype=object)
    has_label = np.array([isinstance(name, str) for name in truth])
    known = np.isin(truth, names) & has_label
    if not known.any():
        raise DataError(
            f"{source}: no value of {label!r} is a class of the model: it has "
            f"{some(sorted(set(truth[has_label])))}, the model {some(names)}; "
            f"{_joining(sorted(set(truth[has_label])), list(names))}"
        )
    judged = _judged(labels, truth, known)
    levels, confusions = _by_level(labels, truth, known)
    unknown = _unknown(labels, truth, has_label & ~known)
    labels.notes.extend(_not_counted(judged, unknown))
    if not has_label.all():
        labels.notes.append(
            f"{(~has_label).sum()} samples have no {label} and are in no table"
        )
    _compare_with_asked(labels, options, judged, levels)
    samples = pd.DataFrame(
        {
            "sample": labels.names[known],
            "label": truth[known],
            "predicted": labels.classes[labels.chosen[known]],
            "confidence": labels.confidence[known],
            "withheld": labels.withheld[known],
        }
    )
    if levels is not None:
        samples["given"] = labels.labels[known]
    return Evaluation(
        model=model,
        performance=judged,
        label=label,
        source=source,
        samples=samples,
        unknown=unknown,
        labels=labels,
        notes=labels.notes,
        warnings=labels.warnings,
        levels=levels,
        confusions=confusions,
    )


def _by_level(
    labels: Labels, truth: NDArray[np.object_], known: NDArray[np.bool_]
) -> tuple[pd.DataFrame | None, dict[str, pd.DataFrame]]:
    """What became of the samples by the level of their label, and the confusions."""
    tree = labels.model.tree
    if tree is None:
        return None, {}
    places = tree.positions(truth[known])
    given = np.where(labels.withheld, NO_LABEL, labels.codes)[known]
    outcomes = level_outcomes(tree, places, given).reset_index()
    return outcomes, level_confusions(tree, places, given)


def _unknown(
    labels: Labels, truth: NDArray[np.object_], foreign: NDArray[np.bool_]
) -> dict[str, int]:
    """Samples of each class that the model does not have, with a note on them."""
    counts = pd.Series(truth[foreign]).value_counts().sort_index()
    unknown = {str(name): int(number) for name, number in counts.items()}
    if unknown:
        labels.notes.append(
            f"{sum(unknown.values())} samples are of classes that the model does not "
            f"have and are in no table; {labels.withheld[foreign].mean():.0%} of their "
            f"labels are withheld: {some(unknown)}"
        )
    return unknown


def _judged(
    labels: Labels,
    truth: NDArray[np.object_],
    known: NDArray[np.bool_],
) -> Performance:
    """Truth and labels compared class by class; of a tree at the level of its leaves.

    Samples that are known to a coarser label alone are left out, unless all are: then
    the classes are these labels.
    """
    tree = labels.model.tree
    rows = np.flatnonzero(known)
    classes = labels.classes.tolist()
    true = truth[rows]
    given = labels.classes[labels.chosen[rows]]
    probabilities = labels.probabilities[rows]
    withheld = labels.withheld[rows]
    if tree is not None:
        classes, place = judged_at(tree, tree.positions(true))
        of_truth = place[tree.positions(true)]
        kept = of_truth != NO_LABEL
        n_coarse = int((~kept).sum())
        if n_coarse:
            labels.notes.append(
                f"{n_coarse} samples are known to a coarser label alone: they are in "
                "the tables of levels, not in those of classes"
            )
        words = np.array([*classes, None], dtype=object)  # NO_LABEL is the last
        true = words[of_truth[kept]]
        given = words[place[tree.positions(given[kept])]]
        whole = tree.probabilities(probabilities[kept], labels.classes)
        probabilities = whole[:, tree.positions(classes)]
        label = np.append(place, NO_LABEL)[labels.codes[rows[kept]]]
        withheld = label == NO_LABEL  # or coarser
    return performance(true, given, probabilities, classes, withheld)


def _mapped(
    column: pd.Series,
    mapping: Mapping[str, str] | None,
    model: Model,
    source: str,
) -> NDArray[np.object_]:
    """The true classes under the model's names."""
    truth = column.to_numpy(dtype=object)
    if not mapping:
        return truth
    classes = set(model.labels)
    for theirs, ours in mapping.items():
        asked = {theirs: ours}
        if ours not in classes:
            raise DataError(
                f"mapping={asked}: the model has no class {ours!r}; its classes "
                f"are {some(sorted(classes), 20)}"
            )
        if theirs not in set(truth):
            values = some(sorted({name for name in truth if isinstance(name, str)}), 20)
            raise DataError(
                f"mapping={asked}: {source} has no class {theirs!r}; there are {values}"
            )
    return np.array([mapping.get(name, name) for name in truth], dtype=object)


def _not_counted(judged: Performance, unknown: Mapping[str, int]) -> list[str]:
    """Classes of the model without a sample, and names here that look like theirs."""
    if not judged.counted:
        return []
    of_truth = judged.confusion.sum(axis=1)
    absent = [str(name) for name, n_samples in of_truth.items() if not n_samples]
    note = f"the accuracy is over {judged.counted}"
    if absent:
        note += f"; no sample is of {some(absent)}"
    if any(look_alike(name, absent) for name in unknown):
        note += f"; {_joining(list(unknown), absent)}"
    return [note]


def _joining(theirs: Sequence[str], ours: Sequence[str]) -> str:
    """How to give classes the model's names, with those that look alike."""
    pairs = {name: other for name in theirs if (other := look_alike(name, ours))}
    if not pairs:
        return "mapping={'theirs': 'ours'} gives classes the model's names"
    return (
        f"some names look alike, and if they mean the same, mapping={pairs} joins them"
    )


def _compare_with_asked(
    labels: Labels,
    options: PredictOptions,
    judged: Performance,
    levels: pd.DataFrame | None,
) -> None:
    """Say where more labels are wrong than was asked for; a label above the truth is
    right.
    """
    target = options.target_error
    n_given = judged.n_given
    n_wrong = n_given - judged.n_right
    if levels is not None:
        n_wrong = int(levels["wrong"].sum())
        n_given = n_wrong + int(levels[["right", "coarse"]].to_numpy().sum())
    if target is None or not n_given:
        return
    error = n_wrong / n_given
    if error > target:
        low, high = wilson(error, n_given)
        labels.warnings.append(
            f"asked for an error of {target:.1%}, found {error:.1%} (95 % interval "
            f"{float(low):.1%} to {float(high):.1%}) of the {n_given} labels "
            "given"
        )


COARSER = "coarser"  # a label above the level of a table
WITHHELD = "withheld"


def level_outcomes(
    tree: Tree, truth: NDArray[np.intp], given: NDArray[np.intp]
) -> pd.DataFrame:
    """What became of the samples, by the level of the label that they got.

    One line per level, the last for labels that are withheld: ``n_samples``, ``share``
    of all, and how many are ``right``, ``coarse`` (right, but above the truth) and
    ``wrong``. ``truth`` and ``given`` are positions of labels.
    """
    depths = np.array([len(tree.path(label)) - 1 for label in tree.labels])
    is_given = given != NO_LABEL
    known = np.where(is_given, given, truth)
    is_above = (tree.paths[truth] == known[:, None]).any(axis=1)
    right = (tree.paths[known] == truth[:, None]).any(axis=1)
    outcomes = {
        "right": right,
        "coarse": is_above & ~right,
        "wrong": ~right & ~is_above,
    }
    level = np.where(is_given, depths[known], tree.depth)
    names = [*level_names(tree), WITHHELD]
    counts = np.bincount(level, minlength=len(names))
    columns = {"n_samples": counts, "share": counts / max(1, len(given))}
    for name, is_so in outcomes.items():
        columns[name] = np.bincount(level[is_given & is_so], minlength=len(names))
    return pd.DataFrame(columns, index=pd.Index(names, name="level"))


def level_confusions(
    tree: Tree, truth: NDArray[np.intp], given: NDArray[np.intp]
) -> dict[str, pd.DataFrame]:
    """The confusion of each level: true labels (rows) and labels given (columns).

    Both are read at that level. The last columns are labels above it, and labels that
    are withheld. Samples whose truth is known above the level alone are left out.
    """
    tables = {}
    for level, name in enumerate(level_names(tree)):
        reaches = tree.reaches[:, level]
        known = reaches[truth]
        at_level = np.unique(tree.paths[reaches, level])
        columns = [*(tree.labels[label] for label in at_level), COARSER, WITHHELD]
        n_labels = len(at_level)
        row = np.searchsorted(at_level, tree.paths[truth[known], level])
        got = given[known]
        column = np.searchsorted(at_level, tree.paths[got, level])
        column = np.where(reaches[got], column, n_labels)
        column = np.where(got == NO_LABEL, n_labels + 1, column)
        shape = (n_labels, len(columns))
        counts = np.bincount(row * shape[1] + column, minlength=shape[0] * shape[1])
        tables[name] = pd.DataFrame(
            counts.reshape(shape),
            index=pd.Index(columns[:n_labels], name="true class"),
            columns=pd.Index(columns),
        )
    return tables


def judged_at(
    tree: Tree, truth: NDArray[np.intp]
) -> tuple[list[str], NDArray[np.intp]]:
    """The labels at which samples are compared class by class, and where each label of
    the tree belongs among them; ``NO_LABEL`` above.

    They are the leaves; where no truth is one, the coarsest labels that are, and the
    leaves beside them.
    """
    found = {tree.labels[place] for place in np.unique(truth)}
    stops = set(tree.leaves)
    if not stops & found:
        stops |= found
    place = np.full(len(tree.labels), NO_LABEL)
    labels: list[str] = []
    for label in tree.labels:
        parent = tree.parents[label]
        above = place[tree.place[parent]] if parent else NO_LABEL
        if above == NO_LABEL and label in stops:
            labels.append(label)
            above = len(labels) - 1
        place[tree.place[label]] = above
    return labels, place
