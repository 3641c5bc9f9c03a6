"""The study "at the same number of genes": accuracy against genes over all pairs of a folder.

For every ordered pair of sets and k = 10, 20, 30, 50, 100, 300 (all genes where there are fewer):
at most 200 training samples of each class, 300 samples of the query, the 3000 genes of best t
statistic as candidates. The methods:

- LR and SVM on ranks of the k genes of best t statistic, ranked among themselves;
- LR on ranks of the k genes of largest weight in LR on ranks of all candidates;
- L1 logistic regression on log values, the penalty of a path whose number of genes is nearest to k;
- k-TSP with about k genes;
- the panel model.

"all" stands for all candidates: LR and SVM on their ranks, LR on their log values.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import l1_min_c

from optirank import __version__
from optirank._util.files import replacing, write_text
from optirank._util.metrics import balanced_accuracy
from optirank._util.workers import one_blas_thread
from optirank_lab.baselines.nearest_mean import l1_lr, lr_on_ranks, svm_on_ranks
from optirank_lab.benchmark.designs import RealTasks, best_genes
from optirank_lab.benchmark.report import curve_figure, missing_extra
from optirank_lab.benchmark.sets import Set
from optirank_lab.benchmark.splits import at_most
from optirank_lab.benchmark.statistics import bootstrap_interval, left_out
from optirank_lab.benchmark.tasks import Task

SIZES = (10, 20, 30, 50, 100, 300)
ALL = "all"
MOST_PER_CLASS = 200  # training samples: many pairs in little time
MOST_OF_QUERY = 300  # samples: a balanced accuracy to a few points
CANDIDATES = 3000  # genes: what a careful person keeps before fitting
_PENALTIES = 16  # of the l1 path: enough to come within a few genes of 10, 20 and 30
_WEAKEST = 3000.0  # end of that path, times the penalty that leaves no gene
COLUMNS = [
    *(
        "pair",
        "tissue",
        "n_train",
        "n_query",
        "n_classes",
        "n_candidates",
        "method",
        "k",
    ),
    *("n_genes", "balanced_accuracy"),
]


def run(
    data: Path,
    pairs: tuple[Task, ...],
    out: Path,
    jobs: int = 1,
    done: Callable[[], None] = lambda: None,
) -> pd.DataFrame:
    """Evaluate all pairs; the CSV grows with every pair, and pairs that it has are not run again.

    Its first line names the command, the versions and the date.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    table = read(out) if out.is_file() else pd.DataFrame(columns=COLUMNS)
    table = table[table["pair"].isin([pair.name for pair in pairs])]
    waiting = [pair for pair in pairs if pair.name not in set(table["pair"])]
    for _ in range(len(pairs) - len(waiting)):
        done()
    source = RealTasks(Path(data).resolve(), pairs)
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    order = {pair.name: k for k, pair in enumerate(pairs)}
    for rows in parallel(delayed(evaluate)(source, pair) for pair in waiting):
        new = pd.DataFrame(rows, columns=COLUMNS)
        table = pd.concat([table, new], ignore_index=True) if len(table) else new
        table = table.sort_values("pair", key=lambda one: one.map(order), kind="stable")
        write_text(out, header() + table.to_csv(index=False))
        done()
    return table.reset_index(drop=True)


def read(path: Path) -> pd.DataFrame:
    """The table of a CSV of this study."""
    table = pd.read_csv(path, comment="#", dtype={"k": str})
    if list(table.columns) != COLUMNS:
        raise ValueError(f"{path} is not a table of this study: name another file")
    return table


def header() -> str:
    """The line above a table: how it was made."""
    used = [f"optirank {__version__}", f"Python {platform.python_version()}"]
    used += [f"{name} {version(name)}" for name in ("scikit-learn", "numpy")]
    return (
        f"# optirank benchmark curve; {', '.join(used)}; {date.today().isoformat()}\n"
    )


def evaluate(source: RealTasks, pair: Task) -> list[tuple]:
    """The rows of one pair, in the order of `COLUMNS`."""
    (design,) = source.designs(pair.name)
    random = np.random.default_rng(0)
    train = design.source.take(at_most(design.source.labels, MOST_PER_CLASS, random))
    query = design.tests[pair.name]
    kept = random.permutation(len(query.labels))[:MOST_OF_QUERY]
    order = best_genes(train, CANDIDATES)  # best first
    train, query = train.take(slice(None), order), query.take(np.sort(kept), order)
    sizes = (len(train.labels), len(query.labels), len(design.classes), len(order))
    with one_blas_thread():
        rows = [
            (method, str(k), n_genes, round(balanced_accuracy(query.labels, labels), 6))
            for method, k, n_genes, labels in _methods(train, query)
        ]
    return [(pair.name, pair.tissue, *sizes, *row) for row in rows]


