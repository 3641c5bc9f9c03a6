"""Labels checked by genes that had no part in them: reference against query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.io.data import DataError
from optirank.panel.agreement import RanksByLabel, agreement_of, every_so_many
from optirank.pl.axes import BLUE, GREY, axes_for, column, finish, short

if TYPE_CHECKING:
    from anndata import AnnData
    from matplotlib.axes import Axes

    from optirank.panel.agreement import Agreement
else:  # typing.get_type_hints works without importing them
    AnnData = Axes = Any

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
    show: bool = False,
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
    ax, show
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    from optirank.io.blocks import blocks
    from optirank.io.data import gene_names
    from optirank.io.objects import profiles_of
    from optirank.model.file import as_model

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
    start = 0
    for block in blocks(profiles, names[genes], _BLOCK_SAMPLES, labelled):
        rows = slice(start, start + len(labelled[start : start + _BLOCK_SAMPLES]))
        ranks.add(block, rows)
        start = rows.stop
    compared = agreement_of(means, ranks.result())
    if compared.overall is None:
        raise DataError(
            f"the labels of column {key!r} cannot be checked: it takes two labels of "
            "the model with three samples each, and 50 of the model's further genes "
            f"({len(genes)} are there)"
        )
    ax = axes_for(ax, *agreement_size(compared))
    draw_agreement(ax, compared, classes)
    return finish(ax, show)


def draw_agreement(ax: Axes, compared: Agreement, classes: Sequence[object]) -> None:
    """Small panels on given axes, one per label: the reference across, the query
    upwards.
    """
    drawn = _drawn(compared)
    limit = 1.05 * max(np.abs(compared.reference).max(), np.abs(compared.query).max())
    n_columns = min(len(drawn), _PER_ROW)
    n_rows = -(-len(drawn) // n_columns)
    ax.set_axis_off()
    for number, row in enumerate(drawn):
        line, place = divmod(number, n_columns)
        small = ax.inset_axes(
            (
                place / n_columns + 0.04 / n_columns,
                1 - (line + 1) / n_rows + 0.1 / n_rows,
                0.92 / n_columns,
                0.72 / n_rows,
            )
        )
        small.axline((0, 0), slope=1, color=GREY, linewidth=0.8)
        small.scatter(
            compared.reference[row],
            compared.query[row],
            s=2,
            color=BLUE,
            alpha=0.5,
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


def agreement_size(compared: Agreement) -> tuple[float, float]:
    """Width and height, in inches, of `draw_agreement`."""
    n_drawn = len(_drawn(compared))
    n_columns = min(n_drawn, _PER_ROW)
    n_rows = -(-n_drawn // n_columns)
    return 0.4 + _SIDE * n_columns, 0.3 + 1.2 * _SIDE * n_rows


def _drawn(compared: Agreement) -> list[int]:
    """Rows of the labels that are drawn, that of least agreement first.

    Of many, half are those of least agreement, and half those of most.
    """
    values = [compared.by_label[int(label)] for label in compared.labels]
    order = np.argsort(values, kind="stable").tolist()
    if len(order) > _MOST:
        order = order[: _MOST // 2] + order[-(_MOST - _MOST // 2) :]
    return order
