"""The genes of a model: weights, ranks in samples, how many they are, and how classes
express them.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from anndata import AnnData
from numpy.typing import NDArray

from optirank._util.matrices import as_dense
from optirank.io.data import gene_names
from optirank.io.objects import profiles_of
from optirank.io.passes import blocks, unique_genes
from optirank.model import Predictor
from optirank.model.file import as_model
from optirank.pl.axes import (
    BLUE,
    CHOSEN,
    DARK,
    ERROR_BARS,
    GREY,
    LEGEND,
    ORANGE,
    Axes,
    Place,
    axes_for,
    column,
    heat_map,
    runs,
    short,
    slant,
)
from optirank.ranks.scoring import weighted_ranks
from optirank.verbs.cards import size_table
from optirank.verbs.predict import label_profiles

if TYPE_CHECKING:
    from optirank.estimators.optirank_cv import OptirankClassifierCV
else:  # typing.get_type_hints works without importing it
    OptirankClassifierCV = Any

_ROW = 0.19  # inches of a gene
_DOT_ROW = 0.21  # inches of a gene with dots
_LARGEST = 90.0  # area of the dot of a gene that all samples express, in points
MOST_GENES = 120  # in one figure of dots: more cannot be looked through
# The ratio of the largest to the smallest size that needs a logarithmic axis
_WIDE = 20
_LABEL = 0.1  # the width of a label of four digits, as a share of the axis


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
    ax : matplotlib Axes, optional
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    fitted = as_model(model)
    profiles = unique_genes(profiles_of(adata, layer, gene_column))
    genes = gene_names(profiles)
    predictor = fitted.bind(genes.tolist())
    used = genes[predictor.columns]
    if groupby is None:
        labels = label_profiles(profiles, fitted)
        groups = labels.classes[labels.chosen]
    else:
        groups = column(adata, groupby)
    classes = [str(label) for label in fitted.classes]
    chosen = _thinned(groups, classes, max_samples)
    groups = groups[chosen]
    X = as_dense(next(blocks(profiles, used, len(chosen), np.sort(chosen))))
    X = X[np.argsort(np.argsort(chosen))]  # read in the file's order, drawn by group
    ranks, names, leading = _heaviest(predictor, X, n_genes)
    blocks_of_samples = np.array(runs(groups.tolist()))
    starts = blocks_of_samples[:, 0]
    ax = axes_for(ax, max(7.5, 3.5 + 0.25 * len(starts)), 1.6 + _ROW * len(names))
    look: dict[str, Any] = {"cmap": "viridis", "gap": 0.0}
    heat_map(ax, ranks, names, [], limits=(0, 1), bar="relative rank", **look)
    middles = blocks_of_samples.mean(axis=1) - 0.5
    ax.set_xticks(middles, [short(name) for name in groups[starts]])
    slant(ax)
    for edge in starts[1:]:
        ax.axvline(edge - 0.5, color="white", linewidth=1.5)
    _name_blocks(ax, leading)
    ax.tick_params(axis="y", labelsize="small")
    return ax


def panel_weights(model: Any, *, n_genes: int = 40, ax: Axes | None = None) -> Axes:
    """Weights of the heaviest genes for each class.

    Two classes have one weight per gene, drawn as a bar: for the second class above 0,
    for the first below. Of the paper's classifiers, a dot marks the genes in the
    reference set of a class; of a panel model every gene is, and no dots are drawn.

    Parameters
    ----------
    model : a fitted model, or the file of one
    n_genes : int, default=40
        Genes drawn, the heaviest of each class.
    ax : matplotlib Axes, optional
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
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
        rows, columns = np.nonzero(inside[:, kept].T)
        ax.plot(columns, rows, linestyle="none", marker=".", markersize=4, color=DARK)
        ax.tick_params(axis="y", labelsize="small")
    total = len(fitted.genes)
    title = f"{total} genes" if len(kept) == total else f"{len(kept)} of {total} genes"
    title += "; a dot: in the reference set" if inside.any() else ""
    ax.set_title(title, fontsize="small", loc="right")
    return ax


