"""The genes of a model: their weights, and their relative ranks in samples."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.arrays import as_dense
from optirank.pl.axes import (
    BLUE,
    DARK,
    ORANGE,
    axes_for,
    cells_between,
    column,
    finish,
    heat_map,
    short,
    slant,
)
from optirank.ranks.relative import weighted_ranks
from optirank.ranks.scoring import best_class

if TYPE_CHECKING:
    from anndata import AnnData
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from optirank.model import Predictor
else:  # typing.get_type_hints works without importing them
    AnnData = Axes = NDArray = Any

_ROW = 0.19  # inches of a gene
_BLOCK_SAMPLES = 4096  # labelled together


def panel(
    model: Any,
    adata: AnnData,
    groupby: str | None = None,
    *,
    n_genes: int = 6,
    max_samples: int = 400,
    layer: str | None = None,
    gene_column: str | None = None,
    ax: Axes | None = None,
    show: bool = False,
) -> Axes:
    """Relative ranks of each class's heaviest genes, one column per sample.

    A relative rank is the share of the panel's genes (of the reference genes, where the
    classes have reference sets of their own) that the gene is above. The names of genes
    that count for their class are followed by +, of those that count against it by −.
    Where all classes share one reference set, each gene is drawn once, with the class
    that it counts for most.

    Parameters
    ----------
    model : a fitted model, or the file of one
    adata : AnnData
        The samples; of many, ``max_samples`` are drawn, evenly from each group.
    groupby : str, optional
        A column of ``obs`` to order the samples by; otherwise the model's labels.
    n_genes : int, default=6
        Genes of each class, the heaviest that are there.
    layer, gene_column
        As in :func:`optirank.tl.annotate`.
    ax, show
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    from optirank.io.blocks import blocks, unique_genes
    from optirank.io.data import gene_names
    from optirank.io.objects import profiles_of
    from optirank.model.file import as_model

    profiles = unique_genes(profiles_of(adata, layer, gene_column))
    genes = gene_names(profiles)
    predictor = as_model(model).bind(genes.tolist())
    used = genes[predictor.columns]
    groups = (
        _labels(predictor, profiles, used)
        if groupby is None
        else column(adata, groupby)
    )
    classes = [str(label) for label in predictor.model.classes]
    chosen, groups = _thinned(groups, classes, max_samples)
    X = as_dense(next(blocks(profiles, used, len(chosen), np.sort(chosen))))
    X = X[np.argsort(np.argsort(chosen))]  # read in the file's order, drawn by group
    ranks, names, leading = _heaviest(predictor, X, n_genes)
    starts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    ends = np.append(starts[1:], len(groups))
    ax = axes_for(ax, max(7.5, 3.5 + 0.25 * len(starts)), 1.6 + _ROW * len(names))
    heat_map(ax, ranks, names, [], cmap="viridis", limits=(0, 1), bar="relative rank")
    ax.set_xticks((starts + ends - 1) / 2, [short(name) for name in groups[starts]])
    slant(ax)
    for edge in starts[1:]:
        ax.axvline(edge - 0.5, color="white", linewidth=1.5)
    _name_blocks(ax, leading)
    ax.tick_params(axis="y", labelsize="small")
    return finish(ax, show)


