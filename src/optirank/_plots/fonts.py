"""Labels in any script: fonts that have their characters, and what is done where there is none."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from optirank._util.names import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

logger = logging.getLogger("optirank")

_BOX = "□"  # stands for a character that no font has
_UNFIT = ("Last Resort", "LastResort")  # fonts of boxes
_KNOWN = ("Noto Sans", "Source Han Sans", "Arial Unicode MS", "PingFang", "Microsoft YaHei")
_left: ContextVar[set[str] | None] = ContextVar("characters left to the viewer", default=None)


@contextlib.contextmanager
def left_to_the_viewer() -> Iterator[set[str]]:
    """Keep characters that no installed font has, and collect them: the viewer may have one."""
    lacking: set[str] = set()
    token = _left.set(lacking)
    try:
        yield lacking
    finally:
        _left.reset(token)


def use_fonts_for(ax: Axes) -> None:
    """Let all text of the axes use fonts that have its characters.

    Characters that no installed font has are drawn as boxes, without matplotlib's warning for each
    of them; the log says so once.
    """
    from matplotlib.text import Text

    for axis in (ax.xaxis, ax.yaxis):
        axis.get_ticklabels()  # brings the texts up to date
    texts = ax.findobj(Text)
    needed = {character for text in texts for character in text.get_text()}
    families = tuple(dict.fromkeys(family for text in texts for family in text.get_fontfamily()))
    beyond = frozenset(c for c in needed if ord(c) > 126 or not c.isprintable()) - {"\n"}
    lacking = beyond - _of_families(families)
    if not lacking:
        return
    more, lost = _fallback(lacking)
    if (left := _left.get()) is not None:
        left |= lost
        lost = frozenset()
    _report_once(lacking, more, lost, left is not None)
    if lost:
        _replace(ax, {ord(character): _BOX for character in lost})
    if more:
        for text in ax.findobj(Text):
            text.set_fontfamily([*text.get_fontfamily(), *more])
        ax.tick_params(labelfontfamily=[*families, *more])


def _replace(ax: Axes, table: dict[int, str]) -> None:
    """Replace characters in all text, and in the names of ticks, which set theirs at each draw."""
    from matplotlib.text import Text

    for axis in (ax.xaxis, ax.yaxis):
        names = [text.get_text() for text in axis.get_ticklabels()]
        if any(name != name.translate(table) for name in names):
            axis.set_ticks(axis.get_ticklocs(), [name.translate(table) for name in names])
    for text in ax.findobj(Text):
        if text.get_text() != text.get_text().translate(table):
            text.set_text(text.get_text().translate(table))


@functools.lru_cache(maxsize=64)
def _of_families(families: tuple[str, ...]) -> frozenset[str]:
    """The characters of the fonts that stand for these families."""
    from matplotlib.font_manager import FontProperties, findfont

    return frozenset().union(
        *(_of_file(findfont(FontProperties(family=[one]))) for one in families)
    )


@functools.lru_cache(maxsize=1024)
def _of_file(path: str) -> frozenset[str]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # a font that is damaged, or gone since the list was made
        return frozenset()


@functools.lru_cache(maxsize=64)
def _fallback(lacking: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Installed fonts that together have the characters, and the characters that none has."""
    from matplotlib.font_manager import fontManager

    files = {
        entry.name: entry.fname
        for entry in fontManager.ttflist
        if not entry.name.startswith(_UNFIT) and entry.style == "normal"
    }
    names = sorted(files, key=lambda name: (not name.startswith(_KNOWN), name))
    chosen: list[str] = []
    while lacking and names:
        best = max(names, key=lambda name: len(lacking & _of_file(files[name])))
        found = lacking & _of_file(files[best])
        if not found:
            break
        chosen.append(best)
        lacking -= found
    return tuple(chosen), lacking


@functools.lru_cache(maxsize=64)
def _report_once(
    lacking: frozenset[str], more: tuple[str, ...], lost: frozenset[str], viewer: bool
) -> None:
    """Say in the log how the characters are drawn; the cache makes it once."""
    if more:
        logger.info("%s: drawn with the font %s", _shown(lacking - lost), ", ".join(more))
    if lost:
        logger.warning(
            "no installed font has the characters %s: they are drawn as %s; install a font that "
            "has them, such as Noto Sans CJK for Chinese, Japanese and Korean",
            _shown(lost),
            _BOX,
        )
    elif viewer and not more:
        logger.info(
            "no installed font has the characters %s: those of the browser are used",
            _shown(lacking),
        )


def _shown(characters: Iterable[str]) -> str:
    return printable("".join(sorted(characters)), 40)
