"""The genes of a model: their weights, their relative ranks in samples, how stable they are."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._plots.common import (
    BLUE,
    DARK,
    ORANGE,
    axes_for,
    cells_between,
    column,
    finish,
    heat_map,
)
from optirank._plots.groups import group_width, name_groups

if TYPE_CHECKING:
    from anndata import AnnData
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from optirank.estimators.optirank_cv import OptirankClassifierCV
    from optirank.model.missing import BoundModel

_ROW = 0.19  # inches of a gene
_LETTER = 0.075  # inches of a letter of a class's name
_NAME = 20  # characters of a class's name on one line, where its genes leave room for more
_OVERLAP = "overlap of two folds (by chance)"


def panel(
    model: Any,
    adata: AnnData,
    groupby: str | None = None,
    *,
    n_genes: int = 6,
    max_samples: int = 400,
    layer: str | None = None,
    gene_column: str | None = None,
    max_missing: float = 0.5,
    ax: Axes | None = None,
    show: bool = False,
) -> Axes:
    """Relative ranks of each class's heaviest genes, one column per sample.

    A relative rank is the share of the class's reference genes that the gene is above. The names
    of genes that count for their class are followed by +, of those that count against it by −.
    Where all classes share one reference set, each gene is drawn once, with the class that it
    counts for most. Of a vote of pairs (k-TSP), the best pairs are drawn: 1 where the first gene
    is above the second, 0 where it is below.

    Parameters
    ----------
    model : a fitted model, or the file of one
    adata : AnnData
        The samples; of many, ``max_samples`` are drawn, evenly from each group.
    groupby : str, optional
        A column of ``obs`` to order the samples by; otherwise the model's labels.
    n_genes : int, default=6
        Genes of each class, the heaviest that are there.
    layer, gene_column, max_missing
        As in :func:`optirank.tl.annotate`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    show : bool, default=False
        Whether to show the figure at once.

    Returns
    -------
    matplotlib Axes
    """
    from optirank.datasets.anndata_objects import blocks_of, gene_names_of, profiles_of
    from optirank.datasets.profiles import gather
    from optirank.estimators.panel import link_offset
    from optirank.model.file import as_model
    from optirank.model.predict import Predictor

    names = gene_names_of(adata, gene_column)
    predictor = Predictor(as_model(model), names, max_missing=max_missing)
    if groupby is None:
        narrow, blocks = predictor.narrowed(), blocks_of(adata, layer, predictor.columns, 2048)
        groups = np.concatenate([narrow.predict(X).labels for _, X in blocks])
        groups = groups.astype(str).astype(object)
    else:
        groups = column(adata, groupby)
    order = [str(label) for label in predictor.classes]
    chosen, groups = _thinned(groups, order, max_samples)
    X = gather(profiles_of(adata, layer, gene_column), predictor.columns, np.sort(chosen))
    X = X[np.argsort(np.argsort(chosen))]  # read in the order of the file, drawn by group
    X = X.toarray() if hasattr(X, "toarray") else X
    shared = bool(link_offset(predictor.model))  # one reference set for all classes
    ranks, names, problems = _heaviest(predictor.bound, X, n_genes, shared)
    starts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    ends = np.append(starts[1:], len(groups))
    ax = axes_for(ax, group_width(len(starts)), 1.4 + _ROW * len(names))
    blocks = _blocks(problems)
    room = _LETTER * max(len(line) for *_, name in blocks for line in name.split("\n"))
    bar = "relative rank"
    heat_map(ax, ranks, names, [], cmap="viridis", limits=(0, 1), bar=bar, room=room)
    name_groups(ax, starts, ends, groups[starts])
    for edge in starts[1:]:
        ax.axvline(edge - 0.5, color="white", linewidth=1.5)
    _name_blocks(ax, blocks)
    ax.tick_params(axis="y", labelsize="small")
    return finish(ax, show)


def panel_weights(
    model: Any, *, n_genes: int = 40, ax: Axes | None = None, show: bool = False
) -> Axes:
    """Weights of the heaviest genes for each class; a dot where the gene is in its reference set.

    Two classes have one weight per gene, drawn as a bar: for the second class above 0, for the
    first below. In a vote of pairs (k-TSP), the two genes of a pair have opposite weights.

    Parameters
    ----------
    model : a fitted model, or the file of one
    n_genes : int, default=40
        Genes drawn, the heaviest of each class.
    ax, show
        As in :func:`panel`.

    Returns
    -------
    matplotlib Axes
    """
    from optirank.model.file import as_model
    from optirank.model.linear import linear_parts

    parts = linear_parts(as_model(model))
    coef = parts.coef
    if parts.votes:  # the lower gene of a pair counts as much as the higher one
        coef = coef - coef.sum(axis=1, keepdims=True) * parts.reference_weights
    weights = parts.average(coef.T).T
    shape = (parts.n_problems, parts.rows_per_problem, -1)
    inside = (parts.reference_weights > 0).reshape(shape).any(axis=1) & (not parts.votes)
    sizes = np.abs(weights)
    places = np.argsort(np.argsort(-sizes, axis=1, kind="stable"), axis=1)
    places = np.where(sizes > 0, places, sizes.shape[1]).min(axis=0)  # in the class it leads most
    kept = np.argsort(places, kind="stable")[: min(n_genes, sizes.any(axis=0).sum())]
    if parts.n_problems == 1:
        kept = kept[np.argsort(weights[0, kept], kind="stable")]
        return finish(_bars(ax, parts, weights[0, kept], inside[0, kept], kept), show)
    lead = weights[:, kept].argmax(axis=0)  # the class that a gene counts for most
    kept = kept[np.lexsort((-weights[lead, kept], lead))]
    values, dots = weights[:, kept].T, inside[:, kept].T
    ax = axes_for(ax, 2.6 + 0.5 * len(parts.classes), 1.4 + _ROW * len(kept))
    top = np.abs(values).max() or 1.0
    names, limits = parts.genes[kept], (-top, top)
    heat_map(ax, values, names, parts.classes, cmap="RdBu_r", limits=limits, bar="weight")
    cells_between(ax, *values.shape)
    rows, columns = np.nonzero(dots)
    ax.plot(columns, rows, linestyle="none", marker=".", markersize=4, color=DARK)
    title = _of(len(kept), len(parts.genes))
    title += "" if parts.votes else "; a dot: in the class's reference set"
    ax.set_title(title, fontsize="small", loc="right")
    ax.tick_params(axis="y", labelsize="small")
    return finish(ax, show)


def reference_stability(
    model: OptirankClassifierCV, *, n_genes: int = 40, ax: Axes | None = None, show: bool = False
) -> Axes:
    """How often each gene is in the reference set, over the models of the folds.

    Under each class stands the mean overlap of two folds' sets (Jaccard's: genes in both, of those
    in either), and what it would be by chance.

    Parameters
    ----------
    model : OptirankClassifierCV
        Fitted with ``refit="folds"``.
    n_genes : int, default=40
        Genes drawn, the most frequent.
    ax, show
        As in :func:`panel`.

    Returns
    -------
    matplotlib Axes
    """
    folds = getattr(model, "fold_estimators_", None)
    if not folds:
        raise ValueError(
            "only a search that keeps the models of its folds knows how stable they are: fit "
            "OptirankClassifierCV(..., refit='folds')"
        )
    n_problems = 1 if len(model.classes_) == 2 else len(model.classes_)
    sets = [one.reference_.reshape(n_problems, -1, one.n_features_in_).any(axis=1) for one in folds]
    sets = np.array(sets)  # folds x problems x genes
    shares = sets.mean(axis=0)
    names = getattr(model, "feature_names_in_", None)
    names = [f"x{j}" for j in range(shares.shape[1])] if names is None else names
    kept = np.argsort(-shares.sum(axis=0), kind="stable")[:n_genes]
    kept = kept[shares[:, kept].any(axis=0)]
    chosen = np.asarray(names, dtype=object)[kept]
    title = f"{_of(len(kept), int(shares.any(axis=0).sum()))} that were in a reference set"
    if n_problems == 1:
        ax = axes_for(ax, 4.8, 1.4 + _ROW * len(kept))
        ax.barh(range(len(kept)), shares[0, kept] * len(folds), color=BLUE, height=0.75)
        ax.set_yticks(range(len(kept)), chosen)
        ax.set_ylim(len(kept) - 0.3, -0.7)
        ax.set_xlabel(f"folds, of {len(folds)}\n{_OVERLAP}: {_overlap(sets[:, 0])}")
        ax.set_xticks(range(len(folds) + 1))
        ax.spines[["top", "right"]].set_visible(False)
    else:
        titles = [f"{label}\n{_overlap(sets[:, k])}" for k, label in enumerate(model.classes_)]
        ax = axes_for(ax, 2.8 + 0.6 * n_problems, 2.0 + _ROW * len(kept))
        shown, bar = shares[:, kept].T, f"share of {len(folds)} folds"
        heat_map(ax, shown, chosen, titles, cmap="Greens", limits=(0, 1), bar=bar)
        cells_between(ax, *shown.shape)
        ax.set_xlabel(f"class, {_OVERLAP}")
    ax.set_title(title, fontsize="medium")
    ax.tick_params(axis="y", labelsize="small", length=0)
    return finish(ax, show)


def _bars(ax: Axes | None, parts: Any, weights: NDArray, inside: NDArray, kept: NDArray) -> Axes:
    ax = axes_for(ax, 4.8, 1.4 + _ROW * len(kept))
    first, second = parts.classes
    ax.barh(range(len(kept)), weights, color=np.where(weights > 0, ORANGE, BLUE), height=0.75)
    ax.plot([0] * inside.sum(), np.flatnonzero(inside), ".", color=DARK, markersize=5)
    ax.set_yticks(range(len(kept)), parts.genes[kept], fontsize="small")
    ax.set_ylim(-0.7, len(kept) - 0.3)
    ax.axvline(0, color=DARK, linewidth=0.8)
    ax.set_xlabel(f"weight: for {first} below 0, for {second} above")
    title = _of(len(kept), len(parts.genes))
    title += "" if parts.votes else "; a dot: in the reference set"
    ax.set_title(title, fontsize="small", loc="right")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _of(shown: int, total: int) -> str:
    return f"{total} genes" if shown == total else f"{shown} of {total} genes"


def _overlap(sets: NDArray) -> str:
    """Mean Jaccard overlap of two of the sets, and the one expected of random sets."""
    pairs = [(a, b) for k, a in enumerate(sets) for b in sets[k + 1 :] if (a | b).any()]
    if not pairs:
        return "one fold"
    found = np.mean([(a & b).sum() / (a | b).sum() for a, b in pairs])
    share = sets.sum(axis=1).mean() / sets.shape[1]
    return f"{found:.2f} ({share / (2 - share):.2f})"


def _thinned(groups: NDArray, order: list[str], limit: int) -> tuple[NDArray, NDArray]:
    """Positions of samples by group, the model's classes first, evenly thinned to a number."""
    labels = sorted({one for one in groups if one is not None}, key=str)
    labels.sort(key=lambda one: order.index(str(one)) if str(one) in order else len(order))
    members = [np.flatnonzero(groups == label) for label in labels]
    share = min(1.0, limit / max(1, sum(map(len, members))))
    chosen = [
        one[np.linspace(0, len(one) - 1, max(1, round(share * len(one)))).astype(int)]
        for one in members
    ]
    if not chosen:
        raise ValueError("no sample is in a group")
    positions = np.concatenate(chosen)
    return positions, groups[positions]


