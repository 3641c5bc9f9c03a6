"""The `optirank` command: quick help, the version, exit codes and errors in
one line.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest
import typer

from optirank import __version__
from optirank.cli import common


def optirank(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", "from optirank.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_help_names_the_commands_and_the_exit_codes():
    done = optirank("--help")
    assert done.returncode == 0
    for word in ("demo", "example", "Exit codes", "130"):
        assert word in done.stdout
    commands = done.stdout.partition("Commands:")[2].split("\n  ")
    names = {line.split()[0] for line in commands if line.strip()}
    examples = re.findall(r"^    optirank (\w+)", done.stdout, re.MULTILINE)
    assert set(examples) == names


@pytest.mark.parametrize("command", ["demo", "example"])
def test_every_command_has_examples_in_its_help(command):
    done = optirank(command, "--help")
    assert done.returncode == 0
    examples = done.stdout.partition("Examples:")[2].partition("Options:")[0]
    assert f"optirank {command}" in examples


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


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from optirank.cli import app\n"
        "try: app(['demo', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'sklearn', 'numba', 'matplotlib', 'pandas'} & "
        "set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--no-such-option"], "--no-such-option"),
        (["no-such-command"], "no-such-command"),
        (["train", "x.h5ad", "-l", "y", "-o", "z", "--method", "a"], "--method a: use"),
        (["inspect", "no-such-model"], "no-such-model"),
    ],
)
def test_bad_options_end_with_code_2_and_say_what_was_wrong(arguments, message):
    done = optirank(*arguments)
    assert done.returncode == common.BAD_INPUT
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_output_that_is_a_file_is_bad_input(tmp_path):
    target = tmp_path / "file"
    target.write_text("here already")
    done = optirank("example", str(target))
    assert done.returncode == common.BAD_INPUT
    assert "is a file" in done.stderr
    assert target.read_text() == "here already"


def test_debug_belongs_to_optirank_and_shows_the_traceback():
    done = optirank("--debug", "inspect", "no-such-model")
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    done = optirank("inspect", "--debug", "no-such-model")
    assert done.returncode == common.BAD_INPUT
    assert "--debug" in done.stderr


def test_an_unexpected_failure_is_one_line_and_code_1(capsys):
    with pytest.raises(typer.Exit) as stop, common.tidy():
        raise RuntimeError("something\nbroke")
    assert stop.value.exit_code == common.UNEXPECTED
    assert capsys.readouterr().err.count("\n") == 1


def test_an_interrupt_is_code_130(capsys):
    with pytest.raises(typer.Exit) as stop, common.tidy():
        raise KeyboardInterrupt
    assert stop.value.exit_code == common.INTERRUPTED
    assert capsys.readouterr().err.startswith("optirank: interrupted")
