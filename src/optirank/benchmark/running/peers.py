"""Tools of others: whether an interpreter has one, and the environment that it runs in."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PACKAGES = {"celltypist": "celltypist", "singler": "singler", "pysinglecellnet": "pySingleCellNet"}
_OLDEST = (3, 9)
_PROBE_SECONDS = 60.0
# Looks for packages without importing them, which takes seconds. The sign tells the answer from
# what a start-up file of that Python may print.
_PROBE = """
import sys
from importlib.util import find_spec
found = [name for name in sys.argv[1:] if find_spec(name) is not None]
print("\\n@", sys.version_info[0], sys.version_info[1], *found)
"""


def peer_python(peer: str, peers: Mapping[str, str]) -> str:
    """The Python of a peer: the one that is named for it, as an absolute path, or this one."""
    python = os.path.expanduser(peers.get(peer, sys.executable))
    # Links stay: the Python of a virtual environment is one.
    return os.path.abspath(python) if os.path.dirname(python) else python


def peer_environment(python: str) -> Mapping[str, str]:
    """The environment of a peer's process.

    Another Python must not see the packages of this one. Hashes are fixed, because pySingleCellNet
    draws from the order of sets.
    """
    variables = dict(os.environ)
    if python != sys.executable:
        for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
            variables.pop(name, None)
    return variables | {"PYTHONHASHSEED": "0"}


@functools.lru_cache(maxsize=16)
def why_no_peer(peer: str, python: str) -> str | None:
    """Why a peer cannot be run by this Python, with the remedy; None where it can."""
    package = PACKAGES[peer]
    option = f"--peer {peer}=PYTHON"
    if Path(python).is_dir():
        return f"{python} is a folder: name the Python in it, as in {Path(python, 'bin', 'python')}"
    if shutil.which(python) is None:
        what = "may not be run" if Path(python).exists() else "does not exist"
        return f"{python} {what}: name a Python that has {package} ({option})"
    needed = ("numpy", "scipy", package)
    try:
        done = subprocess.run(
            [python, "-c", _PROBE, *needed],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            env=peer_environment(python),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{python} gave no answer within {_PROBE_SECONDS:g} s: name another ({option})"
    except OSError as error:
        return f"{python} cannot be run ({error}): name a Python that has {package} ({option})"
    answers = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("@ ")]
    if done.returncode or not answers:
        said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        return f"{python} is not a Python that works ({said}): name another ({option})"
    version, found = tuple(map(int, answers[-1][:2])), answers[-1][2:]
    if version < _OLDEST:
        have = ".".join(map(str, version))
        return f"{python} is Python {have}: {package} is run by 3.9 or newer ({option})"
    lacking = [name for name in needed if name not in found]
    if not lacking:
        return None
    if python == sys.executable:
        remedy = f"pip install 'optirank[peers]', or name a Python that has it ({option})"
        return f"{lacking[-1]} is not installed: {remedy}"
    return f"{lacking[-1]} is not installed for {python}: {python} -m pip install {package}"