def _heaviest(
    bound: BoundModel, X: NDArray, n_genes: int, shared: bool
) -> tuple[NDArray, list[str], list[str]]:
    """Relative ranks (genes x samples) of each problem's heaviest genes, their names, classes.

    With ``shared`` a gene is only of the class that it counts for most.
    """
    from optirank.ranks.definition import check_ties
    from optirank.ranks.relative import weighted_ranks

    parts = bound.parts
    present = parts.genes[bound.match.present]
    leads = parts.average(bound.rows.coef.T).argmax(axis=1)
    ranks, names, problems = [], [], []
    for k, label in enumerate(parts.problem_classes):
        rows = np.arange(k * parts.rows_per_problem, (k + 1) * parts.rows_per_problem)
        weights = bound.rows.coef[rows].T
        if shared:
            weights = np.where((leads == k)[:, None], weights, 0.0)
        genes = np.argsort(-np.abs(weights).max(axis=1), kind="stable")[:n_genes]
        genes = genes[weights[genes].any(axis=1)]
        lead = np.abs(weights[genes]).argmax(axis=1)
        signed = weights[genes, lead]
        for j in np.argsort(-signed, kind="stable"):
            row, gene = rows[lead[j]], genes[[j]]
            found = weighted_ranks(X, bound.rows.gamma[row], ties=parts.ties, genes=gene)
            name = present[gene[0]]
            if parts.votes:  # a share: 1 above the other gene of the pair, 0 below
                found = found + check_ties(parts.ties)[1]
                name = f"{name} > {present[bound.rows.gamma[row].argmax()]}"
            ranks.append(found[:, 0])
            names.append(f"{name} {'+' if signed[j] > 0 else '−'}")
            problems.append(str(label))
    return np.array(ranks), names, problems


def _blocks(problems: list[str]) -> list[tuple[int, int, str]]:
    """Where the genes of each class begin and end, and its name, on several lines where long."""
    starts = [k for k, one in enumerate(problems) if not k or problems[k - 1] != one]
    blocks = []
    for start, end in zip(starts, [*starts[1:], len(problems)], strict=True):
        lines = textwrap.wrap(problems[start], _NAME)
        name = "\n".join(lines) if len(lines) <= end - start else problems[start]
        blocks.append((start, end, name))
    return blocks


def _name_blocks(ax: Axes, blocks: list[tuple[int, int, str]]) -> None:
    """Lines between the classes' genes, and their names on the right."""
    for start, end, name in blocks:
        if start:
            ax.axhline(start - 0.5, color="white", linewidth=1.5)
        ax.annotate(
            name,
            (1, (start + end - 1) / 2),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
            annotation_clip=False,
        )