def _methods(train: Set, query: Set) -> Iterator[tuple[str, int | str, int, NDArray]]:
    """Method, k, genes used and labels of the query, one after the other."""
    from optirank import PanelClassifier, TopScoringPairsClassifier

    y, d = train.labels, len(train.genes)
    raw, other = _dense(train.raw), _dense(query.raw)
    sizes = {k: min(k, d) for k in SIZES}
    full = lr_on_ranks().fit(raw, y)
    yield "LR on ranks, best t", ALL, d, full.predict(other)
    yield "SVM on ranks, best t", ALL, d, svm_on_ranks(0).fit(raw, y).predict(other)
    by_weight = np.argsort(-np.abs(full[-1].coef_).max(axis=0), kind="stable")
    for k, n in sizes.items():  # genes come in the order of their t statistics
        best, heavy = slice(n), np.sort(by_weight[:n])
        for name, genes, model in (
            ("LR on ranks, best t", best, lr_on_ranks()),
            ("SVM on ranks, best t", best, svm_on_ranks(0)),
            ("LR on ranks, largest weights", heavy, lr_on_ranks()),
        ):
            yield name, k, n, model.fit(raw[:, genes], y).predict(other[:, genes])
    logs, other_logs = _dense(train.values), _dense(query.values)
    plain = LogisticRegression(class_weight="balanced", max_iter=1000).fit(logs, y)
    yield "LR on log values", ALL, d, plain.predict(other_logs)
    yield from _l1(logs, y, other_logs, sizes)
    n_problems = 1 if len(full.classes_) == 2 else len(full.classes_)
    for (
        k,
        n,
    ) in (
        sizes.items()
    ):  # pairs per class that make about k genes, an odd number of them
        pairs = max(1, round(n / (2 * n_problems)))
        model = TopScoringPairsClassifier(pairs - 1 + pairs % 2).fit(raw, y)
        yield "k-TSP", k, int(model.genes_.sum()), model.predict(other)
    largest = PanelClassifier(n_genes=max(sizes.values())).fit(raw, y)
    for (
        k,
        n,
    ) in (
        sizes.items()
    ):  # smaller panels are on the path of the largest where it has them
        on_path = n in largest.path_
        model = (
            largest.smaller(n) if on_path else PanelClassifier(n_genes=n).fit(raw, y)
        )
        yield "panel", k, len(model.panel_), model.predict(other)


def _l1(
    X: NDArray, y: NDArray, query: NDArray, sizes: dict[int, int]
) -> Iterator[tuple]:
    """L1 logistic regression: for each k the penalty whose number of genes is nearest."""
    path = np.geomspace(1.0, _WEAKEST, _PENALTIES + 1)[1:] * l1_min_c(X, y, loss="log")
    found = {}
    for C in path:
        model = l1_lr(C, 0).fit(X, y)
        n_genes = int(
            np.any([part.coef_ != 0 for part in model.estimators_], axis=0).sum()
        )
        if n_genes:
            found[n_genes] = model.predict(query)
        if n_genes > max(sizes.values()):
            break
    for k, wanted in sizes.items():
        nearest = min(found, key=lambda n: abs(np.log(n / wanted)))
        yield "L1 LR on log values", k, nearest, found[nearest]


def _dense(X) -> NDArray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float32)


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over pairs of each method and k with a 95 % interval over tissues, and median genes."""
    groups = table.groupby(["method", "k"], sort=False)
    frame = groups.agg(
        n_genes=("n_genes", "median"), mean=("balanced_accuracy", "mean")
    )
    frame[["low", "high"]] = [
        bootstrap_interval(part["balanced_accuracy"], part["tissue"])
        for _, part in groups
    ]
    frame = frame.reset_index()
    place = {str(k): n for n, k in enumerate((*SIZES, ALL))}
    return frame.sort_values(
        "k", key=lambda one: one.map(place), kind="stable", ignore_index=True
    )


def write_left_out(table: pd.DataFrame, out: Path) -> Path | None:
    """Write what the best number of genes is worth where it was chosen without a tissue.

    One row per method and tissue, in ``NAME-left-out.csv`` beside the CSV; None for one tissue.
    """
    if table["tissue"].nunique() < 2:
        return None
    sizes = table[table["k"] != ALL]
    columns = {"k": "setting", "balanced_accuracy": "score"}
    frames = [
        left_out(rows.rename(columns=columns)).assign(method=method)
        for method, rows in sizes.groupby("method", sort=False)
    ]
    path = out.with_name(f"{out.stem}-left-out.csv")
    write_text(path, header() + pd.concat(frames).to_csv(index=False))
    return path


def draw(table: pd.DataFrame, out: Path) -> Path | None:
    """Write the figure of accuracy against genes beside the CSV; None without matplotlib."""
    if missing_extra():
        return None
    path = out.with_suffix(".png")
    with replacing(path) as temporary:
        curve_figure(means(table)).savefig(temporary, format="png", dpi=160)
    return path
