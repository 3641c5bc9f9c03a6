"""The size of the project: ``python tests/weight.py`` prints it beside the size before the cut.

Lines and files per room, numeric constants, options of the command line, parameters of the paper's
classifier, and how many functions and files of optirank the usual calls enter.
"""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from room_graph import PACKAGE, SOURCES, own_room

TESTS = Path(__file__).parent
# What was there when the cut began, and the most that may be there. The functions and files that
# ``predict`` and ``fit`` enter have no limit of their own: they are printed to be compared.
BEFORE = {
    "lines of src": 38_175,
    "files of src": 273,
    "lines of tests": 25_785,
    "numeric constants": 346,
    "options of the command line": 147,
    "parameters of OptirankClassifier": 21,
    "functions that train enters": 502,
    "files that train enters": 92,
    "functions that predict enters": 220,
    "files that predict enters": 40,
}
LIMITS = {
    "lines of src": 22_000,
    "files of src": 130,
    "lines of tests": 17_000,
    "numeric constants": 150,
    "options of the command line": 95,
    "parameters of OptirankClassifier": 14,
    "functions that train enters": 280,
    "files that train enters": 55,
}

_CALLS = {
    "train": """
        from optirank.cli.app import app
        options = ["--label", "cell_type", "-o", "m.optirank"]
        run = lambda: app(["train", "reference.h5ad", *options], standalone_mode=False)
    """,
    "predict": """
        from optirank.cli.app import app
        options = ["--model", "m.optirank", "-o", "labels.csv"]
        run = lambda: app(["predict", "query.h5ad", *options], standalone_mode=False)
    """,
    "fit": """
        from optirank import PanelClassifier
        from optirank.datasets import make_unstable_ranks
        data = make_unstable_ranks(n_samples=100, random_state=0)
        run = lambda: PanelClassifier(n_genes=20).fit(data.X, data.y)
    """,
}
_COUNT = """
import json, os, sys, threading
import optirank
home = os.path.dirname(optirank.__file__) + os.sep
entered = set()
def note(frame, event, _):
    code = frame.f_code
    is_function = code.co_flags & 1 and code.co_name[0] != "<"  # no class body, no lambda
    if event == "call" and is_function and code.co_filename.startswith(home):
        entered.add((code.co_filename, code.co_qualname))
threading.setprofile(note)
sys.setprofile(note)
failed = run()
sys.setprofile(None)
sys.exit(failed) if failed.__class__ is int and failed else None
print(json.dumps([len(entered), len({file for file, _ in entered})]))
"""


def count_lines(files: list[Path]) -> int:
    """Lines of some files, blank ones and comments included."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def lines_per_room() -> dict[str, tuple[int, int]]:
    """Files and lines of each room."""
    rooms: dict[str, list[Path]] = {}
    for source in SOURCES:
        rooms.setdefault(own_room(source), []).append(source)
    return {room: (len(files), count_lines(files)) for room, files in sorted(rooms.items())}


def numeric_constants() -> list[tuple[str, str]]:
    """File and name of each constant of a module that is a number, or numbers in a tuple."""
    return [
        (source.relative_to(PACKAGE).as_posix(), target.id)
        for source in SOURCES
        for node in ast.parse(source.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_number(node.value)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    ]


def _is_number(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    return isinstance(node, ast.Tuple) and bool(node.elts) and all(map(_is_number, node.elts))


def options_per_command() -> dict[str, int]:
    """Options of each command, ``--help`` left out."""
    import typer

    from optirank.cli.app import app

    def walk(command, name: str):
        found = [one for one in command.params if one.param_type_name == "option"]
        yield name, len([one for one in found if one.name != "help"])
        for sub, one in getattr(command, "commands", {}).items():
            yield from walk(one, f"{name} {sub}")

    return {name: n for name, n in walk(typer.main.get_command(app), "optirank") if n}


def entered_by(*calls: str) -> dict[str, tuple[int, int]]:
    """Functions and files of optirank that each call enters, on 100 generated cells."""
    from optirank.datasets.example import write_example

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        write_example(folder, 100, 50)
        for call in calls:
            code = inspect.cleandoc(_CALLS[call]) + _COUNT
            command = [sys.executable, "-c", code]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
            found[call] = tuple(json.loads(done.stdout.splitlines()[-1]))
    return found


def measure() -> dict[str, int]:
    """Every number that has a limit, but for those of `entered_by`."""
    from optirank import OptirankClassifier

    return {
        "lines of src": count_lines(SOURCES),
        "files of src": len(SOURCES),
        "lines of tests": count_lines(sorted(TESTS.rglob("*.py"))),
        "numeric constants": len(numeric_constants()),
        "options of the command line": sum(options_per_command().values()),
        "parameters of OptirankClassifier": len(OptirankClassifier().get_params()),
    }


def main() -> None:
    """Print all of it."""
    print(f"{'room':16}{'files':>8}{'lines':>8}")
    for room, (files, lines) in lines_per_room().items():
        print(f"{room:16}{files:8}{lines:8}")
    entered = entered_by("train", "predict", "fit")
    found = measure()
    for call, (functions, files) in entered.items():
        found |= {f"functions that {call} enters": functions, f"files that {call} enters": files}
    print(f"\n{'':36}{'before':>8}{'now':>8}{'limit':>8}")
    for name, value in found.items():
        row = (BEFORE.get(name, ""), value, LIMITS.get(name, ""))
        print(f"{name:36}" + "".join(f"{one:>8}" for one in row))
    print("\noptions: " + ", ".join(f"{name} {n}" for name, n in options_per_command().items()))


if __name__ == "__main__":
    main()
