"""Which classifiers a run has: by names and groups, and the interpreters of tools of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from optirank.benchmark.classifiers import CLASSIFIERS, REAL, WHOLE, names_for, ordered

PAPER_CLASSIFIERS = ("ANrank-lr", "SCN", "lr", "optirank", "rank-lr", "rf")
GROUPS = ("paper", "field", "peers")


@dataclass(frozen=True)
class Chosen:
    """The classifiers of a run: those of the binary problems, and the tools of whole tasks."""

    binary: list[str] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)


def choose(names: Sequence[str], problems: str) -> Chosen:
    """The classifiers of a run by names and groups, each where it can take part.

    ``problems`` is "binary", "whole" or "both". The groups are "paper" (the six of the paper, the
    default for binary problems), "field" (all that take part in whole tasks, the default there) and
    "peers" (tools of others).
    """
    groups = {
        "paper": list(PAPER_CLASSIFIERS),
        "field": names_for(WHOLE),
        "peers": [name for name, one in CLASSIFIERS.items() if one.peer],
    }
    can = {REAL: names_for(REAL), WHOLE: names_for(WHOLE)}
    asked = {"binary": [REAL], "whole": [WHOLE], "both": [REAL, WHOLE]}[problems]
    known = [name for name in ordered(CLASSIFIERS) if any(name in can[one] for one in asked)]
    wanted: list[str] = []
    for name in names:
        if name in groups:
            found = [one for one in groups[name] if one in known]
            if not found:
                raise ValueError(f"--problems {problems} has no classifier of the group {name!r}")
            wanted += found
        elif name in known:
            wanted.append(name)
        else:
            raise ValueError(
                f"classifier {name!r} is not known for --problems {problems}: use one of "
                f"{', '.join(known)}, or a group ({', '.join(GROUPS)})"
            )
    default = {REAL: groups["paper"], WHOLE: groups["field"]}
    of = {one: [name for name in ordered(wanted or default[one]) if name in can[one]]
          for one in asked}  # fmt: skip
    return Chosen(of.get(REAL, []), of.get(WHOLE, []))


def check_peers(given: Sequence[str]) -> dict[str, str]:
    """The interpreters of peers from ``NAME=PYTHON``, by the peers' names."""
    known = [one.peer for one in CLASSIFIERS.values() if one.peer]
    found = {}
    for text in given:
        name, sign, python = text.partition("=")
        if not sign or not python.strip():
            raise ValueError(
                f"--peer {text!r}: write NAME=PYTHON, as in celltypist=/env/bin/python"
            )
        if name.strip().lower() not in known:
            raise ValueError(f"--peer {text!r}: {name!r} is no peer: use one of {', '.join(known)}")
        if name.strip().lower() in found:
            raise ValueError(f"--peer {text!r}: {name!r} has two Pythons: give one of them")
        found[name.strip().lower()] = python.strip()
    return found
