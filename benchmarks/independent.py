"""The registered test on sets that no choice was made on.

    python benchmarks/independent.py --data DIR [--pairs FILE] [--out DIR] [--jobs N]
                                     [--without-tools] [--quick]

What is tested, which sets may take part, and what follows from each outcome stands in
registration.toml, which is committed before the run. DIR has .h5ad files with labels in
``cell_type`` and, where it is known, the platform in ``platform``. FILE (default:
DIR/pairs.csv) has one line per pair with the columns ``reference``, ``query``,
``problem``, ``reference_study`` and ``query_study`` and, if needed, ``group`` (problems
that share samples have one), ``label`` (another column of labels) and ``platform``
(``same`` or ``other``).

Every classifier of the main table runs as it is, with the samples, candidate genes and
constants of the pairs at hand. Into results/ (the default of --out) the test is run
once: with all code committed, with the competing tools of ``make peers`` unless
``--without-tools`` is given, and never over a result that is there. Another folder is
for trials, each of which is a line of results/independent-trials.csv; ``--quick`` is a
trial with the first pair.

All pairs are checked before any work: what is no pair by the rule of inclusion is
refused, and so are sets and samples that choices were made on (known_samples.npz). Rows
are written after every pair, into independent-unfinished.csv: after an interruption the
same command goes on. The result is independent.csv, whose first line names the commit,
with one row per measurement; its column ``part`` says which:

pair            samples, classes kept and dropped, common genes, checksums of the files
curve           every classifier of the main table, by number of genes
missing         genes missing from the query
product         models as `optirank train` makes them, plain and adapted
error_control   `predict --target-error` with the model of 100 genes
agreement       the model of 100 genes on queries of the pair and of other problems
"""

from __future__ import annotations

import argparse
import hashlib
import io
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import study_product
from known_samples import known_sets, why_known
from panel_pairs import drawn, missing_rows, panels
from studies import (
    ROOT,
    Rows,
    commit_of,
    header,
    option_parser,
    rows_of_pairs,
    trained,
)
from study_agreement import N_WRONG, Query, whole_set
from study_agreement import add as add_agreement
from tables import RESULTS
from tables_independent import TOO_FEW_PROBLEMS, pair_table

import optirank
from optirank._util.files import write_text
from optirank_lab.baselines.peers import installed_peers, peer_names
from optirank_lab.benchmark import curve, sets
from optirank_lab.benchmark.designs import RealTasks
from optirank_lab.benchmark.pairs import check_pairs, read_pairs
from optirank_lab.benchmark.sets import Set
from optirank_lab.benchmark.statistics import FEWEST_VALUES
from optirank_lab.benchmark.tasks import BenchmarkTask

NAME = "independent.csv"
UNFINISHED = "independent-unfinished.csv"
TRIALS = "independent-trials.csv"
STUDIES = ("reference_study", "query_study")
PAIR = "pair"  # the part of rows that say what a pair consists of


def main() -> None:
    args = read_options()
    pythons = {} if args.without_tools else installed_peers(ROOT / ".peers")
    path = args.pairs or args.data / "pairs.csv"
    pairs, problems = read_pairs(path)
    pairs, table, of_pairs = check_pairs(pairs[:1] if args.quick else pairs, args.data)
    if not problems:
        table["group"], of_rule = groups_of(path, pairs)
        problems += of_rule
    problems += [*problems_of_the_run(args, pythons), *of_pairs]
    problems += problems_of_known_samples(pairs, args.data)
    if problems:
        lines = "\n".join(f"- {problem}" for problem in problems)
        sys.exit(f"The independent test cannot be run:\n{lines}")
    print(pair_table(table).to_string(index=False), flush=True)
    if table["tissue"].nunique() < FEWEST_VALUES:
        print(f"{table['tissue'].nunique()} problems: {TOO_FEW_PROBLEMS}", flush=True)
    if not is_real(args.out):
        log_trial(args, table)
    write_rows(pairs, table, pythons, args)
    print(args.out / NAME)
    if is_real(args.out):
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


def is_real(out: Path) -> bool:
    """Whether this is the test itself, not a trial."""
    return RESULTS in (out.resolve(), *out.resolve().parents)


