"""Speed of the panel model: one fit, training from a file, prediction of a file.

    python benchmarks/bench_panel.py fit
        one fit beside one LogisticRegression
    python benchmarks/bench_panel.py train FILE.h5ad ...
        `optirank train` with five folds and report, then `optirank inspect` of the
        model and `optirank models`: the fastest of three runs; and one training
        whose caches (numba's, matplotlib's) are empty
    python benchmarks/bench_panel.py predict REFERENCE.h5ad QUERY.h5ad
        `optirank predict`

Times are of this machine, and ratios are within one run. `--quick` makes `fit` small.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from optirank import PanelClassifier

_REPEATS = 3  # of which the fastest counts: other programs only add time


def main() -> None:
    what, *files = [one for one in sys.argv[1:] if one != "--quick"] or ["fit"]
    if what == "fit":
        fit(quick="--quick" in sys.argv)
    elif what == "train":
        for file in files:
            train(Path(file), Path(tempfile.mkdtemp()))
    elif what == "predict":
        predict(*map(Path, files))
    else:
        sys.exit(__doc__)


def fit(quick: bool) -> None:
    """One fit at 5000 x 2000 x 20 classes, ranking included on both sides."""
    n, d, n_classes = (500, 200, 5) if quick else (5000, 2000, 20)
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    rates = np.exp(rng.normal(-1, 1.5, d)) * np.ones((n_classes, 1))
    for k in range(n_classes):
        rates[k, rng.permutation(d)[: d // 20]] *= 2.5
    X = rng.poisson(rates[y]).astype(np.float32)
    PanelClassifier(20).fit(X[:200], y[:200])  # compiled
    seconds = {}
    for name, model in {
        "n_genes=100": PanelClassifier(100, n_jobs=-1),
        "auto": PanelClassifier(n_jobs=-1),
    }.items():
        begin = time.perf_counter()
        model.fit(X, y)
        seconds[name] = time.perf_counter() - begin
    begin = time.perf_counter()
    ranks = rankdata(X, axis=1) / d
    LogisticRegression(tol=1e-5, max_iter=1000).fit(ranks, y)
    other = time.perf_counter() - begin
    for name, took in seconds.items():
        print(
            f"PanelClassifier, {name}: {took:.2f} s, {took / other:.2f} times "
            "LogisticRegression"
        )
    print(f"LogisticRegression (lbfgs, tol 1e-5) on ranks: {other:.2f} s")


def train(file: Path, folder: Path) -> None:
    """Times of the commands that a first user types, cold and warm."""
    model = str(folder / "model.optirank")
    training = train_command(file, Path(model))
    run("train", *training, caches=folder / "caches")
    run("train", *training, repeats=_REPEATS)
    run("inspect", model, repeats=_REPEATS)
    run("models", repeats=_REPEATS)


def train_command(file: Path, model: Path) -> list[str]:
    """The arguments of a training with its page."""
    outputs = ["-o", str(model), "--report", str(model.with_suffix(".html"))]
    return [str(file), "--label", "cell_type", *outputs, "--force"]


def predict(reference: Path, query: Path) -> None:
    """Cells per CPU second, with reading and writing."""
    import h5py

    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.optirank"
        run("train", *train_command(reference, model))
        with h5py.File(query) as opened:
            n = len(opened["obs"][opened["obs"].attrs["_index"]])
        out = Path(folder) / "labels.csv"
        cpu = run("predict", str(query), "--model", str(model), "-o", str(out))
        print(f"{n / cpu:.0f} cells per CPU second")


def run(*arguments: str, repeats: int = 1, caches: Path | None = None) -> float:
    """Run a command; print its least time and its memory; return its CPU seconds.

    ``caches`` is an empty folder to begin with, in place of the user's caches.
    """
    environment = dict(os.environ)
    if caches is not None:
        environment["NUMBA_CACHE_DIR"] = str(caches / "numba")
        environment["MPLCONFIGDIR"] = str(caches / "matplotlib")
    walls = []
    cpus = []
    gigabytes = 0.0
    for _ in range(repeats):
        begin = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "optirank", "--quiet", *arguments], env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        walls.append(time.perf_counter() - begin)
        if os.waitstatus_to_exitcode(status):
            raise RuntimeError(f"optirank {' '.join(arguments)} failed")
        cpus.append(used.ru_utime + used.ru_stime)
        gigabytes = max(gigabytes, used.ru_maxrss / 2**20)
    words = " ".join([arguments[0], *(Path(name).name for name in arguments[1:2])])
    words += " (empty caches)" if caches is not None else ""
    print(
        f"{words}: {min(walls):.2f} s, {min(cpus):.2f} CPU s, at most "
        f"{gigabytes:.2f} GB"
    )
    return min(cpus)


if __name__ == "__main__":
    main()
