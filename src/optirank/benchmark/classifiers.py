"""The classifiers of the experiments: one entry each, with everything they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

    from optirank.tuning.family import Family

PENALTIES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
REFERENCE_SIZES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
REAL, SYNTHETIC, WHOLE = "real", "synthetic", "whole"
LOG, COUNTS, MEASURED = "log", "counts", "measured"


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """One classifier of the experiments.

    Parameters
    ----------
    name : how it is called in options, tables and figures.
    words : what it is, to follow "NAME is" on a page.
    estimator : the class, or where it is ("module:class"); None for a tool that has a script only.
    family : the family of `optirank.tuning` (or where it is) that fits the whole grid in chains;
        without one, each setting is fitted by the estimator on its own.
    grid : the values of each parameter, those of the paper; a profile may replace them. On whole
        tasks, parameters with a single value are set, the others keep the estimator's defaults.
    experiments : where it can take part: "real" (binary problems of real tasks), "synthetic" (the
        synthetic experiment), "whole" (all classes of a real task at once).
    script : what runs it on whole tasks, in `optirank.benchmark.tools`.
    package : the package that the estimator is of, whose version is stored with results on whole
        tasks.
    peer : for a tool of others: its name in ``--peer NAME=PYTHON``.
    cost : (a, b): the CPU seconds of a unit are about a + b n for n training samples; used only
        to estimate the time left.
    colour, marker : how figures show it; a marker of None draws a dashed line, as for a ceiling.
    needs : "auxiliary": a second data set; "truth": the true reference set. Where there is none,
        the classifier is left out.
    sees : the values that an estimator without a family is given: "log" values; "counts" where all
        data are counts, else log values; "measured": the values as measured, as for ranks. On whole
        tasks this holds for every estimator.
    compare_genes : whether the tables compare its number of genes with that of others.
    genes : the fitted attribute whose non-zero entries (of any class) are the genes needed.
    missing_genes : whether it reports genes that a query lacks: "yes", "no", or in words.
    """

    name: str
    words: str
    estimator: str | type | None = None
    family: str | type | None = None
    grid: dict[str, tuple] = field(default_factory=dict)
    experiments: tuple[str, ...] = (REAL, SYNTHETIC, WHOLE)
    script: str = "run_estimator.py"
    package: str = "optirank"
    peer: str | None = None
    cost: tuple[float, float] = (1.0, 0.001)
    colour: str = "#777777"
    marker: str | None = "h"
    needs: str | None = None
    sees: str = LOG
    compare_genes: bool = False
    genes: str = "genes_"
    missing_genes: str = "no"

    def make(self, **params) -> ClassifierMixin:
        """The estimator with these parameters."""
        return _find(self.estimator)(**params)

    def make_family(self, grid: dict[str, tuple], **options) -> Family:
        """The family over a grid: its fields are the parameters in the plural, ``l1s`` for l1."""
        return _find(self.family)(**{f"{key}s": values for key, values in grid.items()}, **options)

    def n_genes(self, model: ClassifierMixin) -> int:
        """Number of genes a fitted estimator needs."""
        return int(np.count_nonzero(np.atleast_2d(getattr(model, self.genes)).any(axis=0)))

    def options(self) -> dict[str, object]:
        """What the script that runs it on whole tasks has to know."""
        if self.estimator is None:
            return {}
        where = self.estimator
        if not isinstance(where, str):
            where = f"{where.__module__}:{where.__qualname__}"
        params = {name: values[0] for name, values in self.grid.items() if len(values) == 1}
        same = {"sees": self.sees, "genes": self.genes, "package": self.package}
        return {"estimator": where, "params": params, **same}

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
            experiments=(REAL, WHOLE),
            cost=(1.5, 0.002),
            colour="#E69F00",
            marker="v",
            sees=COUNTS,
        ),
        Classifier(
            name="lr",
            words="logistic regression on the expression values",
            estimator="optirank.estimators.logistic:ElasticNetLogisticRegression",
            family="optirank.tuning.families:LogisticFamily",
            grid=_ELASTIC_NET,
            experiments=(REAL, SYNTHETIC),
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
            sees=MEASURED,
            compare_genes=True,
            missing_genes="yes",
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
            sees=MEASURED,
            missing_genes="yes",
        ),
        Classifier(
            name="rf",
            words="a random forest on the expression values",
            estimator="sklearn.ensemble:RandomForestClassifier",
            package="scikit-learn",
            grid={"n_estimators": (300,), "class_weight": ("balanced",)},
            experiments=(REAL, WHOLE),
            cost=(0.6, 0.001),
            colour="#56B4E9",
            marker="X",
            genes="feature_importances_",
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
        Classifier(
            name="optirank train",
            words="the command `optirank train` with a budget of 10 seconds; its times include "
            "reading the files",
            experiments=(WHOLE,),
            script="run_train.py",
            cost=(13.0, 0.001),
            colour="#8B2500",
            marker="*",
            missing_genes="yes",
        ),
        Classifier(
            name="k-TSP",
            words="top scoring pairs: a vote of pairs of genes",
            estimator="optirank:TopScoringPairsClassifier",
            experiments=(REAL, WHOLE),
            cost=(1.0, 0.002),
            colour="#882255",
            marker="<",
            sees=MEASURED,
            compare_genes=True,
            missing_genes="yes",
        ),
        Classifier(
            name="lr-log",
            words="scikit-learn's logistic regression (balanced) on log values",
            estimator="sklearn.linear_model:LogisticRegression",
            package="scikit-learn",
            grid={"class_weight": ("balanced",), "max_iter": (1000,)},
            experiments=(REAL, WHOLE),
            cost=(0.3, 0.002),
            colour="#117733",
            marker="d",
            genes="coef_",
        ),
        Classifier(
            name="lr-ranks",
            words="scikit-learn's logistic regression (balanced) on ranks divided by the number of "
            "genes",
            estimator="optirank.benchmark.baselines:RankedLogisticRegression",
            package="scikit-learn",
            experiments=(REAL, WHOLE),
            cost=(0.3, 0.002),
            colour="#332288",
            marker="p",
            sees=MEASURED,
        ),
        Classifier(
            name="svm-ranks",
            words="scikit-learn's linear support vector machine (balanced) on ranks divided by the "
            "number of genes",
            estimator="optirank.benchmark.baselines:RankedLinearSVC",
            package="scikit-learn",
            experiments=(REAL, WHOLE),
            cost=(0.3, 0.002),
            colour="#6699CC",
            marker=">",
            sees=MEASURED,
        ),
        Classifier(
            name="centroid",
            words="the nearest class centroid by Spearman correlation",
            estimator="optirank.benchmark.baselines:SpearmanCentroid",
            experiments=(REAL, WHOLE),
            cost=(0.1, 0.001),
            colour="#999933",
            marker="H",
            sees=MEASURED,
        ),
        Classifier(
            name="CellTypist",
            words="CellTypist, logistic regression on standardised log values",
            experiments=(WHOLE,),
            script="run_celltypist.py",
            peer="celltypist",
            cost=(1.0, 0.02),
            colour="#DDCC77",
            marker="8",
            missing_genes="only how many it uses",
        ),
        Classifier(
            name="SingleR",
            words="SingleR (the Python package singler), correlation with reference samples over "
            "marker genes",
            experiments=(WHOLE,),
            script="run_singler.py",
            peer="singler",
            cost=(0.1, 0.002),
            colour="#44AA99",
            marker="P",
        ),
        Classifier(
            name="pySingleCellNet",
            words="pySingleCellNet, the random forest on pairs of genes by its authors",
            experiments=(WHOLE,),
            script="run_pysinglecellnet.py",
            peer="pysinglecellnet",
            cost=(2.0, 0.005),
            colour="#AA4499",
            marker="h",
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
    """The classifiers that can take part in the "real", "synthetic" or "whole" experiment."""
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
