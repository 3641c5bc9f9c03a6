"""Falling back to a coarser label against withholding it, from one platform to another.

    python benchmarks/study_tree.py [--data DIR] [--out DIR] [--jobs N] [--quick]

A model of 100 genes is trained on the finest labels of one set, as `optirank train`
makes it, and labels another. "flat" withholds labels below a threshold; "tree" gives
the deepest label of the tree that reaches it, led down by the most probable label; "best
leaf" does the same on the way to the most probable leaf. A label above the truth is
right. All shares count the classes of the query equally.

tree        labels given from 5 % to 100 %: the share of them that is right, and the
            share of all samples that have their finest label
tree_error  at errors of 1, 2, 5 and 10 %: the most labels that can be given (with the
            truth known), and what error control gives and gets wrong

Pairs whose sets are not in the folder are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from studies import Rows, collect, option_parser, profiles_of

from optirank._util.work import one_blas_thread
from optirank.model.confidence import NEVER, fit_error_control, raise_threshold
from optirank.model.tree import Descent, Tree
from optirank.ranks.scoring import best_class
from optirank.verbs.training import TrainingOptions, train
from optirank_lab.benchmark.sets import Set, common_genes, load
from optirank_lab.benchmark.tasks import BenchmarkTask
from optirank_lab.data.registry import local_paths

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from optirank import Model

COVERAGES = np.arange(1, 21) / 20
ERRORS = (0.01, 0.02, 0.05, 0.1)
FEWEST = 3  # samples of a class that can be trained
CERTAIN = float(np.nextafter(1.0, 2.0))  # a threshold that no label reaches

TREES = {
    "blood": {
        "lymphoid": "",
        "myeloid": "",
        "b": "lymphoid",
        "t": "lymphoid",
        "cd4 t": "t",
        "cd8 t": "t",
        "nk": "lymphoid",
        "monocyte": "myeloid",
        "cd14 monocyte": "monocyte",
        "fcgr3a monocyte": "monocyte",
        "dendritic": "myeloid",
    },
    "mouse brain": {
        "neuron": "",
        "excitatory": "neuron",
        "hippocampus excitatory": "excitatory",
        "s1 excitatory l23": "excitatory",
        "s1 excitatory l45a": "excitatory",
        "interneuron": "neuron",
        "astrocyte": "",
        "astrocyte1": "astrocyte",
        "astrocyte2": "astrocyte",
        "oligodendrocyte": "",
        "oligo mature": "oligodendrocyte",
        "oligo mf": "oligodendrocyte",
        "vascular": "",
        "endothelial2": "vascular",
        "vsmc": "vascular",
        "pvm": "vascular",
    },
    "pancreas": {
        "endocrine": "",
        "alpha": "endocrine",
        "beta": "endocrine",
        "delta": "endocrine",
        "gamma": "endocrine",
        "epsilon": "endocrine",
        "exocrine": "",
        "acinar": "exocrine",
        "ductal": "exocrine",
        "stromal": "",
        "stellate": "stromal",
        "endothelial": "stromal",
        "schwann": "stromal",
        "immune": "",
    },
}
NAMES = {  # of the sets, as the laboratory harmonises them, for labels of the trees
    "t cd4": "cd4 t",
    "t cd8": "cd8 t",
    "mono cd14": "cd14 monocyte",
    "mono cd16": "fcgr3a monocyte",
    "mono": "monocyte",
    "activated stellate": "stellate",
    "quiescent stellate": "stellate",
    "macrophage": "immune",
    "mast": "immune",
    "t cell": "immune",
    "b cell": "immune",
    "immune other": "immune",
}
_BLOOD = ("pbmc3k", "pbmc_3pv1", "pbmc_3pv2", "pbmc_5p")
PAIRS = {
    "blood": [
        *((a, b) for a in _BLOOD for b in _BLOOD if a != b),
        *((a, "pbmc68k_reduced") for a in _BLOOD),
        *((a, b) for a in _BLOOD for b in ("kang_pbmc_ctrl", "kang_pbmc_stim")),
        ("kang_pbmc_stim", "pbmc3k"),
    ],
    "mouse brain": [("gps_sc", "gps_osmfish"), ("gps_osmfish", "gps_sc")],
    "pancreas": [
        ("baron_h1", "segerstolpe_1000g"),
        ("baron_h1", "lawlor_markers"),
        ("baron_h1", "wang_markers"),
        ("segerstolpe_1000g", "baron_h1"),
        ("lawlor_markers", "wang_markers"),
        ("wang_markers", "lawlor_markers"),
        ("baron_mouse", "tm_facs_pancreas"),
        ("tm_facs_pancreas", "baron_mouse"),
    ],
}


class Pair(NamedTuple):
    """A training set and a query, and the tree of their labels."""

    tissue: str
    reference: str
    query: str


@dataclass(frozen=True)
class Way:
    """Labels of some samples from coarse to fine, and whether they are right."""

    confidence: NDArray  # (n, levels)
    right: NDArray
    truth: NDArray  # of the samples, as positions of labels
    weights: NDArray  # by which classes count the same

    def given(self, threshold: float) -> tuple[float, float, float]:
        """The share of labels given, right among them, and finest of all samples."""
        n_sure = (self.confidence >= threshold).sum(axis=1)
        labelled = n_sure > 0
        right = self.right[np.arange(len(n_sure)), np.maximum(n_sure - 1, 0)]
        total = self.weights[labelled].sum()
        n_right = self.weights[labelled & right].sum()
        finest = self.weights[n_sure == self.confidence.shape[1]].sum()
        whole = self.weights.sum()
        return total / whole, n_right / total if total else np.nan, finest / whole

    def threshold_of(self, coverage: float) -> float:
        """The threshold at which this share of the samples has a label."""
        top = self.confidence[:, 0]
        order = np.argsort(-top, kind="stable")
        share = np.cumsum(self.weights[order]) / self.weights.sum()
        return float(top[order[np.searchsorted(share, coverage - 1e-9)]])


def main() -> None:
    args = option_parser(__doc__).parse_args()
    there = local_paths(args.data)
    pairs = [
        Pair(tissue, *names)
        for tissue, of_tissue in PAIRS.items()
        for names in of_tissue
        if all(name in there for name in names)
    ]
    if not pairs:
        sys.exit(f"no pair of sets with a tree of labels in {args.data}")
    if args.quick:
        pairs = list({pair.tissue: pair for pair in reversed(pairs)}.values())
    parallel = Parallel(n_jobs=args.jobs, return_as="generator")
    parts = parallel(delayed(study)(pair, args.data) for pair in pairs)
    tables = collect(parts, args, len(pairs))
    print(by_tissue(tables["tree"], "coverage", "right").to_string())
    print(by_tissue(tables["tree_error"], "error", "most_given").to_string())


def by_tissue(table: pd.DataFrame, key: str, value: str) -> pd.DataFrame:
    """The mean over the pairs of each tissue."""
    means = table.groupby(["tissue", "labels", key])[value].mean()
    return means.unstack(key).round(3)


def study(pair: Pair, data: Path) -> Rows:
    """The rows of one pair."""
    whole = Tree(TREES[pair.tissue])
    task = BenchmarkTask(
        name=pair.reference, title="", train=(pair.reference,), test=pair.query,
        label="cell_type", merge=tuple(NAMES.items()),
    )  # fmt: skip
    reference, query = (load(name, task, data) for name in pair[1:])
    genes = common_genes([reference, query])
    reference = trainable(cut(reference, genes), whole)
    tree = whole.of_classes(np.unique(reference.labels))
    query = cut(query, genes)
    query = query.take(np.flatnonzero(np.isin(query.labels, tree.labels)))
    with one_blas_thread():
        options = TrainingOptions(label="label", n_genes=min(100, len(genes)), n_jobs=1)
        result = train(profiles_of(reference), options)
    model = result.model
    scores = np.column_stack(
        [result.held_out[f"score_{name}"] for name in model.classes]
    )
    held_out = ways_of(tree, model, scores, result.held_out["label"].to_numpy())
    scores = model.decision_function(query.raw, map(str, query.genes))
    labelled = ways_of(tree, model, scores, query.labels)
    about = {"pair": f"{pair.reference} to {pair.query}", "tissue": pair.tissue}
    rows: Rows = {"tree": [], "tree_error": []}
    for name, way in labelled.items():
        start = about | {"labels": name}
        rows["tree"] += [start | row for row in curve(way)]
        rows["tree_error"] += [start | row for row in errors(way, held_out[name])]
    return rows


def cut(samples: Set, genes: NDArray) -> Set:
    """A set with these genes."""
    place = {gene: column for column, gene in enumerate(samples.genes)}
    return samples.take(slice(None), np.array([place[gene] for gene in genes]))


def trainable(samples: Set, tree: Tree) -> Set:
    """The samples of classes that are leaves, as far as the set has finer ones."""
    names, counts = np.unique(samples.labels, return_counts=True)
    kept = names[(counts >= FEWEST) & np.isin(names, tree.labels)]
    inner = {up for name in kept for up in tree.path(name)[:-1]}
    rows = np.isin(samples.labels, [name for name in kept if name not in inner])
    return samples.take(np.flatnonzero(rows))


def ways_of(
    tree: Tree, model: Model, scores: NDArray, labels: NDArray
) -> dict[str, Way]:
    """The three ways to label samples by their scores."""
    calibrated = model.panel.probabilities(np.maximum(scores, NEVER))
    truth = np.array([tree.place[str(name)] for name in labels])
    _, codes, counts = np.unique(truth, return_inverse=True, return_counts=True)
    weights = 1.0 / counts[codes]
    best = np.array([tree.place[str(name)] for name in model.classes])
    best = best[best_class(scores)]
    whole = tree.probabilities(calibrated, model.classes)
    flat = Descent(best[:, None], whole[np.arange(len(best)), best][:, None])
    path = tree.paths[best]
    ways = {
        "flat": flat,
        "tree": tree.descend(calibrated, model.classes),
        "best leaf": Descent(path, np.take_along_axis(whole, path, axis=1)),
    }
    return {
        name: Way(way.confidence, way.right(tree, truth), truth, weights)
        for name, way in ways.items()
    }


def curve(way: Way) -> Iterator[dict]:
    """What is right of the labels given, by the share that is given."""
    for coverage in COVERAGES:
        given, right, finest = way.given(way.threshold_of(coverage))
        yield {"coverage": coverage, "given": given, "right": right, "finest": finest}


def errors(way: Way, held_out: Way) -> Iterator[dict]:
    """The most labels at each error, and what error control gives."""
    control = fit_error_control(held_out.confidence, held_out.right, held_out.truth)
    thresholds = np.unique(way.confidence)
    points = np.array([way.given(threshold) for threshold in thresholds])
    for error in ERRORS:
        fits = points[1.0 - points[:, 1] <= error]
        row = {"error": error, "most_given": fits[:, 0].max(initial=0.0)}
        try:
            threshold = control.at(error)[0]
        except ValueError:
            threshold = CERTAIN
        threshold = raise_threshold(way.confidence, threshold, error)
        given, right, finest = way.given(threshold)
        yield row | {"given": given, "error_found": 1.0 - right, "finest": finest}


if __name__ == "__main__":
    main()
