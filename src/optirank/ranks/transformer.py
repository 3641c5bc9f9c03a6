"""Ranks relative to a given reference set, as a scikit-learn transformer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from optirank._util.words import some
from optirank.ranks.scoring import check_ties, weighted_ranks

if TYPE_CHECKING:
    from sklearn.utils import Tags


class ReferenceRankTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace each gene's value by its rank among the reference genes of the same
    sample.

    The rank of gene j is ``sum_k (1[x_j > x_k] + t * 1[x_j = x_k]) - offset`` over the
    reference genes k, with ``t = offset = 1/2, 0, 1`` for average, minimum and maximum
    ranks. A strictly increasing map of a sample's values changes no rank.

    Parameters
    ----------
    reference : None, mask, positions or gene names, default=None
        The reference genes: all of them (None), a boolean mask with one entry per gene,
        distinct positions, or names, which need a data frame at ``fit``.
    ties : {"average", "min", "max"}, default="average"
        The rank of tied values.
    scale : bool, default=True
        Divide the ranks by the size of the reference set.

    Attributes
    ----------
    reference_ : boolean mask of the reference genes.
    n_features_in_ : number of genes at ``fit``.
    feature_names_in_ : gene names, where ``fit`` was given a data frame.

    Examples
    --------
    >>> from optirank import ReferenceRankTransformer
    >>> ranks = ReferenceRankTransformer(reference=[0, 2], scale=False)
    >>> ranks.fit_transform([[1.0, 7.0, 5.0]])
    array([[0. , 1.5, 1. ]])
    """

    def __init__(
        self,
        reference: ArrayLike | None = None,
        *,
        ties: str = "average",
        scale: bool = True,
    ) -> None:
        self.reference = reference
        self.ties = ties
        self.scale = scale

    n_features_in_: int

    def fit(self, X: Any, y: Any = None) -> ReferenceRankTransformer:
        """Check the options and find the reference genes among those of ``X``; ``y`` is
        ignored.
        """
        check_ties(self.ties)
        validate_data(self, X, accept_sparse=("csr", "csc"))
        n_genes = self.n_features_in_
        names = getattr(self, "feature_names_in_", None)
        positions = reference_positions(self.reference, n_genes, names)
        if not positions.size:
            raise ValueError(
                "reference is empty: give at least one gene, or None for all genes"
            )
        self.reference_ = np.isin(np.arange(n_genes), positions)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the ranks of all genes relative to the reference set, as a
        dense array.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), reset=False)
        return weighted_ranks(X, self.reference_, ties=self.ties, scale=self.scale)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # float64 always
        return tags


def reference_positions(
    reference: ArrayLike | None,
    n_genes: int,
    names: NDArray | None,
    what: str = "reference",
) -> NDArray[np.intp]:
    """Positions of a reference set given as None (all genes), a mask, positions or gene
    names.

    ``names`` are the genes' names where the data have them, ``what`` the argument's
    name in error messages.
    """
    if reference is None:
        return np.arange(n_genes)
    given = np.asarray(reference)
    if given.ndim == 1 and given.size and all(isinstance(gene, str) for gene in given):
        given = _positions_of(given.tolist(), names, what)
    if given.dtype == bool and given.shape == (n_genes,):
        return np.flatnonzero(given)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(
            f"{what} has shape {given.shape} and dtype {given.dtype}: give a boolean "
            f"mask of the {n_genes} genes, positions or gene names"
        )
    wrong = given[(given < 0) | (given >= n_genes)]
    if wrong.size:
        raise ValueError(
            f"{what} has {wrong.size} positions out of range, such as {wrong[0]}: X "
            f"has {n_genes} genes, so positions run from 0 to {n_genes - 1}"
        )
    values, counts = np.unique(given, return_counts=True)
    if values.size < given.size:
        raise ValueError(
            f"{what} names {np.count_nonzero(counts > 1)} positions more than once, "
            f"such as {values[counts > 1][0]}: give each once, or a boolean mask"
        )
    return given.astype(np.intp)


def _positions_of(wanted: list[str], names: NDArray | None, what: str) -> NDArray:
    """Positions of the genes called ``wanted``."""
    if names is None:
        raise ValueError(
            f"{what} gives gene names ({some(wanted, 5, quoted=True)}) but X has none: "
            "fit on a data frame whose columns are the genes, or give positions or a "
            "mask"
        )
    columns = Counter(names)
    wrong = [gene for gene in wanted if columns[gene] != 1]
    if wrong:
        kind = "among" if columns[wrong[0]] == 0 else "once among"
        raise ValueError(
            f"{len(wrong)} of the {len(wanted)} genes of {what} are not {kind} the "
            f"{len(names)} of X: {some(wrong, 5, quoted=True)}; check that both use "
            "the same kind of gene name, or leave these out"
        )
    where = {name: j for j, name in enumerate(names)}
    return np.array([where[name] for name in wanted])
