"""`Model`: what training makes, and all that prediction needs, in one object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optirank._util.words import counted, some
from optirank.model.card import Card
from optirank.model.explanation import explain, export_table, panel_table
from optirank.model.likeness import FurtherGenes
from optirank.model.panels import References, SizedPanel
from optirank.model.tree import Tree
from optirank.ranks.scoring import best_class

if TYPE_CHECKING:
    from optirank.data.genes import GeneMatch

_LINEAR = (
    "PanelClassifier, OptirankClassifier, OptirankClassifierCV, RankLogisticRegression "
    "and AnovaRankLogisticRegression"
)


class MissingGenesError(ValueError):
    """The data have too few of a model's genes."""


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A trained classifier on ranks, with its genes, its confidence and its card.

    `optirank.load`, `optirank.tl.train` and the command ``optirank train`` make one;
    :meth:`from_estimator` makes one of a fitted scikit-learn estimator, and
    `optirank.save` writes it to a file.

    Attributes
    ----------
    classes : array
        The labels.
    n_genes : int
        Genes of the panel that the model uses.
    panels : mapping of int to SizedPanel
        The nested panels by size, each with its own weights; the model uses that of
        ``n_genes``.
    n_features : int
        Columns of the training data.
    card : Card
        What is known of the model: data, accuracy, how it was made.
    further : FurtherGenes or None
        Mean ranks of the classes over genes outside the panel, by which labels are
        checked; None where the training data had no such genes.
    digest : str
        SHA-256 of the file that the model was read from; "" if it was not.
    tree : Tree, optional
        Coarser labels; its leaves are the classes.
    terms : mapping of str to str
        The id of each label that has one, such as CL:0000236 for "B cell".

    Examples
    --------
    >>> import optirank
    >>> model = optirank.load("pancreas-human")
    >>> model.n_genes, len(model.genes) == model.n_genes
    (100, True)
    """

    classes: NDArray
    n_genes: int
    panels: Mapping[int, SizedPanel]
    n_features: int
    card: Card = field(default_factory=Card)
    further: FurtherGenes | None = None
    digest: str = ""
    tree: Tree | None = None
    terms: Mapping[str, str] = field(default_factory=dict)

    # Methods that stand in a module of their own
    explain = explain
    table = panel_table
    export = export_table

    def __post_init__(self) -> None:
        n_classes = len(self.classes)
        n_rows = 1 if n_classes == 2 else n_classes
        if len(set(self.classes.tolist())) < max(2, n_classes):
            raise ValueError("the classes are not two or more distinct labels")
        leaves = {str(label) for label in self.classes}
        if self.tree is not None and set(self.tree.leaves) != leaves:
            raise ValueError(
                "the leaves of the tree are not the classes: "
                f"{some(leaves.symmetric_difference(self.tree.leaves))} are on one "
                "side alone"
            )
        if self.n_genes not in self.panels:
            raise ValueError(f"the model has no panel of {self.n_genes} genes")
        for size, panel in self.panels.items():
            if panel.coef.shape != (n_rows, size):
                raise ValueError(
                    f"weights of shape {panel.coef.shape} do not fit {n_classes} "
                    f"classes and {size} genes"
                )
            if panel.columns.min() < 0 or panel.columns.max() >= self.n_features:
                raise ValueError("a gene's column is not one of the training data")

    def __repr__(self) -> str:
        name = f" {self.card.name!r}" if self.card.name else ""
        return (
            f"<optirank.Model{name}: {len(self.classes)} classes, {self.n_genes} genes>"
        )

    @classmethod
    def from_estimator(
        cls, estimator: Any, genes: Iterable[str] | None = None
    ) -> Model:
        """The model of a fitted linear classifier on ranks.

        Parameters
        ----------
        estimator : PanelClassifier, OptirankClassifier, RankLogisticRegression or
            AnovaRankLogisticRegression; or a search whose best estimator is one.
        genes : the names of the training data's columns; by default those that the
            estimator saw, else ``x0``, ``x1``, ...
        """
        fitted = getattr(estimator, "best_estimator_", estimator)
        if not hasattr(fitted, "reference_weights_"):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(fitted)
            raise TypeError(
                f"a {type(fitted).__name__} has no weights on ranks: this works for "
                f"{_LINEAR}. Fit one of these, or give the last step of a Pipeline"
            )
        unnamed = [f"x{column}" for column in range(fitted.n_features_in_)]
        seen = getattr(fitted, "feature_names_in_", unnamed)
        named = seen if genes is None else genes
        names = np.array([str(name) for name in named], dtype=object)
        if len(names) != fitted.n_features_in_:
            raise ValueError(
                f"{len(names)} gene names for an estimator that was fitted on "
                f"{fitted.n_features_in_} columns: give one name per column"
            )
        if hasattr(fitted, "panel_"):
            panels = {
                size: SizedPanel(names[panel.genes], panel.genes, panel.coef)
                for size, panel in fitted.path_.items()
            }
            n_genes = len(fitted.panel_)
        else:
            panel = _reference_panel(fitted, names)
            n_genes = len(panel.genes)
            panels = {n_genes: panel}
        return cls(
            classes=np.asarray(fitted.classes_),
            n_genes=n_genes,
            panels=panels,
            n_features=len(names),
            card=Card(method=type(fitted).__name__),
        )

    @property
    def panel(self) -> SizedPanel:
        """The panel that the model uses."""
        return self.panels[self.n_genes]

    @property
    def genes(self) -> NDArray[np.object_]:
        """Names of the genes that the model needs."""
        return self.panel.genes

    @property
    def votes(self) -> bool:
        """Whether the genes vote in pairs: a panel model, without intercept."""
        return self.panel.references is None

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels that a sample can get: the classes, and the coarser ones."""
        return tuple(map(str, self.classes)) if self.tree is None else self.tree.labels

    @property
    def score_classes(self) -> NDArray:
        """The class that each score speaks for: the second of two, else every class."""
        return self.classes[-len(self.panel.coef) :]

    def decision_function(
        self, X: Any, genes: Iterable[str] | None = None
    ) -> NDArray[np.float64]:
        """Scores of the samples of X: (n,) for two classes, else (n, classes).

        Parameters
        ----------
        X : data frame, array or sparse matrix of samples x genes
            The genes of a data frame are found by name. An array has the columns of the
            training data, or its columns are named by ``genes``.
        genes : the names of X's columns, where X does not have them.
        """
        X, match = self.align(X, genes)
        return self.panel.scores(X, match.present, match.columns[match.present])

    def predict(self, X: Any, genes: Iterable[str] | None = None) -> NDArray:
        """The label of each sample of X; parameters as in :meth:`decision_function`."""
        return self.classes[best_class(self.decision_function(X, genes))]

    def predict_proba(
        self, X: Any, genes: Iterable[str] | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, classes), calibrated where the model has a calibration."""
        return self.panel.probabilities(self.decision_function(X, genes))

    def smaller(self, n_genes: int) -> Model:
        """The model of a smaller panel of the path, without training."""
        if n_genes not in self.panels:
            raise ValueError(
                f"there is no panel of {n_genes} genes in the model: there are panels "
                f"of {some(sorted(self.panels), 20)} genes"
            )
        if n_genes == self.n_genes:
            return self
        panels = {size: panel for size, panel in self.panels.items() if size <= n_genes}
        points = tuple(point for point in self.card.curve if point[0] <= n_genes)
        accuracy, error = next(
            (figures for size, *figures in points if size == n_genes), (None, None)
        )
        # What the curve does not say of the smaller panel is not known
        card = replace(
            self.card,
            curve=points,
            balanced_accuracy=accuracy,
            standard_error=error,
            interval=(),
            held_out={},
            judged=(),
            baselines={},
        )
        return replace(self, n_genes=n_genes, panels=panels, card=card, digest="")

    def find_genes(self, names: Iterable[str]) -> GeneMatch:
        """Where the genes of the panel are among those of some data.

        A `MissingGenesError` where too few are there to tell a class, a `DataError`
        where most are there in another case only.
        """
        from optirank.data.genes import check_case, match_genes  # loads pandas

        match = match_genes(self.genes.tolist(), names)
        undecided = self.score_classes[self.panel.undecided(match.present)]
        if not len(undecided):
            check_case(match)
            return match
        n_present = int(match.present.sum())
        remedy = (
            "check that the gene names are of the same kind as the model's, or name "
            "another column (gene_column=)"
        )
        if n_present:
            remedy += ", or train again on the genes that are present (query=)"
        classes = counted(len(undecided), "class", "classes")
        raise MissingGenesError(
            f"{n_present or 'none'} of the model's {len(match.genes)} genes are "
            f"present, too few for {classes}: {some(map(str, undecided))}. "
            f"Missing genes: {some(match.missing)}. Please {remedy}."
        )

    def align(
        self, X: Any, genes: Iterable[str] | None = None
    ) -> tuple[Any, GeneMatch]:
        """X as an array, a CSR or a CSC matrix, and where it has the panel's genes."""
        from optirank.data.genes import GeneMatch  # loads pandas

        if hasattr(X, "obs_names"):
            raise TypeError(
                "an AnnData was given: use optirank.tl.annotate(adata, model), or give "
                "adata.to_df()"
            )
        if hasattr(X, "columns"):
            genes = map(str, X.columns) if genes is None else genes
            X = X.to_numpy()
        if hasattr(X, "tocsr"):
            X = X if X.format in ("csr", "csc") else X.tocsr()
        else:
            X = np.asarray(X)
            X = X if X.dtype.kind in "biuf" else X.astype(np.float64)
        if genes is None:
            match = GeneMatch(tuple(self.genes.tolist()), self.panel.columns)
            n_columns, whose = self.n_features, "the training data"
        else:
            names = list(genes)
            match = self.find_genes(names)
            n_columns, whose = len(names), "the names of genes"
        if X.ndim != 2 or X.shape[1] != n_columns:
            raise ValueError(
                f"X has shape {X.shape}, but {whose} have {n_columns} columns: give a "
                "data frame, or one name per column (genes=)"
            )
        return X, match


def _reference_panel(fitted: Any, names: NDArray[np.object_]) -> SizedPanel:
    """The genes and weights of a classifier with reference sets."""
    coef = np.asarray(fitted.coef_)
    gamma = np.asarray(fitted.reference_weights_)
    columns = np.flatnonzero(((gamma > 0) | (coef != 0)).any(axis=0))
    intercept = np.asarray(fitted.intercept_)
    references = References(gamma[:, columns], intercept, fitted.ties)
    return SizedPanel(names[columns], columns, coef[:, columns], references)
