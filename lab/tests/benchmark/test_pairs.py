"""Pairs that a CSV names are read and checked, and all problems are listed at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from anndata import AnnData

from benchmark_cases import make_set
from optirank_lab.benchmark.pairs import CheckedPairs, check_pairs, read_pairs
from optirank_lab.benchmark.tasks import BenchmarkTask
from optirank_lab.data.conversion import write_h5ad
from optirank_lab.data.profiles import changed, take_samples


def read(folder: Path, text: str) -> tuple[tuple[BenchmarkTask, ...], list[str]]:
    path = folder / "pairs.csv"
    path.write_text(text)
    return read_pairs(path)


def checked(folder: Path, *lines: str) -> CheckedPairs:
    """What is said of pairs of a folder, all of which can be read."""
    pairs, problems = read(folder, "\n".join(["reference,query,problem", *lines]))
    assert problems == []
    return check_pairs(pairs, folder)


def write(folder: Path, name: str, change=lambda data: data, **options) -> None:
    write_h5ad(change(make_set(name, **options)), folder / f"{name}.h5ad")


def only(problems: Sequence[str]) -> str:
    (problem,) = problems
    return problem


def test_pairs_are_read_from_a_table(tmp_path):
    lines = "one.h5ad,two,lung,,\none,two,lung,stage,Same\n"
    (first, second), problems = read(
        tmp_path, f"reference,query,problem,label,platform\n{lines}"
    )
    assert problems == []
    assert (first.name, first.tissue, first.label, first.shift) == (
        "one to two",
        "lung",
        "cell_type",
        "unknown",
    )
    assert (second.name, second.label) == ("one to two (stage)", "stage")
    assert second.shift == "same platform"
    assert first.train == ("one",)
    assert first.test == "two"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("reference,query\na,b\n", "lacks problem: its columns are reference, query,"),
        ("reference,query,problem\n", "names no pair: write one line per pair"),
        ("reference,query,problem\na,b,c\na,b.h5ad,d\n", "a to b stands there before"),
        ("reference,query,problem\na,b, \n", "the column problem is empty: fill it"),
        ("reference,query,problem\na,a.h5ad,c\n", "a would be tested on itself"),
        (
            "reference,query,problem,platform\na,b,c,10x\n",
            "platform is '10x': write same, other or scaled",
        ),
        ("", "cannot be read as CSV"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_the_remedy(tmp_path, text, words):
    assert words in only(read(tmp_path, text)[1])


def test_without_a_table_its_columns_are_named(tmp_path):
    problem = only(read_pairs(tmp_path / "pairs.csv")[1])
    assert (
        "does not exist: write a CSV with the columns reference, query, pro" in problem
    )


def test_all_lines_with_problems_are_listed_and_the_others_are_read(tmp_path):
    lines = "reference,query,problem\na,b,\n,b,c\na,b,c\nd,d,c\n"
    pairs, problems = read(tmp_path, lines)
    assert [pair.name for pair in pairs] == ["a to b"]
    assert [problem.split(", pair ")[1][0] for problem in problems] == ["1", "2", "4"]


def test_a_pair_has_a_row_with_samples_classes_genes_and_checksums(tmp_path):
    write(tmp_path, "one", n=90)

    def with_few_of_b(data: AnnData) -> AnnData:
        few = data.obs["cell_type"] == "b"
        return take_samples(data, ~few | (few.cumsum() <= 7))

    write(tmp_path, "other", with_few_of_b, classes=("a", "b", "c", "d"))
    pairs, table, problems = checked(tmp_path, "one,other,lung")
    assert problems == []
    assert [pair.shift for pair in pairs] == ["platform"]
    (row,) = table.to_dict("records")
    assert (row["pair"], row["tissue"]) == ("one to other", "lung")
    assert (row["n_reference"], row["n_query"]) == (60, 45)
    assert row["classes"] == "a, c"
    assert row["dropped"] == "b (30 and 7), d (0 and 22)"
    assert row["n_genes"] == 120
    assert len(row["reference_sha256"]) == len(row["query_sha256"]) == 64


def test_every_set_and_pair_with_a_problem_is_listed(tmp_path):
    def with_nan(data: AnnData) -> AnnData:
        X = data.X.toarray()
        X[0, 0] = np.nan
        return changed(data, X=X)

    def standardised(data: AnnData) -> AnnData:
        X = data.X.toarray()
        return changed(data, X=(X - X.mean(axis=0)) / X.std(axis=0))

    def renamed(data: AnnData) -> AnnData:
        return changed(data, obs=data.obs.rename(columns={"cell_type": "type"}))

    write(tmp_path, "good")
    write(tmp_path, "missing values", with_nan)
    write(tmp_path, "z-scores", standardised)
    write(tmp_path, "no labels", renamed)
    write(tmp_path, "other classes", classes=("x", "y"))
    write(tmp_path, "small classes", n=15)
    write(tmp_path, "few genes", n_genes=40)
    (tmp_path / "broken.h5ad").write_bytes(b"no file of this kind")
    queries = (
        ("missing values", "missing or infinite"),
        ("z-scores", "standardised per gene"),
        ("no labels", "no column 'cell_type'"),
        ("broken", "is not an HDF5 file"),
        ("absent", "no data set is called 'absent'"),
        ("other classes", "0 are common by name: good has a, b, c; other classes has"),
        ("small classes", "a (30 and 5), b (30 and 5), c (30 and 5): add samples, or"),
        ("few genes", "40 common genes, the panel of 100 needs 100"),
    )
    pairs, table, problems = checked(
        tmp_path,
        *(f"good,{name},p{number}" for number, (name, _) in enumerate(queries)),
    )
    assert (len(pairs), len(table)) == (0, 0)
    assert len(problems) == len(queries)
    for (name, words), problem in zip(queries, problems, strict=True):
        assert name in problem
        assert words in problem


def test_samples_that_are_in_both_sets_are_refused(tmp_path):
    write(tmp_path, "one")
    (tmp_path / "copy.h5ad").write_bytes((tmp_path / "one.h5ad").read_bytes())
    some_samples = take_samples(make_set("one"), np.arange(60, 90))
    write_h5ad(some_samples, tmp_path / "part.h5ad")
    _, _, problems = checked(tmp_path, "one,copy,first", "one,part,second")
    assert problems == [
        "one to copy: both are the same file, so the set would be tested on itself",
        "one to part: 30 samples of the query are in the reference too, with the same "
        "values: take them out of one set",
    ]


def test_the_table_says_more_of_platforms_than_the_files(tmp_path):
    write(tmp_path, "one")
    write(tmp_path, "two", n=91)

    def unnamed(data: AnnData) -> AnnData:
        return changed(data, obs=data.obs.drop(columns="platform"))

    write(tmp_path, "three", unnamed)
    text = (
        "reference,query,problem,platform\none,two,x,same\none,three,x,\ntwo,one,x,\n"
    )
    pairs, _, _ = check_pairs(read(tmp_path, text)[0], tmp_path)
    assert [pair.shift for pair in pairs] == ["same platform", "unknown", "platform"]
