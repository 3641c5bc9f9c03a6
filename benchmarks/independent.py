"""The test on sets that no choice was made on: python benchmarks/independent.py --data
DIR.

    python benchmarks/independent.py --data DIR [--pairs FILE] [--out DIR] [--jobs N]
    [--quick]

DIR has .h5ad files with labels in ``cell_type``. FILE (default: DIR/pairs.csv) has one
line per pair with the columns ``reference``, ``query``, ``problem`` and, where labels
are in another column, ``label``; pairs of one problem are averaged first. Everything is
frozen: every classifier of the main table as it is, with the same samples per class,
candidate genes and constants as on the sets at hand. Written to independent.csv, whose
first line names the commit, with one row per measurement; its column ``part`` says
which:

curve           every classifier of the main table, by number of genes
missing         the panel model with genes missing from the query
calibration     confidences of the panel model of 100 genes, plain and adapted
error_control   `predict --target-error` with it

Competing tools take part where ``make peers`` installed them, but for
``--without-tools``. With the default --out the section of docs/evidence.md is written
too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pandas as pd
from panel_pairs import SIZES, drawn, with_missing_genes
from studies import Rows, option_parser, rows_of_pairs, trained
from study_confidence import confidence_rows
from tables import RESULTS

from optirank import PanelClassifier
from optirank._util.files import write_text
from optirank.io.data import DataError
from optirank_lab.baselines.peers import installed_peers
from optirank_lab.benchmark import curve
from optirank_lab.benchmark.designs import RealTasks
from optirank_lab.benchmark.rivals import methods_for
from optirank_lab.benchmark.sets import Set
from optirank_lab.benchmark.tasks import BenchmarkTask, read_pairs

ROOT = Path(__file__).resolve().parent.parent
NAME = "independent.csv"


def main() -> None:
    args = read_options()
    try:
        pairs = read_pairs(args.pairs or args.data / "pairs.csv")
    except (DataError, OSError) as error:
        sys.exit(f"{error}: write the pairs into {args.data}/pairs.csv, or name a file")
    refuse_missing_sets(pairs, args.data)
    pairs = pairs[:1] if args.quick else pairs
    commit = commit_of(ROOT)
    rows = curve_rows(pairs, args)
    for number, tables in enumerate(rows_of_pairs(frozen_study, pairs, args), 1):
        for part, of_part in tables.items():
            rows += [{"part": part} | row for row in of_part]
        print(f"\r{number} of {len(pairs)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    args.out.mkdir(parents=True, exist_ok=True)
    header = curve.header(f"python benchmarks/independent.py, commit {commit}")
    text = pd.DataFrame(rows).to_csv(index=False, float_format="%.6g")
    write_text(args.out / NAME, header + text)
    print(args.out / NAME)
    if args.out == RESULTS:
        subprocess.run([sys.executable, str(ROOT / "benchmarks/fill_tables.py")])


def read_options() -> argparse.Namespace:
    """The options of the studies, and the file of pairs."""
    parser = option_parser(__doc__)
    parser.add_argument(
        "--pairs", type=Path, help="the CSV of pairs; default: DATA/pairs.csv"
    )
    parser.add_argument(
        "--without-tools", action="store_true", help="leave the competing tools out"
    )
    return parser.parse_args()


def refuse_missing_sets(pairs: tuple[BenchmarkTask, ...], data: Path) -> None:
    """Exit before any work where a set is not there."""
    wanted = dict.fromkeys(name for pair in pairs for name in pair.sets)
    missing = [name for name in wanted if not (data / f"{name}.h5ad").is_file()]
    if missing:
        sys.exit(
            f"{data} lacks {', '.join(missing)}: each pair needs both .h5ad files there"
        )


def commit_of(folder: Path) -> str:
    """The commit that is run, marked where files differ from it."""
    command = ["git", "-C", str(folder)]
    found = subprocess.run(
        [*command, "rev-parse", "HEAD"], capture_output=True, text=True
    )
    if found.returncode:
        return "unknown (not a clone)"
    changed = subprocess.run(
        [*command, "status", "--porcelain", "--", "src", "benchmarks"],
        capture_output=True,
        text=True,
    )
    return found.stdout.strip() + (" with changes" if changed.stdout.strip() else "")


def curve_rows(
    pairs: tuple[BenchmarkTask, ...], args: argparse.Namespace
) -> list[dict]:
    """Every classifier of the main table on every pair."""
    from joblib import Parallel, delayed

    pythons = {} if args.without_tools else installed_peers(ROOT / ".peers")
    source = RealTasks(args.data.resolve(), pairs)
    methods = methods_for(pythons)
    parts = Parallel(n_jobs=args.jobs)(
        delayed(curve.evaluate)(source, pair, methods, pythons) for pair in pairs
    )
    return [{"part": "curve"} | row for rows in parts for row in rows]


def frozen_study(pair: BenchmarkTask, reference: Set, query: Set) -> Rows:
    """Missing genes, calibration and error control of the panel model on one pair."""
    samples = drawn(reference, query)
    n_genes = min(max(SIZES), samples.X.shape[1])
    largest = PanelClassifier(n_genes).fit(samples.X, samples.y)
    models = {size: largest.smaller(size) for size in SIZES if size in largest.path_}
    missing = [*with_missing_genes(models, samples)]
    return {"missing": missing} | confidence_rows(trained(reference), query)


if __name__ == "__main__":
    main()
