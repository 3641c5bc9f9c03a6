"""What a user may ask of a design, each option in one place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Annotated

from optirank._util.flags import Flag

_GENES = "Options for the genes"
_MODEL = "Options for the model's card"


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """What a user may ask of a design: the parameters of :func:`optirank.tl.design`.

    ``assay_genes`` are the genes that the assay can measure; ``n_jobs`` are threads, -1
    for all processors.
    """

    label: Annotated[
        str, Flag(metavar="COLUMN", help="Class labels.", names=("--label", "-l"))
    ]
    batch: Annotated[
        str | None,
        Flag(
            metavar="COLUMN", help="Source (data set, donor); each is held out in turn."
        ),
    ] = None
    n_jobs: Annotated[
        int | None,
        Flag(
            metavar="N",
            help="Threads; default: all processors.",
            names=("--jobs", "-j"),
            lowest=1,
        ),
    ] = None
    n_genes: Annotated[
        int | None,
        Flag(
            metavar="N",
            help="Genes in the panel; default: 100, or those of the list.",
            heading=_GENES,
            names=("--genes",),
            lowest=2,
        ),
    ] = None
    gene_list: Annotated[
        Sequence[str] | None,
        Flag(
            metavar="FILE",
            help=(
                "A list, one gene per line, to score as it is; with --genes, to extend."
            ),
            heading=_GENES,
            names=("--list",),
            typed=Path | None,
        ),
    ] = None
    skip_unknown: Annotated[
        bool,
        Flag(
            help="Go on without genes of the list that the reference lacks.",
            heading=_GENES,
        ),
    ] = False
    include: Annotated[
        Sequence[str] | str,
        Flag(
            metavar="GENES",
            help="Genes that must be in the panel: names, patterns or a file.",
            heading=_GENES,
            typed=list[str] | None,
        ),
    ] = ()
    exclude: Annotated[
        Sequence[str] | str,
        Flag(
            metavar="GENES",
            help=(
                "Genes that may not be: names, patterns such as 'MT-*', a file, or the "
                "word housekeeping (ribosomal, mitochondrial, haemoglobin, cell cycle)."
            ),
            heading=_GENES,
            typed=list[str] | None,
        ),
    ] = ()
    min_mean: Annotated[
        float | None,
        Flag(
            metavar="COUNTS",
            help="Least mean, per 10,000, in the class where a gene is highest.",
            heading=_GENES,
            lowest=0.0,
        ),
    ] = None
    max_mean: Annotated[
        float | None,
        Flag(metavar="COUNTS", help="Largest such mean.", heading=_GENES, lowest=0.0),
    ] = None
    per_class: Annotated[
        int,
        Flag(
            metavar="N",
            help="Genes of largest weight that each class keeps.",
            heading=_GENES,
            lowest=0,
        ),
    ] = 0
    assay_genes: Annotated[
        Sequence[str] | None,
        Flag(
            metavar="FILE",
            help="Genes that the assay can measure: a list, or data that have them.",
            heading=_GENES,
            names=("--for",),
            typed=Path | None,
        ),
    ] = None
    name: Annotated[
        str, Flag(metavar="TEXT", help="Name of the model.", heading=_MODEL)
    ] = ""
    description: Annotated[
        str,
        Flag(
            metavar="TEXT",
            help="Its intended use, kept in the model.",
            heading=_MODEL,
            names=("--describe",),
        ),
    ] = ""

    def __post_init__(self) -> None:
        n_genes = self.n_genes
        is_number = isinstance(n_genes, Integral) and not isinstance(n_genes, bool)
        if n_genes is not None and (not is_number or n_genes < 2):
            raise ValueError(f"{n_genes!r} genes: give at least 2 (--genes, n_genes=)")
        if self.per_class < 0:
            raise ValueError(f"{self.per_class} genes per class: give at least 0")
        low, high = self.min_mean, self.max_mean
        for bound in (low, high):
            if bound is not None and not 0 <= bound < math.inf:
                raise ValueError(
                    f"a mean of {bound!r}: give counts per 10,000 of at least 0"
                )
        if low is not None and high is not None and low > high:
            raise ValueError(
                f"means from {low:g} to {high:g} (--min-mean, --max-mean) leave no "
                "gene: give the smaller one first"
            )
        for name in ("include", "exclude"):  # one pattern may be given as it is
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, (getattr(self, name),))