def panel_sizes(model: Any, *, ax: Axes | None = None) -> Axes:
    """Accuracy on held-out samples against the number of genes, with the size chosen.

    Parameters
    ----------
    model : a model, the result of :func:`optirank.tl.train`, or the file of a model
    ax : matplotlib Axes, optional
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    return draw_sizes(size_table(model), ax=ax)


def draw_sizes(curve: pd.DataFrame, *, ax: Place = None) -> Axes:
    """Held-out accuracy against the number of genes, and the size chosen."""
    ax = axes_for(ax, 6.6, 4.0)
    curve = curve.dropna(subset=["balanced_accuracy"]).sort_values("n_genes")
    accuracy = 100 * curve["balanced_accuracy"]
    error = 100 * curve["standard_error"]
    label = "held-out samples" + (", ± standard error" if error.notna().any() else "")
    ax.errorbar(
        curve["n_genes"], accuracy, yerr=error.fillna(0), label=label, **ERROR_BARS
    )
    sizes = curve["n_genes"].to_numpy()
    is_chosen = curve["chosen"].to_numpy(dtype=bool)
    for n_genes, height in zip(sizes[is_chosen], accuracy[is_chosen], strict=True):
        label = f"chosen: {n_genes:.0f} genes, {height:.1f} %"
        ax.plot(n_genes, height, label=label, **CHOSEN)
    ax.set_xscale("log")
    ticks = _apart(sizes, sizes[is_chosen])
    ax.set_xticks(ticks, [f"{n_genes:.0f}" for n_genes in ticks])
    ax.minorticks_off()
    ax.set(xlabel="genes in the panel", ylabel="balanced accuracy (%)")
    ax.grid(visible=True, axis="y", color="#e6e6e6")
    ax.set_axisbelow(True)
    ax.legend(loc="lower right", **LEGEND)
    return ax


def _apart(sizes: NDArray, chosen: NDArray) -> list[float]:
    """Rising sizes whose labels do not overlap on a logarithmic axis: those chosen,
    the largest, and of the others those that there is room for.
    """
    gap = _LABEL * np.log(max(sizes) / min(sizes)) if len(sizes) else 0.0
    kept: list[float] = []
    for size in [*chosen, *sizes[::-1]]:
        if all(abs(np.log(size / other)) > gap for other in kept):
            kept.append(float(size))
    return sorted(kept)


def selection_path(model: OptirankClassifierCV, *, ax: Axes | None = None) -> Axes:
    """Validation score against the number of genes, with the setting selected.

    The line joins the best setting at each number of genes, with standard errors over
    the folds; grey dots are the other settings. The band reaches from the best mean
    score to one standard error below it: the one-standard-error rule selects the
    leftmost setting in it.

    Parameters
    ----------
    model : OptirankClassifierCV
        Fitted.
    ax : matplotlib Axes, optional
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    if not hasattr(model, "one_se_path"):
        raise TypeError(
            f"selection_path takes a fitted OptirankClassifierCV, got "
            f"{type(model).__name__}: panel_sizes draws the sizes of a model"
        )
    path = model.one_se_path()
    results = model.cv_results_
    n_genes = results["mean_n_genes"]
    best = path[path["best"]].iloc[0]
    selected = path[path["selected"]].iloc[0]
    best_before = path["score"].cummax().shift(fill_value=float("-inf"))
    front = path[path["score"] > best_before]
    ax = axes_for(ax, 5.5, 3.8)
    ax.axhspan(
        best["score"] - best["standard_error"],
        best["score"],
        color=BLUE,
        alpha=0.12,
        linewidth=0,
        label="within one standard error of the best",
    )
    ax.plot(
        n_genes,
        results["mean_test_score"],
        ".",
        markersize=5,
        color=GREY,
        alpha=0.6,
        label="all settings",
    )
    ax.errorbar(
        front["n_genes"],
        front["score"],
        yerr=front["standard_error"],
        label="best of as few genes, ± standard error",
        **ERROR_BARS,
    )
    label = f"selected: {selected['n_genes']:.0f} genes, {selected['score']:.3f}"
    ax.plot(selected["n_genes"], selected["score"], label=label, **CHOSEN)
    if min(n_genes) > 0 and max(n_genes) > _WIDE * min(n_genes):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    scoring = model.scoring if isinstance(model.scoring, str) else "score"
    ax.set_xlabel("genes needed (mean over folds)")
    ax.set_ylabel(f"{scoring.replace('_', ' ')}, validation")
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=2,
        fontsize="small",
        frameon=False,
    )
    return ax


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


