"""What the studies share: pairs of real sets, one row per measurement, a CSV with its
header.

Every study has the options ``--data DIR`` (default: OPTIRANK_DATA, else where `optirank
datasets fetch stand-ins` puts the sets), ``--out DIR`` (default: results), ``--jobs N``
and ``--quick`` (one pair of some problems, or one seed).
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import sparse
from tables import RESULTS

from optirank._util.files import write_text
from optirank._util.work import one_blas_thread
from optirank.data import objects
from optirank.verbs.labelling import PredictOptions, label_profiles
from optirank.verbs.training import TrainingOptions, train
from optirank_lab.benchmark import curve
from optirank_lab.benchmark.designs import RealTasks
from optirank_lab.benchmark.pairs import shipped_pairs
from optirank_lab.benchmark.sets import dense
from optirank_lab.benchmark.splits import at_most
from optirank_lab.data.profiles import made
from optirank_lab.data.registry import data_folder

if TYPE_CHECKING:
    from optirank import Model
    from optirank.data.profiles import Profiles
    from optirank.verbs.labels import Labels
    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask

__all__ = [
    "ROOT",
    "Rows",
    "collect",
    "commit_of",
    "dense",
    "header",
    "labelled",
    "option_parser",
    "options",
    "over_pairs",
    "pairs_of",
    "profiles_of",
    "rows_of_pairs",
    "trained",
    "write_tables",
]

ROOT = Path(__file__).resolve().parent.parent
CODE = ("src", "lab", "benchmarks", "pyproject.toml")
QUICK_PAIRS = 12  # at most, so that all quick studies together take minutes
Rows = dict[str, list[dict]]  # of each CSV, by its name
PairStudy = Callable[["BenchmarkTask", "Set", "Set"], Rows]


def option_parser(description: str | None) -> argparse.ArgumentParser:
    """The options that every study has."""
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
    return parser


def options(
    description: str | None,
    add: Callable[[argparse.ArgumentParser], None] | None = None,
) -> argparse.Namespace:
    """Read the options of a study; ``add`` adds those that it alone has."""
    parser = option_parser(description)
    if add is not None:
        add(parser)
    return parser.parse_args()


def pairs_of(args: argparse.Namespace) -> tuple[BenchmarkTask, ...]:
    """The pairs of the evidence whose sets are in the folder; with ``--quick``, the
    first pair of some problems.
    """
    pairs = shipped_pairs(args.data)
    if not pairs:
        sys.exit(
            f"no pair of sets in {args.data}: run optirank-lab datasets fetch stand-ins"
        )
    first: dict[str, BenchmarkTask] = {}
    for pair in pairs:
        first.setdefault(pair.tissue, pair)
    if not args.quick:
        return pairs
    step = 1 + len(first) // QUICK_PAIRS
    return tuple(first.values())[::step]


def over_pairs(study: PairStudy, args: argparse.Namespace) -> dict[str, pd.DataFrame]:
    """Run a study on every ordered pair of sets, and write its tables."""
    pairs = pairs_of(args)
    return collect(rows_of_pairs(study, pairs, args), args, len(pairs))


def rows_of_pairs(
    study: PairStudy, pairs: Sequence[BenchmarkTask], args: argparse.Namespace
) -> Iterable[Rows]:
    """The rows of each pair, in order.

    ``study`` gets the pair, the training set and the query, over common genes and
    classes.
    """
    source = RealTasks(args.data.resolve(), tuple(pairs))
    parallel = Parallel(n_jobs=args.jobs, return_as="generator")
    return parallel(delayed(_rows_of_pair)(study, source, pair) for pair in pairs)


def _rows_of_pair(study: PairStudy, source: RealTasks, pair: BenchmarkTask) -> Rows:
    (design,) = source.designs(pair.name)
    query = design.tests[pair.name]
    if query is None:
        raise ValueError(f"{pair.name} has no query: name a pair of sets")
    with one_blas_thread():
        tables = study(pair, design.source, query)
    about = {"pair": pair.name, "tissue": pair.tissue, "shift": pair.shift}
    return {name: [about | row for row in rows] for name, rows in tables.items()}


def collect(
    parts: Iterable[Rows], args: argparse.Namespace, total: int
) -> dict[str, pd.DataFrame]:
    """Gather the rows of all parts, and write one CSV per name."""
    gathered: Rows = {}
    for number, part in enumerate(parts, 1):
        for name, rows in part.items():
            gathered.setdefault(name, []).extend(rows)
        end = "\n" if number == total else ""
        print(f"\r{number} of {total}", end=end, file=sys.stderr, flush=True)
    tables = {name: pd.DataFrame(rows) for name, rows in gathered.items()}
    write_tables(tables, args)
    return tables


def write_tables(tables: dict[str, pd.DataFrame], args: argparse.Namespace) -> None:
    """Write one CSV per name, with the line that says how it was made."""
    args.out.mkdir(parents=True, exist_ok=True)
    command = f"python benchmarks/{Path(sys.argv[0]).name}"
    first = header(f"{command} --quick" if args.quick else command, args.data)
    for name, table in tables.items():
        path = args.out / f"{name}.csv"
        write_text(path, first + table.to_csv(index=False, float_format="%.6g"))
        print(path)


def header(command: str, data: Path) -> str:
    """The line above a table: the command, the commit, a checksum of the folder of
    sets, versions and the date.
    """
    commit, changed = commit_of(ROOT)
    state = " with changes" if changed else ""
    sets = sorted(data.glob("*.h5ad"))
    digest = hashlib.sha256()
    for path in sets:
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    made_of = f"data {digest.hexdigest()[:12]} of {len(sets)} sets"
    return curve.header(f"{command} (commit {commit or 'unknown'}{state}, {made_of})")


def commit_of(folder: Path) -> tuple[str, list[str]]:
    """The commit that is run, "" where it is not known, and files that differ."""

    def output(*command: str) -> str:
        git = ["git", "-C", str(folder), *command]
        return subprocess.run(git, capture_output=True, text=True).stdout

    changed = output("status", "--porcelain", "--", *CODE).splitlines()
    return output("rev-parse", "HEAD").strip(), [line[3:] for line in changed]


def trained(
    reference: Set, n_genes: int | str = 100, per_class: int | None = None
) -> Model:
    """The model as `optirank train` makes it, by default ("auto") or with `--n-genes N`,
    on all samples or some of each class.
    """
    if per_class is not None:
        rows = at_most(reference.labels, per_class, np.random.default_rng(0))
        reference = reference.take(rows)
    data = profiles_of(reference)
    if isinstance(n_genes, int):
        n_genes = min(n_genes, len(reference.genes))
    return train(data, TrainingOptions(label="label", n_genes=n_genes, n_jobs=1)).model


def profiles_of(samples: Set) -> Profiles:
    """A set as training and prediction read it; its labels are in the column label."""
    names = np.array([f"s{k}" for k in range(len(samples.labels))], dtype=object)
    obs = pd.DataFrame({"label": samples.labels}, index=names)
    genes = np.asarray(samples.genes, dtype=object)
    adata = made(sparse.csr_matrix(samples.raw), genes, obs, samples.name)
    return replace(objects.profiles_of(adata), source=samples.name)


def labelled(model: Model, query: Set, **options: Any) -> Labels:
    """What `predict` says of a query; ``options`` are those of `PredictOptions`."""
    return label_profiles(profiles_of(query), model, PredictOptions(**options))
