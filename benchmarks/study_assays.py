"""Models on assays that they were not made for: the query has some of the model's
genes.

    python benchmarks/study_assays.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For at most two ordered pairs per tissue that share 900 genes or more, a model of 100
genes with the longer path (to 1000 genes) is trained on at most 100 samples per class.
The query is cut down to 100, 300, 500 and 1000 genes drawn at random (two draws), and
to the genes of the osmFISH and MERFISH sets. It is labelled by the model's own panel
alone, by the panel of the path that the query's genes serve best (as `predict` does),
and by a model that is trained for these genes (`train --for`). Written to assays.csv.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from optirank.io.reading import read_gene_names
from studies import (
    Rows,
    collect,
    labelled,
    options,
    pairs_of,
    profiles_of,
    rows_of_pairs,
)

from optirank._util.metrics import balanced_accuracy
from optirank.model import MissingGenesError
from optirank.verbs.options import TrainingOptions
from optirank.verbs.training import train
from optirank_lab.benchmark.splits import at_most
from optirank_lab.data.registry import find_path

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from optirank import Model
    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask

SIZES = (100, 300, 500, 1000)
DRAWS = 2
N_GENES = 100  # of the model's own panel
PER_CLASS = 100
PER_TISSUE = 2
FEWEST = 900  # common genes of a pair
PUBLISHED = {"osmFISH": "gps_osmfish", "MERFISH": "brain_merfish"}
SHARED = 10  # genes of a published panel that a pair must have


def main() -> None:
    args = options(__doc__)
    pairs = chosen_pairs(pairs_of(args), args.data)
    rows = rows_of_pairs(partial(study, panels=published(args.data)), pairs, args)
    table = collect(rows, args, len(pairs))["assays"]
    columns = ["present", "own panel", "best panel", "trained for it"]
    print(table.groupby(["genes", "n_genes"])[columns].mean().round(3).to_string())


def published(data: Path) -> dict[str, list[str]]:
    """The gene lists of published imaging panels whose sets are there."""
    files = {name: data / f"{stem}.h5ad" for name, stem in PUBLISHED.items()}
    return {
        name: read_gene_names(path) for name, path in files.items() if path.is_file()
    }


def chosen_pairs(pairs: Sequence[BenchmarkTask], data: Path) -> list[BenchmarkTask]:
    """At most two pairs of two platforms per tissue, with many common genes."""
    genes: dict[str, set[str]] = {}
    kept: list[BenchmarkTask] = []
    for pair in pairs:
        of_tissue = [one for one in kept if one.tissue == pair.tissue]
        if not pair.across_platforms or len(of_tissue) == PER_TISSUE:
            continue
        for name in pair.sets:
            if name not in genes:
                genes[name] = set(read_gene_names(find_path(name, data)))
        common = set.intersection(*(genes[name] for name in pair.sets))
        if len(common) >= FEWEST:
            kept.append(pair)
    return kept or list(pairs[:1])


def study(
    pair: BenchmarkTask, reference: Set, query: Set, panels: dict[str, list[str]]
) -> Rows:
    """One row per list of genes."""
    rng = np.random.default_rng(0)
    reference = reference.take(at_most(reference.labels, PER_CLASS, rng))
    query = query.take(at_most(query.labels, PER_CLASS, rng))
    model = trained(reference)
    own = replace(model, panels={model.n_genes: model.panel})
    rows = []
    for name, draw, genes in gene_lists(reference.genes, panels):
        cut = query.take(slice(None), genes)
        narrow = reference.take(slice(None), genes)
        best, size = accuracy(model, cut)
        present = np.isin(model.genes, cut.genes).sum()
        rows.append(
            {
                "genes": name,
                "n_genes": len(genes),
                "draw": draw,
                "present": int(present),
                "size": size,
                "own panel": accuracy(own, cut)[0],
                "best panel": best,
                "trained for it": accuracy(trained(narrow, N_GENES), cut)[0],
            }
        )
    return {"assays": rows}


def trained(reference: Set, n_genes: int | None = None) -> Model:
    """A model of 100 genes whose path goes on, or of at most so many of the genes
    there are.
    """
    size = "auto" if n_genes is None else min(n_genes, len(reference.genes))
    asked = TrainingOptions(label="label", n_genes=size, n_jobs=1)
    model = train(profiles_of(reference), asked).model
    if n_genes is not None or N_GENES not in model.panels:
        return model
    curve = {size: error for size, _, error in model.card.curve}
    card = replace(model.card, standard_error=curve[N_GENES])
    return replace(model, n_genes=N_GENES, card=card)


def gene_lists(
    genes: NDArray, panels: dict[str, list[str]]
) -> Iterator[tuple[str, int, NDArray]]:
    """Names of lists, the draw, and positions of their genes."""
    for size in (size for size in SIZES if size < len(genes)):
        for draw in range(DRAWS):
            rng = np.random.default_rng(draw)
            yield "random", draw, np.sort(rng.permutation(len(genes))[:size])
    for name, listed in panels.items():
        positions = np.flatnonzero(np.isin(genes.astype(str), listed))
        if len(positions) >= SHARED:
            yield name, 0, positions


def accuracy(model: Model, query: Set) -> tuple[float, int]:
    """Balanced accuracy on a query, and the size of the panel; NaN where it is
    refused.
    """
    try:
        labels = labelled(model, query)
    except MissingGenesError:
        return float("nan"), 0
    given = np.asarray(labels.classes)[labels.chosen]
    given = given.astype(query.labels.dtype)
    return balanced_accuracy(query.labels, given), model.n_genes


if __name__ == "__main__":
    main()
