"""What a user may ask of a training, a design and a prediction, each option in one
place.

A new field with a `Flag` is an option of the command line; the parameter of the same
name in `optirank.tl` has the same default.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any

from optirank._util.flags import Flag
from optirank.workflow import METHODS

Homologs = Mapping[str, str] | str | os.PathLike[str] | None
ONTOLOGY = "ontology"  # in place of a file, a tree of the Cell Ontology

_GENES = "Options for the genes"
_MODEL = "Options for the model's card"
_MISSING = "Options for genes with other names"

# What is said of learning from a query, and what it means
_ADAPT: dict[object, bool | str] = {
    None: False,
    False: False,
    True: True,
    "always": True,
    "auto": "auto",
}

# Of a training and of a design alike
Labels = Annotated[
    str | Sequence[str],
    Flag(
        metavar="COLUMN",
        help="Class labels; several columns, coarse to fine, comma-separated.",
        names=("--label", "-l"),
        typed=str,
    ),
]
Batch = Annotated[
    str | None,
    Flag(metavar="COLUMN", help="Source (data set, donor); each is held out in turn."),
]
Threads = Annotated[
    int | None,
    Flag(
        metavar="N",
        help="Threads; default: all processors.",
        names=("--jobs", "-j"),
        lowest=1,
    ),
]
Include = Annotated[
    Sequence[str] | str,
    Flag(
        metavar="GENES",
        help="Genes that must be in the panel: names, patterns or a file.",
        heading=_GENES,
        typed=list[str] | None,
    ),
]
Name = Annotated[str, Flag(metavar="TEXT", help="Name of the model.", heading=_MODEL)]
Description = Annotated[
    str,
    Flag(
        metavar="TEXT",
        help="Its intended use, kept in the model.",
        heading=_MODEL,
        names=("--describe",),
    ),
]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What a user may ask of a training: the parameters of :func:`optirank.tl.train`.

    ``query_genes`` are the genes of its ``query``, found by name as in prediction;
    ``n_jobs`` are threads, -1 for all processors.
    """

    label: Labels
    batch: Batch = None
    tree: Annotated[
        Mapping[str, str] | str | os.PathLike[str] | None,
        Flag(
            metavar="FILE|ontology",
            help="Coarser labels: a table of labels and parents, or the word ontology.",
            typed=Path | None,
        ),
    ] = None
    ontology: Annotated[
        Mapping[str, str] | str | os.PathLike[str] | None,
        Flag(
            metavar="FILE",
            help="Cell Ontology terms of the labels, as optirank labels writes them.",
            typed=Path | None,
        ),
    ] = None
    mapping: Annotated[
        Mapping[str, str] | None,
        Flag(
            metavar="LABEL=OTHER",
            help="Join a label to another, such as 'b=B cell'. Repeatable.",
            names=("--map",),
            typed=list[str] | None,
        ),
    ] = None
    method: Annotated[
        str,
        Flag(
            metavar="|".join(METHODS),
            help="One panel, the paper's classifier, or all genes.",
            choices=tuple(METHODS),
        ),
    ] = "panel"
    target_error: Annotated[
        float | None,
        Flag(
            metavar="SHARE",
            help=(
                "Let the model withhold labels so that at most this share of those "
                "given is wrong, judged by held-out samples."
            ),
            lowest=0.0,
            highest=1.0,
        ),
    ] = None
    n_jobs: Threads = None
    n_genes: Annotated[
        int | str,
        Flag(
            metavar="N",
            help="Genes in the panel; default: by held-out accuracy.",
            heading=_GENES,
            names=("--genes",),
            typed=int | None,
            lowest=2,
        ),
    ] = "auto"
    gene_list: Annotated[
        Sequence[str] | None,
        Flag(
            metavar="FILE",
            help="Use these genes, one per line; with --genes the best of them.",
            heading=_GENES,
            typed=Path | None,
        ),
    ] = None
    query_genes: Annotated[
        Sequence[str] | None,
        Flag(
            metavar="QUERY",
            help="To be labelled later: use only its genes. Repeatable.",
            heading=_GENES,
            names=("--for",),
            typed=list[Path] | None,
        ),
    ] = None
    include: Include = ()
    exclude: Annotated[
        Sequence[str] | str,
        Flag(
            metavar="GENES",
            help="Genes that may not be: names, patterns such as 'MT-*', a file.",
            heading=_GENES,
            typed=list[str] | None,
        ),
    ] = ()
    name: Name = ""
    description: Description = ""

    def __post_init__(self) -> None:
        from optirank.model.confidence import check_target_error  # NumPy loads

        if not isinstance(self.label, str):
            object.__setattr__(self, "label", tuple(map(str, self.label)))
        if not all(self.columns):
            raise ValueError(f"label={self.label!r}: name each column of labels")
        if len(self.columns) > 1 and self.tree is not None:
            raise ValueError(
                f"the columns {', '.join(self.columns)} are a tree of labels already: "
                "leave out the tree, or all but the finest column"
            )
        if self.method not in METHODS:
            raise ValueError(f"method {self.method!r}: use one of {', '.join(METHODS)}")
        n_genes = self.n_genes
        is_number = isinstance(n_genes, Integral) and not isinstance(n_genes, bool)
        if n_genes != "auto" and not is_number:
            raise ValueError(f"{n_genes!r} genes: give a number of genes, or 'auto'")
        if n_genes != "auto" and int(n_genes) < 2:
            raise ValueError(f"{n_genes!r} genes: give at least 2 genes, or 'auto'")
        if self.target_error is not None:
            check_target_error(self.target_error)
        _list_patterns(self)
        if self.method != "panel" and (self.include or n_genes != "auto"):
            raise ValueError(
                f"method={self.method!r} chooses its genes itself: leave out include= "
                "and n_genes=, or use the panel method"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the labels, from coarse to fine."""
        return (self.label,) if isinstance(self.label, str) else tuple(self.label)

    @property
    def panel_size(self) -> int | None:
        """The number of genes asked for, None where it is chosen by held-out
        accuracy.
        """
        return None if self.n_genes == "auto" else int(self.n_genes)


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """What a user may ask of a design: the parameters of :func:`optirank.tl.design`.

    ``query_genes`` are those of the data to be labelled later, which the assay can
    measure; ``n_jobs`` are threads, -1 for all processors.
    """

    label: Labels
    batch: Batch = None
    n_jobs: Threads = None
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
    include: Include = ()
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
            help="Genes of largest weight that each class, or label of a tree, keeps.",
            heading=_GENES,
            lowest=0,
        ),
    ] = 0
    query_genes: Annotated[
        Sequence[str] | None,
        Flag(
            metavar="QUERY",
            help="To be labelled later: use only its genes; a list of genes will do.",
            heading=_GENES,
            names=("--for",),
            typed=Path | None,
        ),
    ] = None
    name: Name = ""
    description: Description = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the labels, from coarse to fine."""
        return (self.label,) if isinstance(self.label, str) else tuple(self.label)

    def __post_init__(self) -> None:
        n_genes = self.n_genes
        is_number = isinstance(n_genes, Integral) and not isinstance(n_genes, bool)
        if n_genes is not None and (not is_number or n_genes < 2):
            raise ValueError(f"{n_genes!r} genes: give at least 2 (n_genes=)")
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
                f"means from {low:g} to {high:g} (min_mean=, max_mean=) leave no "
                "gene: give the smaller one first"
            )
        _list_patterns(self)


