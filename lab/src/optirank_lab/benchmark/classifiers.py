"""The classifiers of the experiments: one entry each, with everything they need."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.resources import files
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.multiclass import OneVsRestClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.estimators.search import Family
    from optirank_lab.benchmark.designs import Profile
    from optirank_lab.benchmark.rivals import AtSize

BINARY = "binary"  # each class of a real task against the rest
SYNTHETIC = "synthetic"
WHOLE = "whole"  # all classes of a real task at once
CURVE = "curve"  # the same at each number of genes
COUNTS = "counts"  # an estimator that is given counts where all data are counts
MEASURED = "measured"  # one that is given the values as measured
Z_SCORES = "z"  # one that is given each gene of each set with mean 0 and deviation 1


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """One classifier of the experiments; classifiers.toml explains the fields."""

    name: str
    words: str
    estimator: str | None = None
    family: str | None = None
    grid: dict[str, tuple] = field(default_factory=dict)
    experiments: Sequence[str] = (BINARY, WHOLE)
    peer: str | None = None
    needs: str | None = None
    sees: str = MEASURED
    genes: str = "genes_"
    title: str = ""
    sizes: str = "optirank_lab.benchmark.rivals:all_genes"

    @property
    def in_tables(self) -> str:
        """Its name in the tables of the curve."""
        return self.title or self.name

    def at_sizes(self, X: NDArray, y: NDArray, seed: int) -> Iterator[AtSize]:
        """It fitted at each number of genes, with the parameters of its grid."""
        fixed = {key: values[0] for key, values in self.grid.items()}
        return _find(self.sizes)(partial(self.make, seed, **fixed), X, y)

    def make(self, seed: int | None = None, **params) -> Any:
        """The estimator with these parameters; all that it draws is from the seed."""
        model = _find(self.estimator)(**params)
        if seed is not None:
            drawn = [key for key in model.get_params() if key.endswith("random_state")]
            model.set_params(**dict.fromkeys(drawn, seed % 2**31))
        return model

    def make_family(self, grid: dict[str, tuple], **options) -> Family:
        """The family over a grid: its fields are the parameters in the plural,
        ``l1s`` for l1.
        """
        return _find(self.family)(
            **{f"{key}s": values for key, values in grid.items()}, **options
        )

    def n_genes(self, model: Any) -> int:
        """Number of genes a fitted estimator needs."""
        if not self.genes:
            return model.n_features_in_
        parts = model.estimators_ if isinstance(model, OneVsRestClassifier) else [model]
        weights = np.vstack([getattr(part, self.genes) for part in parts])
        return int(np.count_nonzero(weights.any(axis=0)))

    def grid_of(self, profile: Profile, *, whole: bool) -> dict[str, tuple]:
        """The grid in a profile; with all classes at once only what has a
        single value.
        """
        grid = {
            key: profile.grids.get(key, values) for key, values in self.grid.items()
        }
        return (
            {k: v for k, v in grid.items() if len(self.grid[k]) == 1} if whole else grid
        )

    def n_settings(self, profile: Profile, *, whole: bool) -> int:
        """Size of the grid."""
        return prod(map(len, self.grid_of(profile, whole=whole).values()))


def _find(what: str | Callable | None) -> Callable:
    if what is None:
        raise ValueError("this classifier of classifiers.toml names no estimator")
    if callable(what):
        return what
    module, _, name = what.partition(":")
    return getattr(import_module(module), name)


def _read() -> Iterator[Classifier]:
    content = (
        files("optirank_lab.benchmark").joinpath("classifiers.toml").read_text("utf-8")
    )
    tables = tomllib.loads(content)
    values = tables.pop("values")
    for name, table in tables.items():
        listed = table.pop("grid", {})  # a text is the name of some values
        grid = {
            key: tuple(values[listing] if isinstance(listing, str) else listing)
            for key, listing in listed.items()
        }
        yield Classifier(name=name, grid=grid, **table)


CLASSIFIERS = {classifier.name: classifier for classifier in _read()}
"""All of them, in the order of tables."""

PAPER_CLASSIFIERS = ("panel", "optirank", "rank-lr", "ANrank-lr", "lr", "SCN", "rf")


def get(name: str) -> Classifier:
    """The classifier of that name."""
    if name not in CLASSIFIERS:
        raise ValueError(
            f"classifier {name!r} is not known: use one of {', '.join(CLASSIFIERS)}"
        )
    return CLASSIFIERS[name]


def names_for(experiment: str) -> list[str]:
    """The classifiers that can take part in the "binary", "synthetic", "whole" or
    "curve" experiment.
    """
    return [
        name
        for name, classifier in CLASSIFIERS.items()
        if experiment in classifier.experiments
    ]


def ordered(names: Iterable[str]) -> list[str]:
    """Names in the order of the registry, others behind."""
    known = list(CLASSIFIERS)
    return sorted(
        set(names), key=lambda n: (known.index(n) if n in known else len(known), n)
    )


def choose(names: Sequence[str], problems: str) -> dict[str, list[str]]:
    """The classifiers of a run by "binary" and "whole", those of ``problems`` ("both":
    of each).

    Without names: for binary problems the paper's and the panel model, else all there
    are.
    """
    asked = (BINARY, WHOLE) if problems == "both" else (problems,)
    can = {experiment: names_for(experiment) for experiment in asked}
    for name in names:
        if not any(name in known for known in can.values()):
            known = ", ".join(ordered({*chain(*can.values())}))
            raise ValueError(
                f"classifier {name!r} is not known for --problems {problems}: use one "
                f"of {known}"
            )
    default = {BINARY: list(PAPER_CLASSIFIERS), WHOLE: names_for(WHOLE)}
    return {
        experiment: [
            name
            for name in ordered(names or default[experiment])
            if name in can[experiment]
        ]
        for experiment in asked
    }
