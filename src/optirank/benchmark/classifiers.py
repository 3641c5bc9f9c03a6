"""The classifiers of the experiments: one entry each, with everything they need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from sklearn.multiclass import OneVsRestClassifier

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

    from optirank.benchmark.designs import Profile
    from optirank.tuning.families import Family

PENALTIES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
REFERENCE_SIZES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
BINARY, SYNTHETIC, WHOLE = "binary", "synthetic", "whole"
LOG, COUNTS, MEASURED = "log", "counts", "measured"


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """One classifier of the experiments.

    Parameters
    ----------
    name : how it is called in options, tables and figures.
    words : what it is, for a table.
    estimator : the class or function that makes it, or where that is ("module:name"); None for a
        tool of others, or where the family is all there is.
    family : the family of `optirank.tuning` (or where it is) that fits the whole grid in chains;
        without one, each setting is fitted by the estimator on its own.
    grid : the values of each parameter, those of the paper; a profile may replace them. With all
        classes at once, parameters with a single value are set and the others keep their defaults.
    experiments : where it can take part: "binary" (each class of a real task against the rest),
        "synthetic", "whole" (all classes of a real task at once).
    peer : for a tool of others: its name in ``--peer NAME=PYTHON`` and in ``tools/run_tool.py``.
    needs : "auxiliary": a second data set; "truth": the true reference set. Where there is none,
        the classifier is left out.
    sees : the values that an estimator is given: "log" values; "counts" where all data are counts,
        else log values; "measured": the values as measured, as for ranks.
    genes : the fitted attribute whose non-zero entries (of any class) are the genes needed; None:
        all that it was given.
    """

    name: str
    words: str
    estimator: str | Callable | None = None
    family: str | type | None = None
    grid: dict[str, tuple] = field(default_factory=dict)
    experiments: tuple[str, ...] = (BINARY, WHOLE)
    peer: str | None = None
    needs: str | None = None
    sees: str = MEASURED
    genes: str | None = "genes_"

    def make(self, **params) -> ClassifierMixin:
        """The estimator with these parameters."""
        return _find(self.estimator)(**params)

    def make_family(self, grid: dict[str, tuple], **options) -> Family:
        """The family over a grid: its fields are the parameters in the plural, ``l1s`` for l1."""
        return _find(self.family)(**{f"{key}s": values for key, values in grid.items()}, **options)

    def n_genes(self, model: ClassifierMixin) -> int:
        """Number of genes a fitted estimator needs."""
        if self.genes is None:
            return model.n_features_in_
        parts = model.estimators_ if isinstance(model, OneVsRestClassifier) else [model]
        weights = np.vstack([getattr(part, self.genes) for part in parts])
        return int(np.count_nonzero(weights.any(axis=0)))

    def grid_of(self, profile: Profile, *, whole: bool) -> dict[str, tuple]:
        """The grid in a profile; with all classes at once only what has a single value."""
        grid = {key: profile.grids.get(key, values) for key, values in self.grid.items()}
        return {k: v for k, v in grid.items() if len(self.grid[k]) == 1} if whole else grid

    def n_settings(self, profile: Profile, *, whole: bool) -> int:
        """Size of the grid."""
        return prod(map(len, self.grid_of(profile, whole=whole).values()))


def _find(what: str | Callable) -> Callable:
    if not isinstance(what, str):
        return what
    module, _, name = what.partition(":")
    return getattr(import_module(module), name)


_ELASTIC_NET = {"l1": PENALTIES, "l2": PENALTIES}
_WITH_REFERENCE = {"n_reference": REFERENCE_SIZES, **_ELASTIC_NET}

CLASSIFIERS: dict[str, Classifier] = {
    classifier.name: classifier
    for classifier in (
        Classifier(
            name="panel",
            words="one small panel of genes, ranked among themselves, for all classes",
            estimator="optirank.estimators.panel_classifier:PanelClassifier",
        ),
        Classifier(
            name="optirank",
            words="the paper's classifier: logistic regression on ranks relative to a reference "
            "set that it learns",
            estimator="optirank:OptirankClassifier",
            family="optirank.tuning.families:OptirankFamily",
            grid=_WITH_REFERENCE,
            experiments=(BINARY, SYNTHETIC, WHOLE),
        ),
        Classifier(
            name="rank-lr",
            words="elastic-net logistic regression on ranks of all genes",
            estimator="optirank:RankLogisticRegression",
            family="optirank.tuning.families:RankFamily",
            grid=_ELASTIC_NET,
            experiments=(BINARY, SYNTHETIC, WHOLE),
        ),
        Classifier(
            name="ANrank-lr",
            words="logistic regression on ranks relative to the genes that differ least between "
            "data sets by an ANOVA",
            estimator="optirank:AnovaRankLogisticRegression",
            family="optirank.tuning.families:AnovaFamily",
            grid=_WITH_REFERENCE,
            experiments=(BINARY,),
            needs="auxiliary",
        ),
        Classifier(
            name="lr",
            words="elastic-net logistic regression on log values",
            family="optirank.tuning.families:LogisticFamily",
            grid=_ELASTIC_NET,
            experiments=(BINARY, SYNTHETIC),
            sees=LOG,
        ),
        Classifier(
            name="SCN",
            words="SingleCellNet, a random forest on pairs of genes",
            estimator="optirank:SingleCellNetClassifier",
            grid={"n_trees": (1000,)},
            sees=COUNTS,
        ),
        Classifier(
            name="rf",
            words="a random forest on log values",
            estimator="sklearn.ensemble:RandomForestClassifier",
            grid={"n_estimators": (300,), "class_weight": ("balanced",)},
            sees=LOG,
            genes="feature_importances_",
        ),
        Classifier(
            name="oracle",
            words="logistic regression on ranks relative to the true reference set: the best that "
            "can be reached",
            estimator="optirank:RankLogisticRegression",
            family="optirank.tuning.families:FixedReferenceFamily",
            grid=_ELASTIC_NET,
            experiments=(SYNTHETIC,),
            needs="truth",
        ),
        Classifier(
            name="k-TSP",
            words="top scoring pairs: a vote of pairs of genes",
            estimator="optirank:TopScoringPairsClassifier",
        ),
        Classifier(
            name="lr-ranks",
            words="scikit-learn's logistic regression on ranks of all genes",
            estimator="optirank.benchmark.baselines:lr_on_ranks",
            genes=None,
        ),
        Classifier(
            name="svm-ranks",
            words="scikit-learn's linear support vector machine on ranks of all genes",
            estimator="optirank.benchmark.baselines:svm_on_ranks",
            genes=None,
        ),
        Classifier(
            name="centroid",
            words="the nearest class centroid by correlation of ranks",
            estimator="optirank.benchmark.baselines:SpearmanCentroid",
            genes=None,
        ),
        Classifier(
            name="lr-log",
            words="scikit-learn's logistic regression on log values",
            estimator="sklearn.linear_model:LogisticRegression",
            grid={"class_weight": ("balanced",), "max_iter": (1000,)},
            sees=LOG,
            genes="coef_",
        ),
        Classifier(
            name="lr-l1",
            words="scikit-learn's logistic regression with an l1 penalty on log values",
            estimator="optirank.benchmark.baselines:l1_lr",
            sees=LOG,
            genes="coef_",
        ),
        Classifier(
            name="CellTypist",
            words="CellTypist, logistic regression on standardised log values; made for single "
            "cells, so bulk arrays are outside of its use",
            experiments=(WHOLE,),
            peer="celltypist",
        ),
        Classifier(
            name="SingleR",
            words="SingleR (the Python package singler), correlation with reference samples over "
            "marker genes",
            experiments=(WHOLE,),
            peer="singler",
        ),
        Classifier(
            name="pySingleCellNet",
            words="pySingleCellNet, the random forest on pairs of genes by its authors",
            experiments=(WHOLE,),
            peer="pysinglecellnet",
        ),
    )
}
"""All of them, in the order of tables."""

PAPER_CLASSIFIERS = ("panel", "optirank", "rank-lr", "ANrank-lr", "lr", "SCN", "rf")


def get(name: str) -> Classifier:
    """The classifier of that name."""
    if name not in CLASSIFIERS:
        raise ValueError(f"classifier {name!r} is not known: use one of {', '.join(CLASSIFIERS)}")
    return CLASSIFIERS[name]


def names_for(experiment: str) -> list[str]:
    """The classifiers that can take part in the "binary", "synthetic" or "whole" experiment."""
    return [name for name, one in CLASSIFIERS.items() if experiment in one.experiments]


def ordered(names: Iterable[str]) -> list[str]:
    """Names in the order of the registry, others behind."""
    known = list(CLASSIFIERS)
    return sorted(set(names), key=lambda n: (known.index(n) if n in known else len(known), n))


def choose(names: Sequence[str], problems: str) -> dict[str, list[str]]:
    """The classifiers of a run by "binary" and "whole", those of ``problems`` ("both": of each).

    Without names: for binary problems the paper's and the panel model, else all there are.
    """
    asked = (BINARY, WHOLE) if problems == "both" else (problems,)
    can = {one: names_for(one) for one in asked}
    for name in names:
        if not any(name in known for known in can.values()):
            known = ", ".join(ordered({*chain(*can.values())}))
            raise ValueError(
                f"classifier {name!r} is not known for --problems {problems}: use one of {known}"
            )
    default = {BINARY: list(PAPER_CLASSIFIERS), WHOLE: names_for(WHOLE)}
    return {one: [n for n in ordered(names or default[one]) if n in can[one]] for one in asked}
