"""Tables of the command line's options in the documentation, read from the commands.

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


@dataclass(frozen=True)
class Option:
    """An option or an argument: its flags and kind of value, what it does, its default."""

    names: str
    kind: str
    words: str
    default: str


@dataclass(frozen=True)
class Help:
    """The help of one command."""

    words: tuple[str, ...]
    examples: str
    options: tuple[Option, ...]


def find_commands(program: str = "optirank") -> dict[str, object]:
    """Every command that does something, such as ``train`` and ``datasets list``."""
    import typer

    if program == "optirank-lab":
        from optirank_lab.cli import app
    else:
        from optirank.cli import app

    def walk(group, prefix: str):
        for name, command in group.commands.items():
            if getattr(command, "commands", None):
                yield from walk(command, f"{prefix}{name} ")
            elif not command.hidden:
                yield prefix + name, command

    return dict(walk(typer.main.get_command(app), ""))


def read_help(command) -> Help:
    """What ``--help`` of a command says."""
    text, _, examples = command.help.partition("Examples:")
    parts = (re.sub(r"\s+", " ", part).strip() for part in text.split("\n\n"))
    lines = (line.strip() for line in examples.splitlines())
    options = (describe(option) for option in command.params)
    return Help(
        tuple(filter(None, parts)), "\n".join(filter(None, lines)), tuple(options)
    )


def describe(option) -> Option:
    """One line of the table."""
    is_argument = option.param_type_name == "argument"
    is_flag = getattr(option, "is_flag", False)
    kind = option.metavar or option.name.upper()
    names = [kind] if is_argument else [*option.opts, *option.secondary_opts]
    default = option.default
    if option.required:
        words = "required"
    elif default is None or default is False or callable(default):
        words = ""
    else:
        words = str(default)
    shown_kind = "" if is_argument or is_flag else kind
    return Option(", ".join(names), shown_kind, option.help or "", words)


class Command(SphinxDirective):
    """The help of one command: words, examples, arguments and options."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Make the nodes."""
        return show_help(find_commands()[self.arguments[0]])


class OtherCommands(SphinxDirective):
    """Every command that the page has no ``{command}`` for, each in a section."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make one section per command."""
        program = self.arguments[0] if self.arguments else "optirank"
        with open(self.env.doc2path(self.env.docname), encoding="utf-8") as page:
            named = re.findall(r"^```\{command\} (.+?)\s*$", page.read(), re.MULTILINE)
        found: list[nodes.Node] = []
        for name, command in find_commands(program).items():
            if program == "optirank" and name in named:
                continue
            section = nodes.section(ids=[nodes.make_id(f"{program} {name}")])
            section += nodes.title("", "", nodes.literal("", f"{program} {name}"))
            section += show_help(command)
            found.append(section)
        return found


def show_help(command) -> list[nodes.Node]:
    """The help of a command as nodes."""
    shown = read_help(command)
    found = [make_paragraph(nodes.Text(words)) for words in shown.words]
    if shown.examples:
        found.append(nodes.literal_block(shown.examples, shown.examples))
        found[-1]["language"] = "text"
    return [*found, make_table(shown.options)]


def make_table(options: tuple[Option, ...]) -> nodes.Node:
    """One line per argument or option: its name, what it means, its default."""
    table = nodes.table(classes=["options"])
    group = nodes.tgroup(cols=3)
    table += group
    for width in (30, 55, 15):
        group += nodes.colspec(colwidth=width)
    head, body = nodes.thead(), nodes.tbody()
    group += [head, body]
    head += make_row(*map(nodes.Text, ("option", "what it does", "default")))
    for option in options:
        names = nodes.inline()
        names += nodes.literal(option.names, option.names)
        names += nodes.Text(f" {option.kind}")
        body += make_row(names, nodes.Text(option.words), nodes.Text(option.default))
    return table


def make_row(*cells: nodes.Node) -> nodes.row:
    """A line of the table."""
    row = nodes.row()
    for cell in cells:
        row += nodes.entry("", make_paragraph(cell))
    return row


def make_paragraph(content: nodes.Node) -> nodes.paragraph:
    """A paragraph in which --option stays as it is typed."""
    paragraph = nodes.paragraph("", "", content)
    paragraph["support_smartquotes"] = False
    return paragraph


def setup(app) -> dict:
    """Tell Sphinx of the directives."""
    app.add_directive("command", Command)
    app.add_directive("other-commands", OtherCommands)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
