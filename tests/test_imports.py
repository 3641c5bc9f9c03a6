"""Importing optirank is light, and numba stays in one room."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import optirank

HEAVY = ("numba", "sklearn", "scipy", "pandas", "matplotlib", "anndata", "scanpy")
PACKAGE = Path(optirank.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def imported_modules(source: Path) -> set[str]:
    """Top-level names of all modules a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


def test_importing_optirank_loads_nothing_heavy():
    assert run(f"import sys, optirank; print([m for m in {HEAVY} if m in sys.modules])") == "[]"


def test_importing_optirank_takes_less_than_a_third_of_a_second():
    code = (
        "import time; start = time.perf_counter(); import optirank; "
        "print(time.perf_counter() - start)"
    )
    assert min(float(run(code)) for _ in range(3)) < 0.3


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_compiled_room_imports_numba(source):
    assert source.is_relative_to(PACKAGE / "_compiled") or "numba" not in imported_modules(source)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = optirank.nothing