def _thinned(groups: NDArray, order: list[str], limit: int) -> NDArray[np.intp]:
    """Positions of samples by group, the model's classes first, thinned evenly."""
    place = {name: number for number, name in enumerate(order)}
    labels = {label for label in groups if label is not None}
    labels = sorted(
        labels, key=lambda name: (place.get(str(name), len(order)), str(name))
    )
    members = [np.flatnonzero(groups == label) for label in labels]
    if not members:
        raise ValueError("no sample is in a group")
    share = min(1.0, limit / sum(map(len, members)))
    chosen = []
    for rows in members:
        n_chosen = max(1, round(share * len(rows)))
        chosen.append(rows[np.linspace(0, len(rows) - 1, n_chosen).astype(int)])
    return np.concatenate(chosen)


def _heaviest(
    predictor: Predictor, X: NDArray, n_genes: int
) -> tuple[NDArray, list[str], list[str]]:
    """Relative ranks (genes x samples) of heavy genes, their names and their
    classes.
    """
    present = predictor.match.present
    genes = predictor.panel.genes[present]
    weights = predictor.panel.coef[:, present]
    references = predictor.panel.references
    gammas, ties = np.ones(weights.shape), "average"
    if references is not None:
        gammas, ties = references.weights[:, present], references.ties
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
    for start, end in runs(classes):
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


def draw_dots(genes: pd.DataFrame, classes: list[str], *, ax: Place = None) -> Axes:
    """Genes (rows) by classes (columns): dots as large as the share of samples that
    express.

    The colour is the mean where expressed, relative to the class where it is highest.
    Genes are in groups by the class that they speak for; of many the first are drawn.
    """
    genes = genes.head(MOST_GENES)
    places = [classes.index(name) for name in genes["speaks_for"]]
    genes = genes.assign(place=places).sort_values(["place", "rank"])
    shares = genes[[f"share_{name}" for name in classes]].to_numpy(dtype=float)
    means = genes[[f"mean_{name}" for name in classes]].to_numpy(dtype=float)
    means = means / np.where(shares > 0, shares, 1.0)
    highest = means.max(axis=1, keepdims=True)
    colours = means / np.where(highest > 0, highest, 1.0)
    n_genes, n_classes = shares.shape
    ax = axes_for(ax, 3.0 + 0.42 * n_classes, 3.2 + _DOT_ROW * n_genes)
    x, y = np.meshgrid(np.arange(n_classes), np.arange(n_genes))
    dots = ax.scatter(
        x.ravel(),
        y.ravel(),
        s=_LARGEST * shares.ravel(),
        c=colours.ravel(),
        cmap="viridis_r",
        vmin=0,
        vmax=1,
        linewidths=0,
    )
    ax.set_xticks(range(n_classes), [short(name, 24) for name in classes])
    ax.set_yticks(range(n_genes), genes["gene"])
    ax.set(xlim=(-0.6, n_classes - 0.4), ylim=(n_genes - 0.4, -0.6))
    slant(ax)
    ax.tick_params(length=0, labelsize="small")
    for row, _ in runs(genes["speaks_for"].tolist())[1:]:
        ax.axhline(row - 0.5, color="#dddddd", linewidth=0.8, zorder=0)
    ax.spines[:].set_visible(False)
    for share in (0.1, 0.5, 1.0):
        ax.scatter([], [], s=_LARGEST * share, color=GREY, label=f"{share:.0%}")
    look: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 3}
    ax.legend(**look, frameon=False, title="samples that express the gene")
    bar = ax.figure.colorbar(
        dots, ax=ax, location="bottom", shrink=0.6, aspect=30, pad=0.02
    )
    bar.set_label("mean where expressed, relative to the highest class")
    return ax
