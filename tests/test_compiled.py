"""The wrapper around numba: a cache on disk where there can be one, and no word
where not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import optirank
from optirank._compiled.jit import jit

PACKAGE = Path(optirank.__file__).parent
ORDER = """
from optirank.ranks.orders import order_samples
scores = order_samples([[3.0, 1.0, 2.0]]).scores([1, 1, 1], [1, 1, 1])
assert scores.tolist() == [3.0], scores
"""
DOUBLE = """
from optirank._compiled.double import double
assert double(1.5) == 3.0
print(double.stats.cache_path)
"""
DOUBLE_MODULE = """
from optirank._compiled.jit import jit

@jit
def double(x):
    return 2 * x
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A copy of the rooms up to ranks, without any compiled code, and a small loop."""
    package = tmp_path / "site" / "optirank"
    without = shutil.ignore_patterns("__pycache__")
    for part in ("_util", "ranks", "_compiled"):
        shutil.copytree(PACKAGE / part, package / part, ignore=without)
    shutil.copy(PACKAGE / "__init__.py", package)
    (package / "_compiled" / "double.py").write_text(DOUBLE_MODULE)
    return tmp_path / "site"


def run_in(site: Path, code: str = DOUBLE, **environment: str) -> str:
    """What the code prints in a fresh process, with warnings as errors and no
    other output.
    """
    inherited = {
        k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "HOME")
    }
    check = f"import optirank; assert optirank.__file__.startswith({str(site)!r})\n"
    done = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", check + code],
        env=inherited | {"HOME": str(site), "PYTHONPATH": str(site)} | environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


def block_caches(site: Path) -> None:
    """Where numba would make its folder beside the source, put a file."""
    (site / "optirank" / "_compiled" / "__pycache__").write_text("in the way")


def test_compiled_code_is_kept_beside_the_source(elsewhere):
    folder = elsewhere / "optirank" / "_compiled" / "__pycache__"
    assert run_in(elsewhere) == str(folder)
    assert list(folder.glob("double.double-*.nbi"))


def test_a_read_only_installation_keeps_it_with_the_user(elsewhere, tmp_path):
    block_caches(elsewhere)
    folder = run_in(elsewhere, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert Path(folder).is_relative_to(tmp_path)
    assert list(Path(folder).glob("double.double-*.nbi"))


@pytest.mark.parametrize("code", [DOUBLE, pytest.param(ORDER, marks=pytest.mark.slow)])
def test_with_nowhere_to_write_it_compiles_in_memory(elsewhere, tmp_path, code):
    block_caches(elsewhere)
    blocked = tmp_path / "blocked"
    blocked.write_text("not a folder")
    assert run_in(elsewhere, code, HOME=str(blocked), XDG_CACHE_HOME=str(blocked)) in (
        "None",
        "",
    )


FULL_DISK = """
import errno, os
def replace(*paths):
    raise OSError(errno.ENOSPC, "No space left on device")
os.replace = replace
"""


def test_a_full_disk_costs_only_the_cache(elsewhere):
    run_in(elsewhere, FULL_DISK + DOUBLE)
    assert not list(elsewhere.rglob("*.nb*"))


@pytest.mark.parametrize(
    ("suffix", "left"), [(".nbi", 0), pytest.param(".nbc", 10, marks=pytest.mark.slow)]
)
def test_a_damaged_cache_is_as_good_as_none(elsewhere, suffix, left):
    run_in(elsewhere)
    kept = list(elsewhere.rglob(f"*{suffix}"))
    assert kept
    for file in kept:
        file.write_bytes(file.read_bytes()[:left])
    run_in(elsewhere)


@pytest.mark.parametrize(
    ("options", "flags"), [({}, {"contract"}), ({"fastmath": True}, True)]
)
def test_loops_release_the_gil_are_never_parallel_and_reorder_sums_only_if_asked(
    options, flags
):
    @jit(**options)
    def double(x):
        return 2 * x

    assert double(np.float64(1.5)) == 3.0
    assert double.targetoptions["nogil"] is True
    assert double.targetoptions["fastmath"] == flags
    assert "parallel" not in double.targetoptions
