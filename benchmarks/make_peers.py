"""Environments of the competing tools: python benchmarks/make_peers.py [--folder
.peers] [NAME ...].

Each tool has a virtual environment of its own in the folder, made from PyPI by the
pinned requirements in benchmarks/peers/NAME.txt: their requirements contradict each
other (CellTypist cannot train with scikit-learn 1.8 and newer). An environment is made
again where its requirements have changed. A tool that cannot be installed is reported,
and the others are still made.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from optirank_lab.baselines.peers import PEERS_FOLDER, peer_names, python_of

REQUIREMENTS = Path(__file__).resolve().parent / "peers"
STAMP = "requirements.txt"  # what an environment was made from


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=PEERS_FOLDER)
    parser.add_argument("names", nargs="*", metavar="NAME", default=peer_names())
    args = parser.parse_args()
    for name in args.names:
        if name not in peer_names():
            parser.error(f"{name!r} is no tool: use {', '.join(peer_names())}")
    failed = [name for name in args.names if not make(name, args.folder)]
    if failed:
        sys.exit(f"could not be installed: {', '.join(failed)}")


def make(name: str, folder: Path) -> bool:
    """Make the environment of a tool unless it is there; return whether it is
    there now.
    """
    wanted = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    environment = folder / name
    stamp = environment / STAMP
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        print(f"{name}: {environment} is there")
        return True
    shutil.rmtree(environment, ignore_errors=True)
    venv.create(environment, with_pip=True)
    command = [str(python_of(environment)), "-m", "pip", "install", "--quiet"]
    command += ["--disable-pip-version-check", "--no-deps"]
    command += ["--requirement", str(REQUIREMENTS / f"{name}.txt")]
    print(f"{name}: installing into {environment}", flush=True)
    if subprocess.run(command).returncode:
        return False
    stamp.write_text(wanted, encoding="utf-8")
    return True


if __name__ == "__main__":
    main()
