"""Agreement of other genes: what tells right queries from wrong and scrambled ones.

    python benchmarks/study_agreement.py [--data DIR] [--out DIR] [--jobs N] [--quick]

Every set of a pair trains a model (100 genes) that labels queries of at most 300, 40
and 15 samples, without any truth:

right        the other sets of its pairs (DIR/pairs.csv has them, else all pairs of an
             organ are taken), with all their samples, also those of classes
             that the training lacks; where they have less than half of the panel's
             genes, by a model of the common genes
wrong        six sets of other organs that have half of the panel's genes
scrambled    the right ones, with the names of their genes permuted
few genes    right and wrong ones as an assay of few genes has them: sets that have less
             than half of the panel's genes, and all others with 300 genes at random

The shipped models label every set that they were not trained on. Written to
agreement.csv: the agreement, the median likeness, the mean confidence, and the balanced
accuracy of right queries over the classes that both have.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from studies import Rows, collect, labelled, options, pairs_of, trained

from optirank import load
from optirank._util.numbers import balanced_accuracy
from optirank._util.work import one_blas_thread
from optirank.data.opening import open_profiles
from optirank.model import MissingGenesError
from optirank.model.file import SHIPPED, SUFFIX
from optirank_lab.benchmark import sets
from optirank_lab.benchmark.tasks import BenchmarkTask
from optirank_lab.data.registry import local_paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank import Model
    from optirank_lab.benchmark.sets import Set

SIZES = (300, 40, 15)  # samples of a query, at most
SAME_CELLS = {  # of training sets, under other names
    "pbmc3k_all": ("pbmc3k",),
    "sorted_zheng": ("sorted5_mudan", "bt_mudan"),
}
N_WRONG = 6  # sets of other organs per reference, with many and with few genes
N_FEW = 300  # genes of an assay
FEW = ", few genes"
PER_CLASS = 200  # training samples
ORGANS = {  # by the beginnings of names; other sets are of no organ
    "blood": "kang pbmc sorted5 bt_ tb_ tm_10x zilionis immune4 golub armstrong all_",
    "pancreas": "baron segerstolpe xin cepo lawlor wang tm_facs_pancreas",
    "breast": "nki_er vdx_er expo_er brer brca brsub",
    "colon": "colontn crc tcga_crc",
    "ovary": "ovtn ovhist",
    "brain": "brain gps tasic zeisel glia starmap",
    "cell lines": "cellbench cycle",
    "embryo": "embryo mesc stemfib",
    "bladder": "bladder",
    "kidney": "kidney",
    "lung": "lung",
    "prostate": "prostate",
    "round cell tumours": "khan",
}


class Query(NamedTuple):
    """A set to label, and what it is to the reference."""

    kind: str
    samples: Set


def main() -> None:
    args = options(__doc__)
    queries = right_queries(args)
    names = (
        [] if args.quick else sorted(path.stem for path in SHIPPED.glob(f"*{SUFFIX}"))
    )
    every = sorted(local_paths(args.data))
    tasks = [
        delayed(of_reference)(args.data, name, queries[name], every) for name in queries
    ]
    tasks += [delayed(of_shipped)(args.data, name, every) for name in names]
    parts = Parallel(n_jobs=args.jobs, return_as="generator")(tasks)
    tables = collect(parts, args, len(tasks))
    of_300 = tables["agreement"].query("size == 300")
    print(of_300.groupby("kind")["agreement"].describe().round(3).to_string())


def right_queries(args: argparse.Namespace) -> dict[str, list[str]]:
    """The queries of each training set: those of pairs.csv in the folder, where it is
    there, else of all pairs of one organ.
    """
    listed = args.data / "pairs.csv"
    if listed.is_file() and not args.quick:
        table = pd.read_csv(listed)
        pairs = list(zip(table["reference"], table["query"], strict=True))
    else:
        found = [(pair.train[0], str(pair.test)) for pair in pairs_of(args)]
        pairs = [pair for pair in found if organ_of(pair[0]) == organ_of(pair[1])]
    queries: dict[str, list[str]] = {}
    for reference, query in pairs:
        queries.setdefault(reference, []).append(query)
    return queries


def of_reference(
    data: Path, name: str, right: Sequence[str], every: Sequence[str]
) -> Rows:
    """The rows of one training set."""
    with one_blas_thread():
        reference = whole_set(data, name)
        model = trained(reference, per_class=PER_CLASS)
        rows = Rows(agreement=[])
        for test in right:
            query = whole_set(data, test)
            own = model
            add_few(rows, model, name, Query("right", query))
            if found(model, query.genes) < 0.5:
                genes = sets.common_genes([reference, query])
                columns = np.flatnonzero(np.isin(reference.genes, genes))
                own = trained(reference.take(slice(None), columns), per_class=PER_CLASS)
            add(rows, own, name, Query("right", query))
            add(rows, own, name, Query("scrambled", scrambled(query)))
        for query in wrong_queries(data, model, name, every):
            if not query.kind.endswith(FEW):
                add(rows, model, name, query)
            add_few(rows, model, name, query)
    return rows


def of_shipped(data: Path, name: str, every: Sequence[str]) -> Rows:
    """The rows of a model that comes with optirank, on sets that it has not seen."""
    with one_blas_thread():
        model = load(name)
        parts = [
            part.strip().removesuffix(".h5ad") for part in model.card.source.split(",")
        ]
        seen = [*parts, *(name for part in parts for name in SAME_CELLS.get(part, ()))]
        rows = Rows(agreement=[])
        for other in every:
            if other not in seen and organ_of(other):
                same = organ_of(other) == organ_of(parts[0])
                query = Query("same organ" if same else "wrong", whole_set(data, other))
                if found(model, query.samples.genes) >= 0.5:
                    add(rows, model, name, query)
                add_few(rows, model, name, query)
    return rows


def wrong_queries(
    data: Path, model: Model, name: str, every: Sequence[str]
) -> Iterator[Query]:
    """Some sets of other organs that have half of the panel's genes, and some that
    have fewer.
    """
    others = [other for other in every if organ_of(other) not in ("", organ_of(name))]
    n_found = {"wrong": 0, f"wrong{FEW}": 0}
    for place in random_of(name).permutation(len(others)):
        if not organ_of(name):
            return
        with open_profiles(data / f"{others[place]}.h5ad") as opened:
            share = found(model, opened.genes)
        kind = "wrong" if share >= 0.5 else f"wrong{FEW}"
        n_found[kind] += 1
        if n_found[kind] <= N_WRONG:
            yield Query(kind, whole_set(data, others[place]))


def add_few(rows: Rows, model: Model, name: str, query: Query) -> None:
    """Label a query as an assay of few genes has it."""
    samples = query.samples
    if found(model, samples.genes) >= 0.5:
        if len(samples.genes) < 2 * N_FEW:
            return
        order = random_of(samples.name).permutation(len(samples.genes))
        samples = samples.take(slice(None), np.sort(order[:N_FEW]))
    few = Query(query.kind.removesuffix(FEW) + FEW, samples)
    add(rows, model, name, few, SIZES[:1])


def add(
    rows: Rows,
    model: Model,
    name: str,
    query: Query,
    sizes: Sequence[int] = SIZES,
) -> None:
    """Label a query of each size."""
    samples = replace(query.samples, genes=_upper(query.samples.genes))
    order = random_of(f"{name} {samples.name}").permutation(len(samples.labels))
    for size in sizes:
        about = {
            "reference": name,
            "query": samples.name,
            "organ": organ_of(name),
            "kind": query.kind,
            "size": size,
        }
        try:
            row = measure(upper(model), samples.take(np.sort(order[:size])))
        except MissingGenesError:
            return
        rows["agreement"].append(about | row)


def measure(model: Model, samples: Set) -> dict:
    """What is known of a query without truth, and how right its labels are."""
    labels = labelled(model, samples)
    checks = labels.checks
    given = labels.classes[labels.chosen]
    known = np.isin(samples.labels, labels.classes)
    return {
        "n_samples": len(given),
        "n_classes": len(labels.classes),
        "genes_missing": checks.missing,
        "likeness": checks.likeness,
        "confidence": labels.confidence.mean(),
        "agreement": np.nan if checks.agreement is None else checks.agreement,
        "accuracy": balanced_accuracy(samples.labels[known], given[known]),
        "known": known.mean(),
    }


def upper(model: Model) -> Model:
    """A model whose genes are in upper case: symbols of mice are found by human ones."""
    panels = {
        size: replace(panel, genes=_upper(panel.genes))
        for size, panel in model.panels.items()
    }
    further = model.further and replace(
        model.further, genes=_upper(model.further.genes)
    )
    return replace(model, panels=panels, further=further)


def _upper(genes: NDArray) -> NDArray:
    return np.array([str(gene).upper() for gene in genes], dtype=object)


def found(model: Model, genes: NDArray) -> float:
    """The share of the panel's genes that are among some genes."""
    return float(np.isin(_upper(model.genes), _upper(genes)).mean())


def scrambled(samples: Set) -> Set:
    """The same samples, with the names of their genes permuted."""
    order = random_of(samples.name).permutation(len(samples.genes))
    return replace(samples, genes=samples.genes[order])


def organ_of(name: str) -> str:
    """The organ of a set; "" where it is of several, or not known."""
    return next(
        (
            organ
            for organ, beginnings in ORGANS.items()
            if name.startswith(tuple(beginnings.split()))
        ),
        "",
    )


def whole_set(data: Path, name: str) -> Set:
    """A set with all its genes and labelled samples; upper case makes no gene double."""
    task = BenchmarkTask(name=name, title=name)
    samples = sets.load(name, task, data)
    _, first = np.unique(_upper(samples.genes), return_index=True)
    return samples.take(slice(None), np.sort(first))


def random_of(text: str) -> np.random.Generator:
    """The same random numbers for the same text."""
    return np.random.default_rng(zlib.crc32(text.encode()))


if __name__ == "__main__":
    main()
