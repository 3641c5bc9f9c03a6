"""Options declared once: a field of a dataclass with the words of its
command-line flag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, NamedTuple, TypeVar, get_type_hints

Options = TypeVar("Options")


@dataclass(frozen=True, kw_only=True)
class Flag:
    """How the command line writes an option: ``Annotated[type, Flag(...)]`` of a field.

    Attributes
    ----------
    help : what the option does.
    metavar : what stands for its value; None for an option that is on or off.
    heading : the part of the help that it is in.
    names : its names, where they are not that of the field.
    typed : the type of what is typed, where it is not that of the field.
    choices : the words that it may be.
    lowest, highest : the numbers that it may be.
    alone : the word that it stands for without a value, where it may.
    """

    help: str
    metavar: str | None = None
    heading: str | None = None
    names: tuple[str, ...] = ()
    typed: Any = None
    choices: tuple[str, ...] = ()
    lowest: float | None = None
    highest: float | None = None
    alone: str | None = None


class FlaggedField(NamedTuple):
    """A field of a dataclass of options that has a flag."""

    name: str
    type: Any
    default: Any
    flag: Flag

    @property
    def spelled(self) -> str:
        """The option as it is written on the command line."""
        names = self.flag.names or (f"--{self.name.replace('_', '-')}",)
        return names[0]


def flagged_fields(options: type) -> list[FlaggedField]:
    """The fields of a dataclass that are options of the command line."""
    annotated = get_type_hints(options, include_extras=True)
    plain = get_type_hints(options)
    listed = []
    for entry in fields(options):
        flags = getattr(annotated[entry.name], "__metadata__", ())
        for flag in flags:
            if isinstance(flag, Flag):
                typed = plain[entry.name] if flag.typed is None else flag.typed
                default = entry.default
                if flag.typed is not None and default is not MISSING:
                    default = None
                listed.append(FlaggedField(entry.name, typed, default, flag))
    return listed


def among(options: type[Options], given: Mapping[str, Any]) -> Options:
    """A dataclass of options, filled from the parameters of a command or a function."""
    names = [entry.name for entry in fields(options)]  # type: ignore[arg-type]
    return options(**{name: given[name] for name in names if name in given})
