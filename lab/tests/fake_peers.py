"""Small packages that pretend to be tools of others, and a Python that has them."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

# A nearest centroid on the values that SingleR would get, genes in rows.
GOOD = """
    import numpy as np

    class Built:
        def __init__(self, X, labels):
            self.labels = sorted(set(labels))
            of = np.array(labels)
            self.centres = np.stack([X[:, of == one].mean(axis=1) for one in self.labels], 1)

        def num_markers(self):
            return 3

    def train_single(ref_data, ref_labels, ref_features, test_features):
        assert ref_data.shape == (len(ref_features), len(ref_labels))
        print("a lot of words" * 1000)
        return Built(np.asarray(ref_data.todense()), ref_labels)

    def classify_single(test_data, built):
        X = np.log2(1 + np.asarray(test_data.todense()))
        rows = np.corrcoef(X.T, built.centres.T)[: X.shape[1], X.shape[1] :]
        return {"best": [built.labels[k] for k in rows.argmax(axis=1)]}
"""
CRASHES = GOOD.replace("return Built", "import os; os.kill(os.getpid(), 11)")
RAISES = GOOD.replace("return Built", "raise ValueError('bad\\nvalues')  # ")
HANGS = (
    "import subprocess, sys, time, pathlib\n"
    "one = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    "pathlib.Path(__file__).with_name('pid').write_text(str(one.pid))\n"
    "time.sleep(600)\n"
)
OTHER_INTERFACE = "def annotate(data): pass\n"
BROKEN_IMPORT = "import a_package_that_is_not_there\n"
RUBBISH = GOOD.replace('{"best": [', '{"best": "rubbish" or [')


def make_peer(folder: Path, package: str, code: str, version: str = "9.9") -> Path:
    """Write a package and a Python that has it; return that Python."""
    home = folder / "packages" / package
    home.mkdir(parents=True)
    (home / "__init__.py").write_text(dedent(code))
    notes = folder / "packages" / f"{package}-{version}.dist-info"
    notes.mkdir()
    (notes / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    )
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{folder / "packages"}" exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    return python
