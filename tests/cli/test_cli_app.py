"""The `optirank` command: help, switches, exit codes, errors in one line, tables."""

from __future__ import annotations

import errno
import re
import shlex
import subprocess
import sys
import time

import pytest
import typer
from typer.testing import CliRunner

from optirank import __version__
from optirank.cli import app
from optirank.cli.command import BAD_INPUT, INTERRUPTED, UNEXPECTED, Command, show_table

COMMANDS = [
    *("train", "predict", "evaluate", "design", "models"),
    *("inspect", "export", "example", "demo"),
]
MOST_OPTIONS = {"train": 24, "predict": 20, "design": 24}


def optirank(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", "from optirank.cli import main; main()", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_help_names_the_commands_and_the_exit_codes():
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    for word in ("Exit codes", "130", *COMMANDS):
        assert word in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_with_options_that_exist(command):
    done = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80"})
    assert done.exit_code == 0
    text, _, options = done.stdout.partition("╭─")
    examples = re.findall(rf"^ +(optirank {command}.*?) *$", text, re.MULTILINE)
    assert examples or command == "models"
    for line in examples:  # each is whole, on a line of its own
        for word in shlex.split(line):
            assert not word.startswith("-") or f" {word} " in options, line
    lines = re.findall(r"^│ [ *] {0,2}--|^│ --", options, re.MULTILINE)
    assert len(lines) <= MOST_OPTIONS.get(command, 24)
    assert "--debug" not in options


@pytest.mark.parametrize("command", ["train", "inspect", "demo"])
def test_help_imports_nothing_heavy(command):
    code = (
        "import sys; from optirank.cli import app\n"
        f"try: app([{command!r}, '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'sklearn', 'numba', 'matplotlib', 'pandas'} & "
        "set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_version():
    assert optirank("--version").stdout.strip() == f"optirank {__version__}"


@pytest.mark.timing
def test_help_takes_under_half_a_second():
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        optirank("--help")
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["demo", "--no-such-option"], "--no-such-option"),
        (["no-such-command"], "no-such-command"),
        (["train", "x", "-l", "y", "-o", "z", "--method", "a"], "method='a': use one"),
        (["train", "x", "-o", "z"], "--label"),
        (["inspect", "no-such-model"], "no-such-model"),
    ],
)
def test_bad_options_end_with_code_2_and_say_what_was_wrong(words, message):
    done = optirank(*words)
    assert done.returncode == BAD_INPUT
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [["--debug", "inspect", "nothing"], ["inspect", "nothing", "--debug"]]
)
def test_debug_shows_the_traceback_before_and_after_the_command(words):
    done = optirank(*words)
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_a_reader_that_leaves_early_does_not_end_the_command():
    code = "from optirank.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "models"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def failing(error: BaseException) -> typer.Typer:
    """A program whose only command fails."""
    program = typer.Typer()

    @program.command(cls=Command)
    def fail() -> None:
        raise error

    return program


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RuntimeError("a\nb"), UNEXPECTED, "unexpected failure: RuntimeError: a b"),
        (KeyboardInterrupt(), INTERRUPTED, "interrupted"),
        (ValueError("no \x1b[1m"), BAD_INPUT, r"no \x1b[1m"),
        (MemoryError("9 TiB"), BAD_INPUT, "there is not enough memory (9 TiB)"),
        (OSError(errno.ENOSPC, "Full", "a.csv"), BAD_INPUT, "a.csv: full (make room"),
    ],
)
def test_errors_are_one_line_and_a_code(error, code, message):
    done = CliRunner().invoke(failing(error), [])
    assert done.exit_code == code
    assert done.stderr.startswith(f"optirank: {message}")
    assert done.stderr.count("\n") == 1


def test_columns_of_numbers_stand_on_the_right(capsys):
    rows = [("a", "7SK", "12,345", "92.1 (88.0 to 95.2)", "+0.3")]
    rows.append(("bb", "CD3E", "", "- ", "missing"))
    show_table("T", ("name", "gene", "samples", "share", "value"), rows)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    head, first, second = lines[1], lines[3], lines[4]
    assert head.index("samples") + len("samples") == first.index("12,345") + 6
    assert first.index("7SK") == second.index("CD3E") == head.index("gene")
