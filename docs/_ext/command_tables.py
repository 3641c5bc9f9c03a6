"""Tables of the command line's options in the documentation, read from ``--help`` at each build.

    ```{command} train
    ```

gives the help's words, its examples, the arguments and the options of ``optirank train``.
``{other-commands}`` gives the same for every command that its page does not name, each with
a heading; ``{other-commands} optirank-lab`` for those of the laboratory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

_WIDE = 400
_ENTRY = re.compile(r"  (\S.*?)(?:  +(\S.*))?")
_KINDS = {  # what --help calls the type of a value -> what people call it
    "str": "text",
    "path": "file",
    "Path": "file",
    "int": "whole number",
    "float": "number",
}
_BRACKETS = re.compile(r"\s*\[(required|default: [^\]]*|[^\]]*<=?x[^\]]*|x>=?[^\]]*)\]")


@dataclass(frozen=True)
class Help:
    """The help of one command, taken apart."""

    usage: str
    words: tuple[str, ...]
    examples: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]


def _app(program: str):
    """The commands of ``optirank`` or ``optirank-lab``."""
    if program == "optirank-lab":
        from optirank_lab.cli import app
    else:
        from optirank.cli import app
    return app


def command_names(program: str = "optirank") -> list[str]:
    """Every command that does something, such as ``train`` and ``datasets list``."""
    import typer

    def walk(group, prefix: tuple[str, ...]):
        for name, command in group.commands.items():
            if getattr(command, "commands", None):
                yield from walk(command, (*prefix, name))
            else:
                yield " ".join((*prefix, name))

    return list(walk(typer.main.get_command(_app(program)), ()))


def read_help(command: str, program: str = "optirank") -> Help:
    """What ``optirank COMMAND --help`` says."""
    from typer.testing import CliRunner

    asked = [*command.split(), "--help"]
    wide = {"terminal_width": _WIDE, "max_content_width": _WIDE}
    done = CliRunner().invoke(_app(program), asked, prog_name=program, **wide)
    if done.exit_code:
        raise ValueError(f"{program} {command} --help ended with code {done.exit_code}")
    usage, _, text = done.output.partition("\n")
    parts = re.split(r"^(Arguments|Options)[^:\n]*:\n", text, flags=re.MULTILINE)
    tables: dict[str, str] = {}
    for heading, lines in zip(parts[1::2], parts[2::2], strict=True):
        tables[heading] = tables.get(heading, "") + lines
    words, _, examples = parts[0].partition("Examples:")
    return Help(
        re.sub(
            r"\{(\w+)\}", lambda name: name[1].upper(), usage.removeprefix("Usage: ")
        ),
        tuple(
            filter(
                None,
                (re.sub(r"\s+", " ", part).strip() for part in words.split("\n\n")),
            )
        ),
        tuple(filter(None, map(str.strip, examples.splitlines()))),
        _entries(tables.get("Arguments", "")),
        tuple(
            entry
            for entry in _entries(tables.get("Options", ""))
            if "--help" not in entry[0]
        ),
    )


def _entries(table: str) -> tuple[tuple[str, str], ...]:
    """Names and words; the words of a long name stand on the next line."""
    found: list[tuple[str, str]] = []
    for line in filter(str.strip, table.splitlines()):
        if line.startswith("   "):
            name, words = found.pop()
            found.append((name, f"{words} {line.strip()}".strip()))
        else:
            name, words = _ENTRY.fullmatch(line.rstrip()).groups()
            found.append((name, words or ""))
    return tuple(found)


def plain_kind(kind: str, words: str) -> str:
    """The type of a value in plain words: "text", "number", "a|b"; "several times" for a list."""
    kind = kind.removesuffix(" range")
    several = re.fullmatch(r"list\[(.*)\]", kind)
    name = several[1] if several else kind
    name = _KINDS.get(name, name.replace("|", " or "))
    if name == "file" and words.startswith(("Folder", "Where to write")):
        name = "folder"
    return f"{name}, can be repeated" if several else name


class Command(SphinxDirective):
    """The help of one command: words, examples, arguments and options."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Make the nodes."""
        return self.help_of(self.arguments[0])

    def help_of(self, name: str, program: str = "optirank") -> list[nodes.Node]:
        """What ``--help`` of a command says."""
        shown = read_help(name, program)
        found: list[nodes.Node] = []
        for words in shown.words:
            paragraph = nodes.paragraph("", "", nodes.Text(words))
            paragraph["support_smartquotes"] = False
            found.append(paragraph)
        text = "\n".join(shown.examples) or shown.usage
        found.append(nodes.literal_block(text, text, language="text"))
        return [*found, self.table(shown.arguments, shown.options)]

    def table(self, arguments, options) -> nodes.Node:
        """One line per argument or option: its name, what it means, its default."""
        table = nodes.table(classes=["options"])
        group = nodes.tgroup(cols=3)
        table += group
        for width in (30, 55, 15):
            group += nodes.colspec(colwidth=width)
        head, body = nodes.thead(), nodes.tbody()
        group += head
        group += body
        head += self._row(
            *(nodes.Text(word) for word in ("option", "what it does", "default"))
        )
        for name, words in arguments:
            bare, _, kind = name.partition(" ")
            body += self._line(f"{bare.upper()} {kind}", words)
        for name, words in options:
            body += self._line(name, words)
        return table

    def _line(self, name: str, words: str) -> nodes.row:
        notes = _BRACKETS.findall(words)
        text = _BRACKETS.sub("", words).strip()
        default = ""
        for note in notes:
            for part in note.split("; "):
                if part.startswith("default: "):
                    default = part.removeprefix("default: ")
                elif part == "required":
                    default = "required"
        names = nodes.inline()
        flag, _, kind = name.partition(" <")
        names += nodes.literal(flag.strip(), flag.strip())
        if kind:
            names += nodes.Text(" " + plain_kind(kind.removesuffix(">"), text))
        return self._row(names, nodes.Text(text), nodes.Text(default))

    @staticmethod
    def _row(*cells: nodes.Node) -> nodes.row:
        row = nodes.row()
        for cell in cells:
            paragraph = nodes.paragraph("", "", cell)
            paragraph["support_smartquotes"] = False  # --option stays as it is typed
            row += nodes.entry("", paragraph)
        return row


class OtherCommands(Command):
    """Every command that the page has no ``{command}`` for."""

    required_arguments = 0
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make one section per command."""
        program = self.arguments[0] if self.arguments else "optirank"
        with open(self.env.doc2path(self.env.docname), encoding="utf-8") as page:
            named = set(
                re.findall(r"^```\{command\} (.+?)\s*$", page.read(), re.MULTILINE)
            )
        found: list[nodes.Node] = []
        for name in command_names(program):
            if program != "optirank" or name not in named:
                found += self._section(name, program)
        return found or [nodes.paragraph("", "There are none: all are above.")]

    def _section(self, name: str, program: str) -> list[nodes.Node]:
        section = nodes.section(ids=[nodes.make_id(f"{program} {name}")])
        section += nodes.title("", "", nodes.literal("", f"{program} {name}"))
        section += self.help_of(name, program)
        return [section]


def setup(app) -> dict:
    """Tell Sphinx of the directives."""
    app.add_directive("command", Command)
    app.add_directive("other-commands", OtherCommands)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