def _list_patterns(options: TrainingOptions | DesignOptions) -> None:
    """Make lists of ``include`` and ``exclude``: one pattern may be given as it is."""
    for name in ("include", "exclude"):
        pattern = getattr(options, name)
        if isinstance(pattern, str):
            object.__setattr__(options, name, (pattern,))


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """How labels are given: parameters of :func:`optirank.tl.annotate`."""

    clusters: Annotated[
        str | None,
        Flag(metavar="COLUMN", help="Clusters: each also gets its majority label."),
    ] = None
    adapt: Annotated[
        bool | str,
        Flag(
            metavar="[auto]",
            help="Learn from the query; labels then depend on its other samples. With "
            "auto, only where the agreement of other genes says that it helps.",
            typed=str | None,
            choices=("always", "auto"),
            alone="always",
        ),
    ] = False
    strict: Annotated[
        bool,
        Flag(
            help="Withhold all labels, and end with an error, where an alarm says that "
            "they may all be wrong."
        ),
    ] = False
    target_error: Annotated[
        float | None,
        Flag(
            metavar="SHARE",
            help="Withhold labels so that at most this share of those given is wrong, "
            "judged by held-out samples (with 80 % confidence) and by the query's own "
            "confidences; default: as the model was trained; 1 withholds none.",
            lowest=0.0,
            highest=1.0,
        ),
    ] = None
    threshold: Annotated[
        float | None,
        Flag(
            metavar="SHARE",
            help="Withhold labels of a lower confidence.",
            lowest=0.0,
            highest=1.0,
        ),
    ] = None
    sensitivity: Annotated[
        Mapping[str, float] | str | None,
        Flag(
            metavar="CLASS=SHARE",
            help="Of two classes, find this one with this sensitivity, such as "
            "'er positive=0.95', by the model's held-out samples.",
            typed=str | None,
        ),
    ] = None
    unknown_rate: Annotated[
        float | None,
        Flag(
            metavar="SHARE",
            help="Withhold labels of samples that look like no class; the share of "
            "held-out samples that may lose their label, such as 0.01.",
            lowest=0.0,
            highest=1.0,
        ),
    ] = None
    levels: Annotated[
        bool, Flag(help="Write one column per level of the model's tree of labels.")
    ] = False
    drop_classes: Annotated[
        bool,
        Flag(
            help=(
                "Leave out classes that cannot be told because their genes are missing."
            ),
            heading=_MISSING,
        ),
    ] = False
    homologs: Annotated[
        Homologs,
        Flag(
            metavar="mouse|case|FILE",
            help=(
                "Genes of another species: a table of two columns, or case (names that "
                "differ only in case are the same gene); mouse and human names are "
                "recognised."
            ),
            heading=_MISSING,
            typed=str | None,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.adapt not in _ADAPT:
            raise ValueError(f"adapt={self.adapt!r}: use True, False or 'auto'")
        object.__setattr__(self, "adapt", _ADAPT[self.adapt])
        if self.threshold is not None and self.target_error is not None:
            raise ValueError("give a threshold or a target error, not both")
        if self.sensitivity and (
            self.adapt or self.threshold is not None or self.target_error is not None
        ):
            raise ValueError(
                f"sensitivity={self.sensitivity!r} is a threshold of its own, on the "
                "model's own probabilities: leave out adapt, threshold and target_error"
            )
        for name in ("threshold", "target_error", "unknown_rate"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name}={value!r}: use a share between 0 and 1")

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        if isinstance(self.homologs, Mapping):
            values["homologs"] = f"a mapping of {len(self.homologs)} genes"
        elif self.homologs is not None:
            values["homologs"] = os.fspath(self.homologs)
        if isinstance(self.sensitivity, Mapping):
            pairs = (f"{name}={share}" for name, share in self.sensitivity.items())
            values["sensitivity"] = ", ".join(pairs)
        return {
            name: value for name, value in values.items() if value not in (None, False)
        }
