"""Importing optirank is light; numba stays in one room; arrows between rooms point
one way.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import optirank
from room_graph import PACKAGE, SOURCES, drawn_graph, imported_rooms, own_room

HEAVY = ("numba", "sklearn", "scipy", "pandas", "matplotlib", "anndata", "scanpy")


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
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
    assert (
        run(f"import sys, optirank; print([m for m in {HEAVY} if m in sys.modules])")
        == "[]"
    )


@pytest.mark.parametrize("words", ["models", "inspect blood-human", "--help"])
def test_commands_on_models_need_neither_anndata_nor_scikit_learn(words):
    code = (
        "import contextlib, io, sys; from optirank.cli import app\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):"
        f"\n    app({words.split()!r})\n"
        "print([m for m in ('anndata', 'sklearn') if m in sys.modules])"
    )
    assert run(code) == "[]"


def test_the_synthetic_model_needs_neither_anndata_nor_pandas():
    code = (
        "import sys; sys.modules['anndata'] = sys.modules['pandas'] = None\n"
        "from optirank.datasets import make_unstable_ranks\n"
        "print(make_unstable_ranks(20, random_state=0).X.shape)"
    )
    assert run(code) == "(20, 50)"


def test_telling_counts_from_logarithms_needs_no_scikit_learn():
    code = "import sys, optirank._util.numbers; print('sklearn' in sys.modules)"
    assert run(code) == "False"


def test_training_a_panel_needs_no_scikit_learn():
    code = "import sys, optirank.verbs.methods; print('sklearn' in sys.modules)"
    assert run(code) == "False"


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["predict", "--help"],
        ["models"],
        ["models", "leukaemia-human"],
        ["inspect", "leukaemia-human"],
    ],
    ids=" ".join,
)
def test_commands_about_models_load_no_anndata_scikit_learn_or_numba(command):
    code = (
        f"import sys; sys.argv = ['optirank', *{command}]\n"
        "from optirank.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "heavy = ('anndata', 'sklearn', 'numba')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    assert run(code).endswith("[]")


def test_importing_optirank_takes_less_than_a_third_of_a_second():
    code = (
        "import time; start = time.perf_counter(); import optirank; "
        "print(time.perf_counter() - start)"
    )
    assert min(float(run(code)) for _ in range(3)) < 0.3


@pytest.mark.parametrize(
    "source", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_only_the_compiled_room_imports_numba(source):
    assert source.is_relative_to(
        PACKAGE / "_compiled"
    ) or "numba" not in imported_modules(source)


@pytest.mark.parametrize(
    "source", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_the_product_imports_nothing_of_the_laboratory(source):
    tree = ast.parse(source.read_text())
    assert "optirank_lab" not in imported_modules(source)
    # Nor by a name that is imported later, or by an entry point
    assert not [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and str(node.value).startswith("optirank_lab")
    ]


def test_the_product_works_where_the_laboratory_cannot_be_imported(tmp_path):
    code = (
        "import sys; sys.modules['optirank_lab'] = None\n"
        "import optirank, optirank.cli as command, optirank.tl, optirank.datasets\n"
        "[getattr(optirank, name) for name in optirank.__all__]\n"
        "[getattr(optirank.datasets, name) for name in optirank.datasets.__all__]\n"
        f"command.app(['demo', '-o', {str(tmp_path / 'demo')!r}])"
    )
    assert "Balanced accuracy" in run(code)
    assert (tmp_path / "demo" / "labels.csv").is_file()


def wrong_arrows(room: str, code: str) -> set[tuple[str, str]]:
    """The imports of a module of a room that CONTRIBUTING does not draw."""
    used = imported_rooms(ast.parse(code)) - {room}
    return {(room, one) for one in used - drawn_graph().get(room, set())}


@pytest.mark.parametrize(
    "source",
    [
        source
        for source in SOURCES
        if source.parent != PACKAGE or source.name == "tl.py"
    ],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_a_module_imports_only_rooms_that_contributing_draws_below_its_own(source):
    assert wrong_arrows(own_room(source), source.read_text()) == set()


def test_the_drawing_has_every_room_and_no_circle():
    graph = drawn_graph()
    rooms = {own_room(source) for source in SOURCES} - {"__init__", "__main__"}
    assert rooms - {"_util"} <= set(graph)
    assert not [room for room, below in graph.items() if room in below]


@pytest.mark.parametrize(
    "code",
    [
        "from optirank.tl import train",
        "import optirank.verbs.training",
        "def late():\n    from optirank.cli import main",
        "from optirank import save",
        "import importlib\nimportlib.import_module('optirank.report')",
        "import importlib\nimportlib.import_module(f'optirank.{name}')",
        "import optirank\noptirank.load('a')",
        "if TYPE_CHECKING:\n    from optirank.model import Model",
        "from ..tl import train",
    ],
)
def test_an_arrow_upwards_is_found_however_it_is_written(code):
    assert wrong_arrows("solver", code)
    assert not wrong_arrows("solver", "from optirank.ranks.orders import order_samples")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = optirank.nothing
