"""What the studies share: pairs of real sets, one row per measurement, a CSV with its header.

Every study has the options ``--data DIR`` (default: OPTIRANK_DATA, else where `optirank datasets
fetch stand-ins` puts the sets), ``--out DIR`` (default: results), ``--jobs N`` and ``--quick`` (the
first pair of each tissue, or one seed).
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable, Iterable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import sparse
from tables import RESULTS

from optirank import __version__
from optirank._util.workers import one_blas_thread
from optirank.datasets import ExpressionData
from optirank.model import Predictor
from optirank.workflow.train import TrainingOptions, train
from optirank_lab.benchmark.designs import RealTasks
from optirank_lab.benchmark.splits import at_most
from optirank_lab.benchmark.tasks import find_pairs
from optirank_lab.data.registry import data_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.estimators.panel_classifier import PanelClassifier
    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import Task

Rows = dict[str, list[dict]]  # of each CSV, by its name


def options(description: str) -> argparse.Namespace:
    """Read the options of a study."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=data_folder(), help="folder of .h5ad files"
    )
    parser.add_argument(
        "--out", type=Path, default=RESULTS, help="folder of the CSV files"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--quick", action="store_true", help="a part of it, in minutes")
    return parser.parse_args()


def pairs_of(args: argparse.Namespace) -> tuple[Task, ...]:
    """Every ordered pair of sets of the folder, or the first of each tissue."""
    pairs, problems = find_pairs(args.data) if args.data.is_dir() else ((), {})
    for name, problem in problems.items():
        print(f"{name} cannot be read: {problem}", file=sys.stderr)
    if not pairs:
        sys.exit(
            f"no pair of sets in {args.data}: run optirank datasets fetch stand-ins"
        )
    first: dict[str, Task] = {}
    for pair in pairs:
        first.setdefault(pair.tissue, pair)
    return tuple(first.values()) if args.quick else pairs


def over_pairs(
    study: Callable[[Task, Set, Set], Rows], args: argparse.Namespace
) -> dict[str, pd.DataFrame]:
    """Run a study on every ordered pair of sets, and write its tables.

    ``study`` is told the pair, the training set and the query, over common genes and classes.
    """
    pairs = pairs_of(args)
    source = RealTasks(args.data.resolve(), pairs)
    parts = (delayed(_one_pair)(study, source, pair) for pair in pairs)
    return collect(
        Parallel(n_jobs=args.jobs, return_as="generator")(parts), args, len(pairs)
    )


def _one_pair(
    study: Callable[[Task, Set, Set], Rows], source: RealTasks, pair: Task
) -> Rows:
    (design,) = source.designs(pair.name)
    with one_blas_thread():
        found = study(pair, design.source, design.tests[pair.name])
    same = {"pair": pair.name, "tissue": pair.tissue}
    return {name: [same | row for row in rows] for name, rows in found.items()}


def collect(
    parts: Iterable[Rows], args: argparse.Namespace, total: int
) -> dict[str, pd.DataFrame]:
    """Gather the rows of all parts, and write one CSV per name."""
    gathered: Rows = {}
    for k, part in enumerate(parts, 1):
        for name, rows in part.items():
            gathered.setdefault(name, []).extend(rows)
        print(
            f"\r{k} of {total}",
            end="\n" if k == total else "",
            file=sys.stderr,
            flush=True,
        )
    tables = {name: pd.DataFrame(rows) for name, rows in gathered.items()}
    args.out.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        text = table.to_csv(index=False, float_format="%.6g")
        (args.out / f"{name}.csv").write_text(
            header(args.quick) + text, encoding="utf-8"
        )
        print(args.out / f"{name}.csv")
    return tables


def header(quick: bool = False) -> str:
    """The line above a table: how it was made."""
    command = f"python benchmarks/{Path(sys.argv[0]).name}{' --quick' if quick else ''}"
    used = [f"optirank {__version__}", f"Python {platform.python_version()}"]
    used += [f"{name} {version(name)}" for name in ("scikit-learn", "numpy")]
    return f"# {command}; {', '.join(used)}; {date.today().isoformat()}\n"


def trained(
    reference: Set, n_genes: int = 100, per_class: int | None = None
) -> PanelClassifier:
    """The model as `optirank train --genes N` makes it, on all samples or some of each class."""
    if per_class is not None:
        rows = at_most(reference.labels, per_class, np.random.default_rng(0))
        reference = reference.take(rows)
    samples = np.array([f"s{k}" for k in range(len(reference.labels))], dtype=object)
    obs = pd.DataFrame({"label": reference.labels}, index=samples)
    genes = np.asarray(reference.genes, dtype=object)
    data = ExpressionData(
        sparse.csr_matrix(reference.raw), genes, samples, obs, reference.name
    )
    n_genes = min(n_genes, len(genes))
    return train(data, TrainingOptions(label="label", n_genes=n_genes, n_jobs=1)).model


def scores_of(model: PanelClassifier, query: Set) -> NDArray:
    """Scores of a query, as `predict` computes them."""
    return Predictor(model, query.genes).scores(sparse.csr_matrix(query.raw))


def dense(X: NDArray | sparse.csr_array) -> NDArray:
    """A matrix as an array of numbers in single precision."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float32)
