"""Labels checked by genes that had no part in them: reference against query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from anndata import AnnData

from optirank.io.data import DataError, gene_names
from optirank.io.objects import profiles_of
from optirank.io.passes import run_pass
from optirank.model.file import as_model
from optirank.panel.further import RanksByLabel, agreement_of, every_so_many
from optirank.pl.axes import (
    BLUE,
    GREY,
    Axes,
    Place,
    axes_for,
    column,
    short,
)

if TYPE_CHECKING:
    from optirank.panel.further import Agreement

_MOST = 12  # labels that are drawn, those of most agreement and least among them
_PER_ROW = 4  # small panels beside each other
_SIDE = 1.5  # inches of one
_BLOCK_SAMPLES = 4096  # ranked together


def agreement(
    model: Any,
    adata: AnnData,
    key: str = "optirank",
    *,
    layer: str | None = None,
    gene_column: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """How labels differ in genes outside the panel: in the reference, and here.

    One small panel per label, one point per gene: how far its mean rank in the samples
    of the label is from the mean of all labels, in the reference (across) and in
    ``adata`` (upwards). Right labels give points along the diagonal; in samples of
    another tissue they form a cloud.

    Parameters
    ----------
    model : a model, the file of one, or its name
    adata : AnnData
        The samples.
    key : str, default="optirank"
        The column of ``obs`` with the labels to check: those of
        :func:`optirank.tl.annotate`, or any others with the model's names.
    layer, gene_column
        As in :func:`optirank.tl.annotate`.
    ax : matplotlib Axes, optional
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    fitted = as_model(model)
    if fitted.further is None:
        raise DataError(
            "the model stores no genes outside its panel, so that labels cannot be "
            "checked by others: train it on data that have more genes than the panel"
        )
    profiles = profiles_of(adata, layer, gene_column)
    names = gene_names(profiles)
    genes, means = fitted.further.found_among(names.tolist(), fitted.genes)
    classes = [str(label) for label in fitted.classes]
    place = {label: position for position, label in enumerate(classes)}
    codes = np.array([place.get(str(label), -1) for label in column(adata, key)])
    labelled = np.flatnonzero(codes >= 0)
    labelled = labelled[:: every_so_many(len(labelled))]
    ranks = RanksByLabel(lambda _, rows: codes[labelled[rows]], len(classes))
    run_pass(profiles, [ranks], names[genes], size=_BLOCK_SAMPLES, rows=labelled)
    compared = agreement_of(means, ranks.result())
    if compared.overall is None:
        raise DataError(
            f"the labels of column {key!r} cannot be checked: it takes two labels of "
            "the model with three samples each, and 50 of the model's further genes, "
            "or a clear agreement of fewer "
            f"({len(genes)} are there)"
        )
    return draw_agreement(ax, compared, classes)


def draw_agreement(ax: Place, compared: Agreement, classes: Sequence[object]) -> Axes:
    """Small panels, one per label: the reference across, the query upwards.

    The label of least agreement comes first. Of many labels, half of those drawn are of
    least agreement, and half of most.
    """
    values = [compared.by_label[int(label)] for label in compared.labels]
    drawn = np.argsort(values, kind="stable").tolist()
    if len(drawn) > _MOST:
        drawn = drawn[: _MOST // 2] + drawn[-(_MOST - _MOST // 2) :]
    n_columns = min(len(drawn), _PER_ROW)
    n_rows = -(-len(drawn) // n_columns)
    ax = axes_for(ax, 0.4 + _SIDE * n_columns, 0.3 + 1.2 * _SIDE * n_rows)
    ax.set_axis_off()
    limit = 1.05 * max(np.abs(compared.reference).max(), np.abs(compared.query).max())
    for number, row in enumerate(drawn):
        line, place = divmod(number, n_columns)
        left = place / n_columns + 0.04 / n_columns
        bottom = 1 - (line + 1) / n_rows + 0.1 / n_rows
        small = ax.inset_axes((left, bottom, 0.92 / n_columns, 0.72 / n_rows))
        small.axline((0, 0), slope=1, color=GREY, linewidth=0.8)
        small.scatter(
            compared.reference[row],
            compared.query[row],
            s=3,
            color=BLUE,
            alpha=0.7,
            linewidths=0,
            rasterized=True,  # a point per gene would make a page heavy
        )
        label = int(compared.labels[row])
        small.set(xlim=(-limit, limit), ylim=(-limit, limit), xticks=[], yticks=[])
        small.set_title(
            f"{short(classes[label], 18)}\n{compared.by_label[label]:.2f}",
            fontsize="small",
        )
    ax.annotate("reference →", (0, 0), fontsize="small", va="top", in_layout=True)
    ax.annotate(
        "query →", (0, 0), fontsize="small", rotation=90, ha="right", va="bottom"
    )
    if len(drawn) < len(compared.labels):
        ax.annotate(
            f"and {len(compared.labels) - len(drawn)} labels between these",
            (1, 0),
            fontsize="small",
            ha="right",
            va="top",
        )
    return ax
