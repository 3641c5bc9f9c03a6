"""A model on labelled data of another cohort: its labels against the true ones.

With a tree of labels, tables by class are read at the level of the leaves, where a
label above them counts as withheld; tables by level have all samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from optirank._util.numbers import Progress, wilson
from optirank._util.words import collected_notes, look_alike, note, some, warn
from optirank.data.profiles import DataError, Profiles, text_column
from optirank.model.model import Model
from optirank.model.tree import NO_LABEL, Tree
from optirank.verbs.labelling import label_profiles
from optirank.verbs.labels import Labels, level_names
from optirank.verbs.options import DEFAULTS, PredictOptions, Result
from optirank.verbs.performance import Performance, performance

WITHHELD = "withheld"  # in place of a level


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

    def __repr__(self) -> str:
        accuracy = f"balanced accuracy {self.performance.headline()}"
        n_samples = self.performance.n_samples
        return f"Evaluation on {self.source}: {n_samples} samples, {accuracy}"

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Those of the performance, ``samples``, and with a tree ``levels``."""
        tables = self.performance.tables | {"samples": self.samples}
        return tables if self.levels is None else tables | {"levels": self.levels}


def evaluate_profiles(
    profiles: Profiles,
    model: Model,
    label: str,
    options: PredictOptions = DEFAULTS,
    *,
    mapping: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Label the samples of profiles and compare with a column.

    Samples without a true class are left out; those of classes that the model does not
    have are counted apart.

    Parameters
    ----------
    profiles, model, options, progress : as in `label_profiles`.
    label : the column with the true classes.
    mapping : names of classes in that column, and the model's names for them.
    """
    source = profiles.source
    column = text_column(profiles.obs, label, source)
    truth = _mapped_classes(column, mapping or {}, model, source)
    has_truth = np.array([isinstance(name, str) for name in truth], dtype=bool)
    names = list(model.labels)
    is_known = has_truth & np.isin(truth, names)
    if not is_known.any():
        theirs = sorted(set(truth[has_truth]))
        raise DataError(
            f"{source}: no value of {label!r} is a class of the model: it has "
            f"{some(theirs)}, the model {some(names)}; {_mapping_hint(theirs, names)}"
        )
    with collected_notes() as said:
        labels = label_profiles(profiles, model, options, progress)
        unknown = _count_unknown(labels, truth, has_truth & ~is_known)
        judged = _judge_classes(labels, truth, np.flatnonzero(is_known))
        if judged.counted:
            absent = some(judged.per_class.index[judged.per_class["n"] == 0])
            note(
                f"the accuracy is over {judged.counted}; without a label given: "
                f"{absent}"
            )
        if not has_truth.all():
            note(f"{(~has_truth).sum()} samples have no {label} and are in no table")
        levels = None
        if model.tree is not None:
            places = model.tree.positions(truth[is_known])
            codes = model.tree.positions(labels.labels[is_known])
            levels = level_outcomes(model.tree, places, codes).reset_index()
        if options.target_error is not None:
            _warn_of_errors(options.target_error, judged, levels)
    samples = pd.DataFrame(
        {
            "sample": labels.samples["sample"][is_known],
            "label": truth[is_known],
            "predicted": labels.classes[labels.chosen[is_known]],
            "confidence": labels.confidence[is_known],
            "withheld": labels.withheld[is_known],
        }
    )
    if levels is not None:
        samples["given"] = labels.labels[is_known]
    return Evaluation(
        model=model,
        performance=judged,
        label=label,
        source=source,
        samples=samples,
        unknown=unknown,
        labels=labels,
        notes=said.notes,
        warnings=said.warnings,
        levels=levels,
    )


def _mapped_classes(
    column: pd.Series, mapping: Mapping[str, str], model: Model, source: str
) -> NDArray[np.object_]:
    """The true classes under the model's names."""
    truth = column.to_numpy(dtype=object)
    theirs = sorted({name for name in truth if isinstance(name, str)})
    for name, of_model in mapping.items():
        if of_model not in model.labels:
            raise DataError(
                f"mapping={ {name: of_model} }: the model has no class {of_model!r}; "
                f"its classes are {some(sorted(model.labels), 20)}"
            )
        if name not in theirs:
            raise DataError(
                f"mapping={ {name: of_model} }: {source} has no class {name!r}; there "
                f"are {some(theirs, 20)}"
            )
    return np.array([mapping.get(name, name) for name in truth], dtype=object)


def _count_unknown(
    labels: Labels, truth: NDArray[np.object_], is_unknown: NDArray[np.bool_]
) -> dict[str, int]:
    """Samples of each class that the model does not have, with a note on them."""
    counts = pd.Series(truth[is_unknown]).value_counts().sort_index()
    unknown = {str(name): int(number) for name, number in counts.items()}
    if unknown:
        note(
            f"{sum(unknown.values())} samples are of classes that the model does not "
            f"have and are in no table; {labels.withheld[is_unknown].mean():.0%} of "
            f"their labels are withheld: {some(unknown)}; "
            f"{_mapping_hint(list(unknown), labels.model.labels)}"
        )
    return unknown


def _judge_classes(
    labels: Labels, truth: NDArray[np.object_], rows: NDArray[np.intp]
) -> Performance:
    """Truth and labels compared class by class; of a tree at the level of its leaves.

    Samples that are known to a coarser label alone are left out, unless all are: then
    the classes are these labels.
    """
    # Classes without a tree are one without coarser labels
    tree = labels.model.tree or Tree(dict.fromkeys(labels.classes.tolist(), ""))
    true = truth[rows]
    predicted = labels.classes[labels.chosen[rows]]
    classes, place = classes_of_tree(tree, tree.positions(true))
    true_place = place[tree.positions(true)]
    is_fine = true_place != NO_LABEL
    if not is_fine.all():
        note(
            f"{(~is_fine).sum()} samples are known to a coarser label alone: they are "
            "in the tables of levels, not in those of classes"
        )
    names = np.array(classes, dtype=object)
    whole = tree.probabilities(labels.probabilities[rows[is_fine]], labels.classes)
    codes = tree.positions(labels.labels[rows[is_fine]])
    return performance(
        names[true_place[is_fine]],
        names[place[tree.positions(predicted[is_fine])]],
        whole[:, tree.positions(classes)],
        classes,
        np.append(place, NO_LABEL)[codes] == NO_LABEL,  # withheld, or coarser
    )


def classes_of_tree(
    tree: Tree, truth: NDArray[np.intp]
) -> tuple[list[str], NDArray[np.intp]]:
    """The labels at which samples are compared class by class, and where each label of
    the tree belongs among them; ``NO_LABEL`` above.

    They are the leaves; where no truth is one, the coarsest labels that are, and the
    leaves beside them.
    """
    true_labels = {tree.labels[place] for place in np.unique(truth)}
    stops = set(tree.leaves)
    if not stops & true_labels:
        stops |= true_labels
    place = np.full(len(tree.labels), NO_LABEL)
    classes: list[str] = []
    for position, name in enumerate(tree.labels):
        parent = tree.parents[name]
        above = place[tree.place[parent]] if parent else NO_LABEL
        if above == NO_LABEL and name in stops:
            above = len(classes)
            classes.append(name)
        place[position] = above
    return classes, place


def _mapping_hint(theirs: Sequence[str], names: Sequence[str]) -> str:
    """How to give classes the model's names, with those that look alike."""
    pairs = {name: other for name in theirs if (other := look_alike(name, names))}
    if not pairs:
        return "mapping={'theirs': 'ours'} gives classes the model's names"
    return (
        f"some names look alike, and if they mean the same, mapping={pairs} joins them"
    )


def _warn_of_errors(
    target_error: float, judged: Performance, levels: pd.DataFrame | None
) -> None:
    """Warn where more labels are wrong than was asked for; a label above the truth is
    right.
    """
    n_given = judged.n_given
    n_wrong = n_given - judged.n_right
    if levels is not None:
        n_wrong = int(levels["wrong"].sum())
        n_given = n_wrong + int(levels[["right", "coarse"]].to_numpy().sum())
    if n_given and n_wrong / n_given > target_error:
        error = n_wrong / n_given
        low, high = wilson(error, n_given)
        warn(
            f"asked for an error of {target_error:.1%}, found {error:.1%} (95 % "
            f"interval {float(low):.1%} to {float(high):.1%}) of the {n_given} labels "
            "given"
        )


def level_outcomes(
    tree: Tree, truth: NDArray[np.intp], codes: NDArray[np.intp]
) -> pd.DataFrame:
    """What became of the samples, by the level of the label that they got.

    One line per level, the last for labels that are withheld: ``n_samples``, ``share``
    of all, and how many are ``right``, ``coarse`` (right, but above the truth) and
    ``wrong``. ``truth`` and ``codes`` are positions of labels.
    """
    depths = np.array([len(tree.path(name)) - 1 for name in tree.labels])
    is_given = codes != NO_LABEL
    compared = np.where(is_given, codes, truth)
    is_above = (tree.paths[truth] == compared[:, None]).any(axis=1)
    is_right = (tree.paths[compared] == truth[:, None]).any(axis=1)
    outcomes = {
        "right": is_right,
        "coarse": is_above & ~is_right,
        "wrong": ~is_right & ~is_above,
    }
    level = np.where(is_given, depths[compared], tree.depth)
    names = [*level_names(tree), WITHHELD]
    counts = np.bincount(level, minlength=len(names))
    columns = {"n_samples": counts, "share": counts / max(1, len(codes))}
    for name, is_so in outcomes.items():
        columns[name] = np.bincount(level[is_given & is_so], minlength=len(names))
    return pd.DataFrame(columns, index=pd.Index(names, name="level"))