def groups_of(
    path: Path, pairs: Sequence[BenchmarkTask]
) -> tuple[list[str], list[str]]:
    """The group of each pair, and pairs that are not of two studies."""
    rows = pd.read_csv(path, dtype=str, comment="#", keep_default_na=False)
    lacking = [name for name in STUDIES if name not in rows]
    if lacking:
        return [pair.tissue for pair in pairs], [
            f"{path} lacks {' and '.join(lacking)}: name the study of each set"
        ]
    named = zip(rows["reference"], rows["query"], strict=True)
    rows.index = pd.Index(
        [
            f"{one.removesuffix('.h5ad')} to {two.removesuffix('.h5ad')}"
            for one, two in named
        ]
    )
    problems = []
    groups = []
    for pair in pairs:
        row: Any = rows.loc[f"{pair.train[0]} to {pair.test}"]
        row = row if isinstance(row, pd.Series) else row.iloc[0]
        first, second = (row[column].strip().lower() for column in STUDIES)
        if not first or first == second:
            problems.append(f"{pair.name}: two studies are needed, {first!r} is one")
        groups.append(row.get("group", "") or pair.tissue)
    return groups, problems


def problems_of_known_samples(
    pairs: Sequence[BenchmarkTask], data: Path
) -> Iterator[str]:
    """Sets that choices were made on, by name and by their samples."""
    known = known_sets()
    tasks = {name: pair for pair in pairs for name in pair.sets}
    for name, pair in tasks.items():
        why = why_known(sets.load(name, pair, data), known)
        if why:
            yield why


def log_trial(args: argparse.Namespace, table: pd.DataFrame) -> None:
    """Add a line to the list of trials, which stays with the results."""
    path = RESULTS / TRIALS
    digest = hashlib.sha256(table.to_csv(index=False).encode()).hexdigest()[:16]
    before = "date,command,pairs,problems,digest_of_pairs\n"
    if path.is_file():
        before = path.read_text("utf-8")
    command = header_of(args).removeprefix("# ").partition(";")[0].replace(",", ";")
    line = (
        f"{date.today()},{command},{len(table)},{table['tissue'].nunique()},{digest}\n"
    )
    write_text(path, before + line)


def problems_of_the_run(
    args: argparse.Namespace, pythons: Mapping[str, str]
) -> Iterator[str]:
    """What speaks against a run, whatever its pairs are."""
    path = args.out / NAME
    if args.out.is_file():
        yield f"{args.out} is a file: name a folder by --out DIR"
    elif path.exists():
        yield f"{path} exists, and a result is never overwritten: move it away"
    lacking = [name for name in peer_names() if name not in pythons]
    if lacking and not args.without_tools:
        yield (
            f"{', '.join(lacking)} not installed: run make peers, or leave the "
            "competing tools out (--without-tools, make independent WITHOUT_TOOLS=1)"
        )
    if not Path(optirank.__file__).is_relative_to(ROOT):
        yield f"optirank is imported from {optirank.__file__}: run make setup here"
    if not is_real(args.out):
        return
    if args.quick:
        yield "--quick is a trial: name another folder by --out DIR"
    commit, changed = commit_of(ROOT)
    if not commit:
        yield f"{ROOT} is no clone, so the commit is not known: run it in a clone"
    if changed:
        yield (
            f"uncommitted changes in {', '.join(changed)}: commit or stash them, or "
            "make a trial by --out DIR"
        )


