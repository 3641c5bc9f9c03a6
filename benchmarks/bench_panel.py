"""Speed of the panel model: one fit, training from a file, prediction of a file.

    python benchmarks/bench_panel.py fit
        one fit beside one LogisticRegression
    python benchmarks/bench_panel.py train FILE.h5ad ...
        `optirank train` with five folds and report
    python benchmarks/bench_panel.py predict REFERENCE.h5ad QUERY.h5ad
        `optirank predict`

Times are of this machine, and ratios are within one run. `--quick` makes `fit` small.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from optirank import PanelClassifier


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


def train(file: Path, folder: Path) -> Path:
    """Time, CPU time and memory of the whole command."""
    model = folder / "model.optirank"
    report = ["--report", str(folder / "report.html")]
    run("train", str(file), "--label", "cell_type", "-o", str(model), *report)
    return model


def predict(reference: Path, query: Path) -> None:
    """Cells per CPU second, with reading and writing."""
    import h5py

    with tempfile.TemporaryDirectory() as folder:
        model = train(reference, Path(folder))
        with h5py.File(query) as opened:
            n = len(opened["obs"][opened["obs"].attrs["_index"]])
        out = Path(folder) / "labels.csv"
        cpu = run("predict", str(query), "--model", str(model), "-o", str(out))
        print(f"{n / cpu:.0f} cells per CPU second")


def run(*arguments: str) -> float:
    """Run the command; print its time and memory; return its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "optirank", "--quiet", *arguments], check=True
    )
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    words = f"{arguments[0]} {Path(arguments[1]).name}"
    print(
        f"{words}: {wall:.1f} s, {cpu:.1f} CPU s, at most "
        f"{after.ru_maxrss / 2**20:.2f} GB"
    )
    return cpu


if __name__ == "__main__":
    main()
