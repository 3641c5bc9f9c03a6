"""The classifiers of the experiments: one entry each, with all that is to be known about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import ClassifierMixin

    from optirank.tuning.family import Family

PENALTIES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
REFERENCE_SIZES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
REAL, SYNTHETIC = "real", "synthetic"


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """One classifier of the experiments.

    Parameters
    ----------
    name : how it is called in options, tables and figures.
    words : what it is, to follow "NAME is" on a page.
    estimator : the class, or where it is ("module:class").
    family : the family of `optirank.tuning` (or where it is) that fits the whole grid in chains;
        without one, each setting is fitted by the estimator on its own.
    grid : the values of each parameter, those of the paper; a profile may replace them.
    experiments : where it takes part: "real" tasks, the "synthetic" experiment.
    cost : (a, b), CPU seconds of a unit being about a + b n for n training samples; for the time
        left alone.
    colour, marker : how figures show it; a marker of None draws a dashed line, as for a ceiling.
    needs : "auxiliary": a second data set; "truth": the true reference set. Where there is none,
        the classifier is left out.
    sees_counts : whether it takes counts as measured where all data are counts. Estimators
        without a family otherwise see log values.
    compare_genes : whether the tables compare its number of genes with that of others.
    genes : the genes that a fitted estimator needs, as a mask.
    """

    name: str
    words: str
    estimator: str | type
    family: str | type | None = None
    grid: dict[str, tuple] = field(default_factory=dict)
    experiments: tuple[str, ...] = (REAL, SYNTHETIC)
    cost: tuple[float, float] = (1.0, 0.001)
    colour: str = "#777777"
    marker: str | None = "h"
    needs: str | None = None
    sees_counts: bool = False
    compare_genes: bool = False
    genes: Callable[[ClassifierMixin], NDArray] = lambda model: model.genes_

    def make(self, **params) -> ClassifierMixin:
        """The estimator with these parameters."""
        return _find(self.estimator)(**params)

    def make_family(self, grid: dict[str, tuple], **options) -> Family:
        """The family over a grid: its fields are the parameters in the plural, ``l1s`` for l1."""
        return _find(self.family)(**{f"{key}s": values for key, values in grid.items()}, **options)

    def n_genes(self, model: ClassifierMixin) -> int:
        """Number of genes a fitted estimator needs."""
        return int(np.count_nonzero(self.genes(model)))

    @property
    def n_settings(self) -> int:
        """Size of the grid."""
        return prod(map(len, self.grid.values()))

    @property
    def look(self) -> dict[str, str]:
        """Colour and marker, for matplotlib."""
        return {"color": self.colour, "marker": self.marker or "h"}


def _find(what: str | type) -> type:
    if not isinstance(what, str):
        return what
    module, _, name = what.partition(":")
    return getattr(import_module(module), name)


_ELASTIC_NET = {"l1": PENALTIES, "l2": PENALTIES}
_WITH_REFERENCE = {"n_reference": REFERENCE_SIZES, **_ELASTIC_NET}

# Okabe and Ito's colours, which differ for colour-blind readers too; markers differ besides.
CLASSIFIERS: dict[str, Classifier] = {
    classifier.name: classifier
    for classifier in (
        Classifier(
            name="ANrank-lr",
            words="logistic regression on ranks among the genes that differ least between data "
            "sets by an ANOVA",
            estimator="optirank:AnovaRankLogisticRegression",
            family="optirank.tuning.families:AnovaFamily",
            grid=_WITH_REFERENCE,
            experiments=(REAL,),
            cost=(0.6, 0.010),
            colour="#CC79A7",
            marker="D",
            needs="auxiliary",
            compare_genes=True,
        ),
        Classifier(
            name="SCN",
            words="SingleCellNet, a random forest on pairs of genes",
            estimator="optirank:SingleCellNetClassifier",
            grid={"n_trees": (1000,)},
            experiments=(REAL,),
            cost=(1.5, 0.002),
            colour="#E69F00",
            marker="v",
            sees_counts=True,
        ),
        Classifier(
            name="lr",
            words="logistic regression on the expression values",
            estimator="optirank.estimators.logistic:ElasticNetLogisticRegression",
            family="optirank.tuning.families:LogisticFamily",
            grid=_ELASTIC_NET,
            cost=(0.25, 0.0005),
            colour="#009E73",
            marker="s",
            compare_genes=True,
        ),
        Classifier(
            name="optirank",
            words="logistic regression on ranks among genes that it learns",
            estimator="optirank:OptirankClassifier",
            family="optirank.tuning.families:OptirankFamily",
            grid=_WITH_REFERENCE,
            cost=(4.0, 0.030),
            colour="#D55E00",
            marker="o",
            compare_genes=True,
        ),
        Classifier(
            name="rank-lr",
            words="logistic regression on ranks among all genes",
            estimator="optirank:RankLogisticRegression",
            family="optirank.tuning.families:RankFamily",
            grid=_ELASTIC_NET,
            cost=(0.2, 0.0005),
            colour="#0072B2",
            marker="^",
        ),
        Classifier(
            name="rf",
            words="a random forest on the expression values",
            estimator="sklearn.ensemble:RandomForestClassifier",
            grid={"n_estimators": (300,), "class_weight": ("balanced",)},
            experiments=(REAL,),
            cost=(0.6, 0.001),
            colour="#56B4E9",
            marker="X",
            genes=lambda model: model.feature_importances_ > 0,
        ),
        Classifier(
            name="oracle",
            words="the ceiling: logistic regression on ranks among the true reference set",
            estimator="optirank:RankLogisticRegression",
            family="optirank.tuning.families:FixedReferenceFamily",
            grid=_ELASTIC_NET,
            experiments=(SYNTHETIC,),
            cost=(0.2, 0.0005),
            colour="#333333",
            marker=None,
            needs="truth",
        ),
    )
}
"""All of them, in the order of the paper's tables. An ``lr`` sees log1p(CPM) as it is."""


def get(name: str, among: Sequence[str] | None = None) -> Classifier:
    """The classifier of that name, one of those named in ``among`` where that is given.

    "NAME (RULE)" is the classifier with its settings chosen by another rule.
    """
    known = CLASSIFIERS if among is None else among
    base, _, rule = name.partition(" (")
    if base not in known or (rule and among is not None):
        raise ValueError(f"classifier {name!r} is not known: use one of {', '.join(known)}")
    if rule:
        return replace(CLASSIFIERS[base], name=name, marker="P")
    return CLASSIFIERS[name]


def names_for(experiment: str) -> list[str]:
    """The classifiers that take part in the "real" or the "synthetic" experiment."""
    return [name for name, one in CLASSIFIERS.items() if experiment in one.experiments]


def ordered(names: object) -> list[str]:
    """Names in the order of the paper's tables, others behind."""
    known = list(CLASSIFIERS)

    def place(name: str) -> tuple[int, str]:
        base = name.partition(" (")[0]
        return (known.index(base) if base in known else len(known), name)

    return sorted(set(names), key=place)


def tuned_parameters() -> list[str]:
    """The parameters that a classifier of the comparison chooses among several values."""
    found = [name for one in CLASSIFIERS.values() for name in one.grid if len(one.grid[name]) > 1]
    return list(dict.fromkeys(found))
