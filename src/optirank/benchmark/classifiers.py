"""The classifiers of the paper's comparison, by name, with their grids and numbers of genes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import ClassifierMixin

    from optirank.tuning.family import Family

PENALTIES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
REFERENCE_SIZES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class Classifier:
    """One classifier: how to make it, what to tune, and which genes a fitted one needs."""

    name: str
    make: Callable[..., ClassifierMixin]
    grid: dict[str, tuple] = field(default_factory=dict)
    family: Callable[..., Family] | None = None  # fits the whole grid in chains, where there is one
    genes: Callable[[ClassifierMixin], NDArray] = lambda model: model.genes_

    def n_genes(self, model: ClassifierMixin) -> int:
        """Number of genes a fitted model needs."""
        return int(np.count_nonzero(self.genes(model)))

    @property
    def n_settings(self) -> int:
        """Size of the grid."""
        return int(np.prod([len(values) for values in self.grid.values()]))


def _optirank(**params) -> ClassifierMixin:
    from optirank.estimators.optirank import OptirankClassifier

    return OptirankClassifier(**params)


def _optirank_family(grid: dict[str, tuple], **options) -> Family:
    from optirank.tuning.families import OptirankFamily

    return OptirankFamily(grid["l1"], grid["l2"], n_references=grid["n_reference"], **options)


def _anova(**params) -> ClassifierMixin:
    from optirank.estimators.anova_rank import AnovaRankLogisticRegression

    return AnovaRankLogisticRegression(**params)


def _anova_family(grid: dict[str, tuple], **options) -> Family:
    from optirank.tuning.families import AnovaFamily

    return AnovaFamily(grid["l1"], grid["l2"], n_references=grid["n_reference"], **options)


def _rank_lr(**params) -> ClassifierMixin:
    from optirank.estimators.rank_logistic import RankLogisticRegression

    return RankLogisticRegression(**params)


def _rank_lr_family(grid: dict[str, tuple], **options) -> Family:
    from optirank.tuning.families import RankFamily

    return RankFamily(grid["l1"], grid["l2"], **options)


def _lr(**params) -> ClassifierMixin:
    from optirank.estimators.logistic import ElasticNetLogisticRegression

    return ElasticNetLogisticRegression(**params)


def _lr_family(grid: dict[str, tuple], **options) -> Family:
    from optirank.tuning.families import LogisticFamily

    return LogisticFamily(grid["l1"], grid["l2"], **options)


def _rf(n_estimators: int = 300, **params) -> ClassifierMixin:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators, class_weight="balanced", **params)


def _scn(**params) -> ClassifierMixin:
    from optirank.estimators.singlecellnet import SingleCellNetClassifier

    return SingleCellNetClassifier(**params)


_ELASTIC_NET = {"l1": PENALTIES, "l2": PENALTIES}
_WITH_REFERENCE = {"n_reference": REFERENCE_SIZES, **_ELASTIC_NET}

CLASSIFIERS: dict[str, Classifier] = {
    classifier.name: classifier
    for classifier in (
        Classifier("ANrank-lr", _anova, _WITH_REFERENCE, _anova_family),
        Classifier("SCN", _scn),
        Classifier("lr", _lr, _ELASTIC_NET, _lr_family),
        Classifier("optirank", _optirank, _WITH_REFERENCE, _optirank_family),
        Classifier("rank-lr", _rank_lr, _ELASTIC_NET, _rank_lr_family),
        Classifier("rf", _rf, genes=lambda model: model.feature_importances_ > 0),
    )
}
"""All six, in the order of the paper's tables. An ``lr`` sees log1p(CPM) as it is."""


def get(name: str) -> Classifier:
    """The classifier of that name."""
    if name not in CLASSIFIERS:
        raise ValueError(f"classifier {name!r} is not known: use one of {', '.join(CLASSIFIERS)}")
    return CLASSIFIERS[name]