def write_rows(
    pairs: Sequence[BenchmarkTask],
    table: pd.DataFrame,
    pythons: Mapping[str, str],
    args: argparse.Namespace,
) -> None:
    """Measure every pair that is not finished yet, and write the result."""
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / UNFINISHED
    first, rows = rows_so_far(path, header_of(args), table)
    finished = {*rows["pair"][rows["part"] != PAIR]}
    waiting = [pair for pair in pairs if pair.name not in finished]
    study = partial(
        frozen_study,
        data=args.data.resolve(),
        pythons=pythons,
        others=queries_of_others(pairs),
    )
    n_finished = len(finished)
    try:
        for tables in rows_of_pairs(study, waiting, args):
            parts = [as_text(of_part, part) for part, of_part in tables.items()]
            rows = pd.concat([rows, *parts], ignore_index=True)
            write_text(path, first + rows.to_csv(index=False))
            n_finished += 1
            print(f"\r{n_finished} of {len(pairs)} pairs", end="", file=sys.stderr)
    except KeyboardInterrupt:
        sys.exit(
            f"\nstopped after {n_finished} of {len(pairs)} pairs, which are in {path}: "
            "the same command goes on from there"
        )
    print(file=sys.stderr)
    path.replace(args.out / NAME)


def header_of(args: argparse.Namespace) -> str:
    """The line above the rows: command, commit, data, versions and date."""
    command = "python benchmarks/independent.py"
    command += " --quick" if args.quick else ""
    command += " --without-tools" if args.without_tools else ""
    return header(command, args.data)


def rows_so_far(
    path: Path, header: str, table: pd.DataFrame
) -> tuple[str, pd.DataFrame]:
    """The first line and the rows of an interrupted run of the same command, commit,
    versions, pairs and files; else those to begin with.
    """
    about = as_text(table.to_dict("records"), PAIR)
    if not path.is_file():
        write_text(path, header + about.to_csv(index=False))
        return header, about
    first = path.read_text("utf-8").splitlines()[0] + "\n"
    rows = pd.read_csv(path, skiprows=1, dtype=str, keep_default_na=False)
    stored = rows[rows["part"] == PAIR].reset_index(drop=True)
    same_run = first.rpartition(";")[0] == header.rpartition(";")[0]  # but for the date
    if same_run and about.equals(stored.reindex(columns=about.columns)):
        return first, rows
    sys.exit(
        f"{path} is of another command, commit, versions, pairs or files: run that one "
        "again to go on, or move the file away to begin anew"
    )


def as_text(rows: list[dict], part: str) -> pd.DataFrame:
    """Rows as they stand in the CSV, so that a run that went on gives the same file."""
    frame = pd.DataFrame(rows)
    frame.insert(0, "part", part)
    text = frame.to_csv(index=False, float_format="%.6g")
    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)


def frozen_study(
    pair: BenchmarkTask,
    reference: Set,
    query: Set,
    *,
    data: Path,
    pythons: Mapping[str, str],
    others: Mapping[str, Sequence[str]],
) -> Rows:
    """Every classifier on one pair; missing genes, the product, agreement."""
    (design,) = RealTasks(data, (pair,)).designs(pair.name)
    samples = drawn(reference, query)
    rows = curve.evaluate(design, curve.classifiers_for(pythons), pythons)
    return {
        "curve": [row for row in rows if has_its_genes(row)],
        "missing": missing_rows(panels(samples), samples),
        "agreement": agreement_rows(pair, reference, data, others[pair.tissue]),
    } | study_product.study(pair, reference, query)


def agreement_rows(
    pair: BenchmarkTask, reference: Set, data: Path, others: Sequence[str]
) -> list[dict]:
    """The agreement of the query of a pair, and of sets of other problems."""
    model = trained(reference)
    rows = Rows(agreement=[])
    names = {"right": [pair.test or ""], "wrong": others}
    for kind, sets_of_kind in names.items():
        for name in sets_of_kind:
            of_set = Query(kind, whole_set(data, name))
            add_agreement(rows, model, pair.train[0], of_set)
    return rows["agreement"]


def queries_of_others(pairs: Sequence[BenchmarkTask]) -> dict[str, list[str]]:
    """Of each problem, one query of each other problem, six at most."""
    first: dict[str, str] = {}
    for pair in pairs:
        first.setdefault(pair.tissue, pair.test or "")
    return {
        problem: [name for other, name in first.items() if other != problem][:N_WRONG]
        for problem in first
    }


def has_its_genes(row: Mapping[str, Any]) -> bool:
    """Whether a pair has as many candidate genes as a row is about."""
    return row["k"] == curve.ALL or int(row["k"]) <= row["n_candidates"]


if __name__ == "__main__":
    main()
