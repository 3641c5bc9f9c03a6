"""Tables as LaTeX, in the layout of the paper's."""

from __future__ import annotations

import re
import unicodedata

from optirank.benchmark.reporting.layout import Cell, Column, Table

LONG = 45  # rows; more do not fit on a page
_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    '"': "''",
    "[": "{[}",  # after the end of a row, [ and * would be options of it
    "*": "{*}",
    "†": r"\textdagger{}",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "→": r"$\to$",
    "×": r"$\times$",
    "−": r"$-$",
    "–": "--",
    "—": "---",
    "’": "'",
    "‘": "`",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
}
_NUMBER = re.compile(r"(?P<number>[+−]?\d+(\.\d+)?( ± \d+(\.\d+)?)?)(?P<rest>( \(\d+\))?†?)")
_TONES = {
    "better": r"\textbf{{\textcolor[HTML]{{00694A}}{{{}}}}}",
    "worse": r"\textit{{\textcolor[HTML]{{B3261E}}{{{}}}}}",
}


def render(table: Table) -> str:
    """Return a table environment; a comment on top names the packages it needs."""
    shown = [column.in_latex for column in table.columns]
    header = _line([_heading(column) for column in table.columns if column.in_latex])
    lines = []
    for index, row in enumerate(table.rows):
        if index in table.breaks:
            lines.append(r"\hline")
        lines.append(_line([_cell(cell) for cell, show in zip(row, shown, strict=True) if show]))
    first, *others = ["l" if one.words else "c" for one in table.columns if one.in_latex]
    columns = f"{{|{first}|{''.join(others)}|}}"
    frame = _long if len(lines) > LONG else _short
    packages = ["booktabs", "longtable" if frame is _long else "graphicx"]
    if r"\text{" in header:
        packages.append("amsmath")
    if any(cell.tone for row in table.rows for cell in row):
        packages.append("xcolor")
    needs = "".join(rf"\usepackage{{{name}}} " for name in packages).rstrip()
    caption = rf"\caption{{\textbf{{{escape(table.title)}.}} {escape(table.caption)}}}"
    label = rf"\label{{tab:{_label(table.name)}}}"
    return "\n".join([f"% needs {needs}", *frame(columns, header, lines, caption, label)]) + "\n"


def _short(columns: str, header: str, lines: list[str], caption: str, label: str) -> list[str]:
    return [
        r"\begin{table}[htbp]",
        r"\centering",
        r"\setlength{\tabcolsep}{3pt}",
        r"\resizebox{\ifdim\width>\linewidth \linewidth\else \width\fi}{!}{%",
        rf"\begin{{tabular}}{columns}",
        r"\toprule",
        header,
        r"\midrule",
        *lines,
        r"\bottomrule",
        r"\end{tabular}}",
        caption,
        label,
        r"\end{table}",
    ]


def _long(columns: str, header: str, lines: list[str], caption: str, label: str) -> list[str]:
    return [
        r"\begingroup",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{3pt}",
        rf"\begin{{longtable}}{columns}",
        caption + label + r" \\",
        r"\toprule",
        header,
        r"\midrule",
        r"\endfirsthead",
        r"\toprule",
        header,
        r"\midrule",
        r"\endhead",
        *lines,
        r"\bottomrule",
        r"\end{longtable}",
        r"\endgroup",
    ]


def escape(text: str) -> str:
    """Return text that LaTeX sets as it is; what pdflatex has no sign for is named by its code."""
    return "".join(map(_sign, " ".join(text.split())))


def _sign(sign: str) -> str:
    if sign in _SIGNS:
        return _SIGNS[sign]
    if ord(sign) < 0x180:
        return sign if sign.isprintable() else " "
    name = unicodedata.name(sign, "")
    greek = re.fullmatch(r"GREEK SMALL LETTER (ALPHA|BETA|GAMMA|DELTA|EPSILON|KAPPA|MU|PI)", name)
    return rf"$\{greek[1].lower()}$" if greek else f"(U+{ord(sign):04X})"


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _heading(column: Column) -> str:
    return (escape(column.text) or "{}") if column.latex is None else column.latex


def _cell(cell: Cell) -> str:
    if cell.tone:
        return _TONES[cell.tone].format(escape(cell.text)) if cell.text else ""
    found = _NUMBER.fullmatch(cell.text)
    if found is None:
        return rf"\textbf{{{escape(cell.text)}}}" if cell.bold else escape(cell.text)
    number = found["number"].replace("±", r"\pm").replace("−", "-")
    rest = escape(found["rest"])
    if cell.bold:
        return rf"$\mathbf{{{number}}}$" + (rf" \textbf{{{rest}}}" if rest else "")
    return f"${number}$" + (f" {rest}" if rest else "")


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.+-]+", "-", name)
