"""Which room imports which: as CONTRIBUTING draws it, and as the sources have it."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import optirank

PACKAGE = Path(optirank.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
_CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"


def drawn_graph() -> dict[str, set[str]]:
    """The rooms that each room may import, from the block of CONTRIBUTING with arrows.

    In ``a <- b <- (c, d)`` a room may import all that stand to its left, and what those
    may.
    """
    block = re.search(
        r"```\n(_util <-.*?)```", _CONTRIBUTING.read_text("utf-8"), re.DOTALL
    )
    allowed: dict[str, set[str]] = {}
    for line in block[1].splitlines():
        groups = [re.findall(r"\w+", group) for group in line.split("<-")]
        for below, above in itertools.pairwise(groups):
            for room in above:
                allowed.setdefault(room, set()).update(below)
    for _ in allowed:  # what may be imported by what may be imported
        for rooms in allowed.values():
            rooms.update(*(allowed.get(room, ()) for room in tuple(rooms)))
    return allowed


def room_of(module: str) -> str:
    """The room of a module's dotted name; public names of the package are in their
    own homes.
    """
    parts = module.split(".")
    if len(parts) == 1:
        return ""
    home = optirank._HOMES.get(parts[1])
    return room_of(home) if home else parts[1]


def imported_rooms(tree: ast.AST) -> set[str]:
    """The rooms of optirank that a module imports, anywhere in it, or uses as
    attributes of the package; names of modules that are computed, and relative ones,
    are no rooms.
    """
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {room_of(one.name) for one in node.names if _is_ours(one.name)}
        elif isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""):
            names = [node.module]
            if node.module == "optirank":
                names = [f"optirank.{one.name}" for one in node.names]
            found |= {room_of(name) for name in names if "__" not in name}
        elif isinstance(node, ast.ImportFrom) and node.level:
            found.add(".")
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "optirank":
            found |= {room_of(f"optirank.{node.attr}")} - {"__version__"}
        elif isinstance(node, ast.Call):
            module = _dynamic_module(node)
            found |= {room_of(module)} if _is_ours(module) else set()
    return found - {""}


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == "optirank"


def _dynamic_module(node: ast.Call) -> str:
    """What a call such as ``import_module("optirank....")`` imports; "" of others."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name not in ("import_module", "__import__", "need") or not node.args:
        return ""
    return ast.unparse(node.args[0]).removeprefix("f").strip("'\"")


def own_room(source: Path) -> str:
    """The room that a file of the package is in."""
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")
