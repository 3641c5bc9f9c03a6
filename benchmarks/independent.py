"""The test on sets that no choice was made on: python benchmarks/independent.py --data
DIR.

    python benchmarks/independent.py --data DIR [--pairs FILE] [--out DIR] [--jobs N]
                                     [--without-tools] [--quick]

DIR has .h5ad files with labels in ``cell_type`` and, if known, the platform in
``platform``. FILE (default: DIR/pairs.csv) has one line per pair with the columns
``reference``, ``query``, ``problem`` and, where labels are in another column,
``label``; pairs of one problem are averaged first. Everything is frozen: every
classifier of the main table as it is, with the same samples per class, candidate genes
and constants as on the sets at hand. Written to independent.csv, whose first line names
the commit, with one row per measurement; its column ``part`` says which:

pair            samples, classes and genes of a pair, and notes on it
curve           every classifier of the main table, by number of genes
missing         the panel model with genes missing from the query
calibration     confidences of the panel model of 100 genes, plain and adapted
error_control   `predict --target-error` with it

All pairs are checked first. Rows are stored after every pair in independent.part.csv:
after an interruption the same command goes on from there. With the default --out it is
the real test, and the section of docs/evidence.md is written too: then the commit must
be clean, a result that is there is never overwritten, and the competing tools must be
installed (``make peers``) or left out by ``--without-tools``. Another folder is for
trials.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from panel_pairs import drawn, missing_rows, panels
from studies import Rows, option_parser, rows_of_pairs, trained
from study_confidence import confidence_rows
from tables import RESULTS

from optirank._util.files import write_text
from optirank.io.data import DataError
from optirank_lab.baselines.peers import installed_peers, peer_names
from optirank_lab.benchmark import curve
from optirank_lab.benchmark.designs import Design, RealTasks
from optirank_lab.benchmark.rivals import methods_for
from optirank_lab.benchmark.sets import Set, dense
from optirank_lab.benchmark.tasks import BenchmarkTask, read_pairs, with_shift

ROOT = Path(__file__).resolve().parent.parent
NAME = "independent.csv"
PANEL_SIZE = 100
# Means of standardised genes are 0 but for rounding; those of log-ratios are not.
STANDARDISED = 1e-3
FROZEN = ("src", "benchmarks", "pyproject.toml")


def main() -> None:
    args = read_options()
    real = args.out.resolve() == RESULTS
    commit = commit_of(ROOT)
    if real:
        refuse_what_is_not_frozen(args, commit)
    pythons = {} if args.without_tools else all_peers()
    pairs = checked_pairs(args)
    unfinished = args.out / f"{Path(NAME).stem}.part.csv"
    command = f"python benchmarks/independent.py, commit {commit}"
    header = curve.header(command + (" --quick" if args.quick else ""))
    rows = rows_so_far(unfinished, command)
    finished = {row["pair"] for row in rows}
    waiting = [pair for pair, _ in pairs if pair.name not in finished]
    args.out.mkdir(parents=True, exist_ok=True)
    about = {pair.name: row for pair, row in pairs}
    study = partial(frozen_study, data=args.data.resolve(), pythons=pythons)
    studies = rows_of_pairs(study, waiting, args)
    for number, (pair, tables) in enumerate(zip(waiting, studies, strict=True), 1):
        rows.append(about[pair.name])
        for part, of_part in tables.items():
            rows += [{"part": part} | row for row in of_part]
        text = pd.DataFrame(rows).to_csv(index=False, float_format="%.6g")
        write_text(unfinished, header + text)
        print(f"\r{number} of {len(waiting)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    unfinished.replace(args.out / NAME)
    print(args.out / NAME)
    if real:
        subprocess.run([sys.executable, str(ROOT / "benchmarks/fill_tables.py")])


def read_options() -> argparse.Namespace:
    """The options of the studies, the file of pairs, and whether tools take part."""
    parser = option_parser(__doc__)
    parser.add_argument(
        "--pairs", type=Path, help="the CSV of pairs; default: DATA/pairs.csv"
    )
    parser.add_argument(
        "--without-tools", action="store_true", help="leave the competing tools out"
    )
    return parser.parse_args()


def refuse_what_is_not_frozen(args: argparse.Namespace, commit: str) -> None:
    """Exit where the real test could be repeated, cut short or run by other code."""
    path = args.out / NAME
    if path.exists():
        sys.exit(f"{path} is there: the test is run once; --out DIR is for trials")
    if args.quick:
        sys.exit("--quick is for trials: name a folder by --out DIR")
    if " " in commit:
        sys.exit(
            f"the commit is {commit}: run a clone without changes in "
            f"{', '.join(FROZEN)}, or a trial by --out DIR"
        )


def all_peers() -> dict[str, str]:
    """The Pythons of the competing tools; exit where one lacks."""
    pythons = installed_peers(ROOT / ".peers")
    lacking = [name for name in peer_names() if name not in pythons]
    if lacking:
        sys.exit(
            f"{', '.join(lacking)} not installed: run make peers, or leave the "
            "competing tools out by --without-tools (make: WITHOUT_TOOLS=1)"
        )
    return pythons


def commit_of(folder: Path) -> str:
    """The commit that is run, marked where files differ from it."""
    command = ["git", "-C", str(folder)]
    head = subprocess.run(
        [*command, "rev-parse", "HEAD"], capture_output=True, text=True
    )
    if head.returncode:
        return "unknown (not a clone)"
    changed = subprocess.run(
        [*command, "status", "--porcelain", "--", *FROZEN],
        capture_output=True,
        text=True,
    )
    return head.stdout.strip() + (" with changes" if changed.stdout.strip() else "")


def checked_pairs(args: argparse.Namespace) -> list[tuple[BenchmarkTask, dict]]:
    """The pairs with what is known of each; exit where one cannot be run."""
    path = args.pairs or args.data / "pairs.csv"
    try:
        pairs = read_pairs(path)
    except OSError as error:
        sys.exit(f"{error}: write the pairs into {path}, or name a file by --pairs")
    except DataError as error:
        sys.exit(str(error))
    pairs = pairs[:1] if args.quick else pairs
    checked = []
    problems = []
    for pair in pairs:
        try:
            known = with_shift(pair, args.data)
            checked.append((known, pair_row(known, args.data)))
        except KeyError as error:
            problems.append(f"{pair.name}: {args.data} has no {error.args[0]}.h5ad")
        except (ValueError, OSError) as error:
            problems.append(f"{pair.name}: {' '.join(str(error).split())}")
    if problems:
        lines = "\n  ".join(problems)
        sys.exit(f"{len(problems)} of {len(pairs)} pairs cannot be run:\n  {lines}")
    columns = ["pair", "tissue", "shift", "n_train", "n_query", "classes", "n_genes"]
    table = pd.DataFrame([row for _, row in checked])
    print(table[[*columns, "note"]].to_string(index=False), flush=True)
    return checked


def pair_row(pair: BenchmarkTask, data: Path) -> dict:
    """Samples, classes and genes of a pair, with notes."""
    (design,) = RealTasks(data.resolve(), (pair,)).designs(pair.name)
    query = design.tests[pair.name]
    if query is None:
        raise ValueError(f"{pair.name} has no query: name a pair of sets")
    return {
        "part": "pair",
        "pair": pair.name,
        "tissue": pair.tissue,
        "shift": pair.shift,
        "n_train": len(design.source.labels),
        "n_query": len(query.labels),
        "classes": ", ".join(design.classes),
        "n_genes": len(query.genes),
        "note": "; ".join(notes_on(design, query)),
    }


def notes_on(design: Design, query: Set) -> list[str]:
    """What a reader should know of a pair before its results."""
    notes = list(design.notes)
    n_genes = len(query.genes)
    if n_genes < PANEL_SIZE:
        notes.append(f"{n_genes} common genes: panels asked for more have as many")
    for part in (design.source, query):
        values = dense(part.raw)
        if not np.isfinite(values).all():
            raise ValueError(f"{part.name} has missing values: fill or drop them first")
        if np.abs(values.mean(axis=0)).max() < STANDARDISED:
            notes.append(f"{part.name} is standardised per gene, which changes ranks")
    if design.task.shift == "unknown":
        notes.append("no column platform: counted as two platforms")
    return notes


def rows_so_far(path: Path, command: str) -> list[dict]:
    """The rows of finished pairs of an interrupted run of the same commit."""
    if not path.is_file():
        return []
    first, _, _ = path.read_text("utf-8").partition("\n")
    if not first.startswith(f"# {command}"):
        sys.exit(f"{path} is of another commit: remove it to begin again")
    table = pd.read_csv(path, comment="#", dtype={"k": str})
    return table.to_dict("records")


def frozen_study(
    pair: BenchmarkTask,
    reference: Set,
    query: Set,
    *,
    data: Path,
    pythons: Mapping[str, str],
) -> Rows:
    """Every classifier on one pair; missing genes, calibration and error control of
    the panel model.
    """
    source = RealTasks(data, (pair,))
    samples = drawn(reference, query)
    return {
        "curve": curve.evaluate(source, pair, methods_for(pythons), pythons),
        "missing": missing_rows(panels(samples), samples),
    } | confidence_rows(trained(reference), query)


if __name__ == "__main__":
    main()
