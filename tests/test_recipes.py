"""The recipes of CONTRIBUTING.md for the laboratory work as written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import optirank_lab
from benchmark_cases import FIRST, SECOND, write_sets
from optirank_lab.data.conversion import read_expression


@pytest.fixture
def laboratory(tmp_path):
    """A copy of the laboratory, whose tables can be changed, and its commands."""
    home = tmp_path / "copy" / "optirank_lab"
    source = Path(optirank_lab.__file__).parent
    shutil.copytree(source, home, ignore=shutil.ignore_patterns("__pycache__"))

    def run(*arguments: object) -> str:
        paths = [str(home.parent), *sys.path]
        done = subprocess.run(
            [sys.executable, "-m", "optirank_lab", *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return home, run


def append(path: Path, table: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(table)


TOY_TASK = f"""
[[task]]
name = "toy"
tissue = "breast"
title = "a toy"
kind = "bulk"
shift = "technology"
train = ["{FIRST}"]
test = "{SECOND}"
scheme = "cells"
"""


def test_a_task_is_one_table(laboratory, tmp_path):
    home, run = laboratory
    tables = home / "benchmark" / "tasks.toml"
    content = tables.read_text("utf-8")
    first = content.index("[[task]]")
    tables.write_text(content[:first] + TOY_TASK + "\n" + content[first:], "utf-8")
    sets = write_sets(tmp_path / "sets")
    listed = run("benchmark", "list", "--data", sets)
    (line,) = (line for line in listed.splitlines() if "a toy" in line)
    assert "toy" in line.split()


TOY_SET = """
[toy]
title = "a toy"
accession = "none"
organism = "human"
modality = "bulk"
technology = "RNA-Seq"
source = "https://example.org"
licence = "CC0"
n_samples = 8
n_genes = 2
files = [{ name = "toy.csv", url = "https://example.org/toy.csv" }]

[toy.read]
matrix = "toy.csv"
genes_in = "columns"
annotations = ["type"]
label = "type"
"""


def test_a_data_set_is_one_table(laboratory, tmp_path):
    home, run = laboratory
    append(home / "data" / "stand_ins.toml", TOY_SET)
    raw = tmp_path / "raw"
    raw.mkdir()
    values = pd.DataFrame({"type": ["a", "b"] * 4, "TP53": range(8), "MYC": range(8)})
    values.index = [f"s{i}" for i in range(8)]
    values.to_csv(raw / "toy.csv", index_label="sample")
    run("datasets", "fetch", "toy", "--data", tmp_path / "sets", "--from", raw)
    data = read_expression(tmp_path / "sets" / "toy.h5ad", label="cell_type")
    assert sorted(data.var_names) == ["MYC", "TP53"]
    assert data.obs["cell_type"].tolist() == ["a", "b"] * 4