def panel_weights(
    model: Any, *, n_genes: int = 40, ax: Axes | None = None, show: bool = False
) -> Axes:
    """Weights of the heaviest genes for each class.

    Two classes have one weight per gene, drawn as a bar: for the second class above 0,
    for the first below. Of the paper's classifiers, a dot marks the genes in the
    reference set of a class; of a panel model every gene is, and no dots are drawn.

    Parameters
    ----------
    model : a fitted model, or the file of one
    n_genes : int, default=40
        Genes drawn, the heaviest of each class.
    ax, show
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    from optirank.model.file import as_model

    fitted = as_model(model)
    weights = fitted.panel.coef
    references = fitted.panel.references
    inside = np.zeros(weights.shape, dtype=bool)
    if references is not None:
        inside = references.weights > 0
    kept = _heaviest_of_each_class(weights, n_genes)
    if len(weights) == 1:
        kept = kept[np.argsort(weights[0, kept], kind="stable")]
        ax = axes_for(ax, 4.8, 1.4 + _ROW * len(kept))
        names = fitted.genes[kept]
        _bars(ax, weights[0, kept], inside[0, kept], names, fitted.classes)
    else:
        lead = weights[:, kept].argmax(axis=0)  # the class that a gene counts for most
        kept = kept[np.lexsort((-weights[lead, kept], lead))]
        values = weights[:, kept].T
        ax = axes_for(ax, 2.6 + 0.5 * len(fitted.classes), 1.4 + _ROW * len(kept))
        top = float(np.abs(values).max()) or 1.0
        heat_map(
            ax,
            values,
            fitted.genes[kept].tolist(),
            [short(name) for name in fitted.classes],
            cmap="RdBu_r",
            limits=(-top, top),
            bar="weight",
        )
        cells_between(ax, *values.shape)
        rows, columns = np.nonzero(inside[:, kept].T)
        ax.plot(columns, rows, linestyle="none", marker=".", markersize=4, color=DARK)
        ax.tick_params(axis="y", labelsize="small")
    total = len(fitted.genes)
    title = f"{total} genes" if len(kept) == total else f"{len(kept)} of {total} genes"
    title += "; a dot: in the reference set" if inside.any() else ""
    ax.set_title(title, fontsize="small", loc="right")
    return finish(ax, show)


def _heaviest_of_each_class(weights: NDArray, n_genes: int) -> NDArray[np.intp]:
    """Genes with a weight, by their best place among the weights of a class."""
    sizes = np.abs(weights)
    places = np.argsort(np.argsort(-sizes, axis=1, kind="stable"), axis=1)
    best_places = np.where(sizes > 0, places, sizes.shape[1]).min(axis=0)
    n_with_weight = int(sizes.any(axis=0).sum())
    return np.argsort(best_places, kind="stable")[: min(n_genes, n_with_weight)]


def _bars(
    ax: Axes, weights: NDArray, inside: NDArray, genes: NDArray, classes: NDArray
) -> None:
    first, second = classes
    ax.barh(
        range(len(genes)),
        weights,
        color=np.where(weights > 0, ORANGE, BLUE),
        height=0.75,
    )
    ax.plot([0] * inside.sum(), np.flatnonzero(inside), ".", color=DARK, markersize=5)
    ax.set_yticks(range(len(genes)), genes, fontsize="small")
    ax.set_ylim(-0.7, len(genes) - 0.3)
    ax.axvline(0, color=DARK, linewidth=0.8)
    ax.set_xlabel(f"weight: for {first} below 0, for {second} above")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _thinned(groups: NDArray, order: list[str], limit: int) -> tuple[NDArray, NDArray]:
    """Positions of samples by group, the model's classes first, thinned evenly."""
    place = {name: number for number, name in enumerate(order)}
    labels = sorted({label for label in groups if label is not None}, key=str)
    labels.sort(key=lambda label: place.get(str(label), len(order)))
    members = [np.flatnonzero(groups == label) for label in labels]
    if not members:
        raise ValueError("no sample is in a group")
    share = min(1.0, limit / sum(map(len, members)))
    chosen = []
    for rows in members:
        n_chosen = max(1, round(share * len(rows)))
        chosen.append(rows[np.linspace(0, len(rows) - 1, n_chosen).astype(int)])
    positions = np.concatenate(chosen)
    return positions, groups[positions]


def _labels(
    predictor: Predictor, profiles: AnnData, used: NDArray
) -> NDArray[np.object_]:
    """The model's labels of all samples, as text."""
    from optirank.io.blocks import blocks

    narrow = predictor.narrowed()
    parts = [
        best_class(narrow.scores(block))
        for block in blocks(profiles, used, _BLOCK_SAMPLES)
    ]
    classes = np.array([str(name) for name in predictor.model.classes], dtype=object)
    return classes[np.concatenate(parts)]


def _heaviest(
    predictor: Predictor, X: NDArray, n_genes: int
) -> tuple[NDArray, list[str], list[str]]:
    """Relative ranks (genes x samples) of heavy genes, their names and their
    classes.
    """
    panel = predictor.panel
    present = predictor.match.present
    genes = panel.genes[present]
    weights = panel.coef[:, present]
    gammas = np.ones(weights.shape)
    ties = "average"
    if panel.references is not None:
        gammas = panel.references.weights[:, present]
        ties = panel.references.ties
    shared = bool((gammas == gammas[0]).all())  # one reference set for all classes
    leads = weights.argmax(axis=0)
    ranks, names, classes = [], [], []
    for row, label in enumerate(predictor.model.score_classes):
        own = weights[row]
        if shared and len(weights) > 1:
            own = np.where(leads == row, own, 0.0)
        heaviest = np.argsort(-np.abs(own), kind="stable")[:n_genes]
        heaviest = heaviest[own[heaviest] != 0]
        heaviest = heaviest[np.argsort(-own[heaviest], kind="stable")]
        if len(heaviest):
            drawn = weighted_ranks(X, gammas[row], ties=ties, genes=heaviest)
            ranks.append(drawn.T)
            names += [f"{genes[j]} {'+' if own[j] > 0 else '−'}" for j in heaviest]
            classes += [str(label)] * len(heaviest)
    return np.concatenate(ranks), names, classes


def _name_blocks(ax: Axes, classes: list[str]) -> None:
    """Lines between the classes' genes, and the classes' names on the right."""
    starts = [k for k, name in enumerate(classes) if not k or classes[k - 1] != name]
    for start, end in zip(starts, [*starts[1:], len(classes)], strict=True):
        if start:
            ax.axhline(start - 0.5, color="white", linewidth=1.5)
        lines = textwrap.wrap(classes[start], 20)  # characters on one line
        ax.annotate(
            "\n".join(lines) if len(lines) <= end - start else short(classes[start]),
            (1, (start + end - 1) / 2),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
            annotation_clip=False,
        )
