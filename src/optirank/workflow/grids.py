"""The settings that are tried: from many to the one that carries over best on its own."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from optirank.tuning.average import AverageFamily
from optirank.tuning.families import (
    FixedReferenceFamily,
    JointFamily,
    LogisticFamily,
    OptirankFamily,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from optirank.tuning.family import Chain, Family

Setting = tuple[float, float, float, str]  # n_reference, l1, l2, side
Member = tuple[float, float, float]  # n_reference, l1, l2

METHODS = ("auto", "optirank", "rank-lr", "lr")
PREFERENCES = ("accuracy", "genes")


@dataclass(frozen=True)
class Average:
    """Settings whose models are averaged."""

    members: tuple[Member, ...]
    side: str


@dataclass(frozen=True)
class Grid:
    """Settings to try one by one, and an average of settings.

    The first thing of the grid is its default: the average where there is one, else the first
    setting. It is left only for something that is clearly better.
    """

    settings: tuple[Setting, ...]
    average: Average | None = None
    shared: bool = False  # whether all classes share one reference set
    whole_panel: bool = False  # whether models use all of their panel, see `solver.panel`
    values: bool = False  # weights on log values (lr): of a setting, only the penalties count

    @classmethod
    def of(
        cls,
        n_references: Sequence[float],
        l1s: Sequence[float],
        l2s: Sequence[float],
        sides: Sequence[str] = ("both",),
    ) -> Grid:
        """All combinations."""
        return cls(tuple(product(n_references, l1s, l2s, sides)))

    def __len__(self) -> int:
        return len(self.settings) + (self.average is not None)

    @property
    def on_platforms(self) -> bool:
        """Whether its models are worth training on simulated platforms too."""
        return self.average is not None or self.whole_panel


UNTUNED: Setting = (0.2, 1e-3, 1e-3, "best")
"""The single setting that carried over best, of those that need few genes."""

# Over real pairs of platforms, trained on simulated ones too: with two classes, where a shift of
# all scores costs most, sparse models of both sides; with more, where scores of classes are
# compared with each other, denser ones.
TWO_CLASSES = Average(((0.1, 3e-3, 1e-3), (0.1, 1e-2, 1e-3), (0.2, 3e-3, 1e-3)), "both")
MORE_CLASSES = Average(((0.2, 1e-3, 1e-3), (0.2, 3e-3, 1e-3)), "best")

_SIDES = ("best", "both")  # the same in all grids: chains of a narrow one are among a wide one's

_OTHERS: tuple[Setting, ...] = (
    (0.4, 3e-3, 1e-3, "both"),
    (0.4, 1e-3, 1e-3, "best"),
    (0.1, 1e-2, 1e-3, "both"),
    (0.05, 3e-3, 1e-3, "both"),
)
_FULL_RANKS: tuple[Setting, ...] = ((1.0, 3e-3, 1e-2, "best"), (1.0, 1e-3, 1e-2, "best"))
# Weights on values have no reference set. The first penalties carried over best on average.
_VALUES: tuple[Setting, ...] = tuple(
    (1.0, l1, l2, "best") for l1, l2 in ((1e-3, 1e-1), (1e-3, 1e-3), (1e-2, 1e-2), (0.0, 1e-2))
)
_MORE_FULL_RANKS: tuple[Setting, ...] = ((1.0, 1e-3, 1e-3, "best"), (1.0, 0.0, 1e-2, "best"))


# Small panels, all of which the model uses: the first carried over best between real platforms, of
# those with less than a third of the genes of the averages above.
_SMALL_FOR_TWO: tuple[Setting, ...] = ((0.05, 2e-2, 1e-2, "best"), (0.05, 7e-3, 1e-2, "best"))
_SMALL_FOR_MORE: tuple[Setting, ...] = (
    (0.01, 7e-3, 1e-2, "best"),
    (0.01, 1e-2, 1e-2, "best"),
    (0.01, 2e-2, 1e-2, "best"),
    (0.02, 1e-2, 1e-2, "best"),
    (0.05, 1e-2, 1e-2, "best"),
)


def make_grids(method: str, n_classes: int, prefer: str = "accuracy") -> tuple[Grid, ...]:
    """Grids from the widest to a single setting; each holds the next.

    Where few genes are preferred, models use all of their panel, which is one for all classes
    (`one_panel_grids`).

    A search that turns out to be slower than planned goes on with a narrower one and keeps what is
    done.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not known: use one of {', '.join(METHODS)}")
    if method == "rank-lr":
        return Grid((*_FULL_RANKS, *_MORE_FULL_RANKS)), Grid(_FULL_RANKS[:1])
    if method == "lr":
        return Grid(_VALUES, values=True), Grid(_VALUES[:1], values=True)
    if prefer == "genes":
        return one_panel_grids(n_classes)
    average = TWO_CLASSES if n_classes == 2 else MORE_CLASSES
    others = _OTHERS if method == "optirank" else (*_FULL_RANKS, *_OTHERS)
    return Grid((UNTUNED, *others), average), Grid((UNTUNED,), average), Grid((UNTUNED,))


def one_panel_grids(n_classes: int) -> tuple[Grid, ...]:
    """Grids of models that have one panel for all classes, and use all of it."""
    settings = _SMALL_FOR_TWO if n_classes == 2 else _SMALL_FOR_MORE
    nested = (settings, settings[:3], settings[:1]) if n_classes > 2 else (settings, settings[:1])
    return tuple(Grid(settings, shared=True, whole_panel=True) for settings in nested)


def panel_grids(panel_size: int) -> tuple[Grid, ...]:
    """Grids of one reference set for all classes, for panels of about so many genes and fewer."""
    sizes = sorted({max(1, round(share * panel_size)) for share in (0.1, 0.2, 0.4)})
    l1s = (1e-3, 3e-3, 1e-2, 2e-2, 4e-2, 8e-2)
    settings = tuple(product(sizes, l1s, (1e-2,), ("best",)))
    narrow = tuple(product(sizes[1:2] or sizes, l1s[2:5], (1e-2,), ("best",)))
    return tuple(Grid(one, shared=True, whole_panel=True) for one in (settings, narrow))


def make_families(
    grid: Grid, reference: NDArray | None, candidates: NDArray | None = None
) -> list[Family]:
    """The families whose settings are tried.

    ``reference`` are positions, None to learn the set; ``candidates`` is a mask of the genes that
    may be in it.
    """
    if reference is not None:
        penalties = tuple(dict.fromkeys((l1, l2) for _, l1, l2, _ in grid.settings))
        family = FixedReferenceFamily((), (), reference=tuple(reference.tolist()))
        return [family.keeping(penalties)]
    if grid.values:
        penalties = tuple(dict.fromkeys((l1, l2) for _, l1, l2, _ in grid.settings))
        return [LogisticFamily((), ()).keeping(penalties)]
    kind, sides = (JointFamily, ("best",)) if grid.shared else (OptirankFamily, _SIDES)
    options = {"sides": sides, "candidates": candidates, "whole_panel": grid.whole_panel}
    families: list[Family] = [kind((), (), **options).keeping(grid.settings)]
    if grid.average is not None:
        average = grid.average
        families.append(
            AverageFamily(members=average.members, side=average.side, candidates=candidates)
        )
    return families


def chains(grid: Grid, reference: NDArray | None, n_genes: int) -> list[Chain]:
    """What is fitted for each class in a fold."""
    return [one for family in make_families(grid, reference) for one in family.chains(n_genes)]
