"""Training on many cells: accuracy against logistic regression, time and peak memory.

    python benchmarks/run.py scale                 5,000, 80,000 and 200,000 generated cells, 120 s
    python benchmarks/bench_scale.py 1000000 20m   other numbers of cells and times

Budgets are counted in CPU time of two threads, so that a busy machine gives the same models as a
free one. Each training runs in a process of its own, whose peak memory is its own. Files are made
in a temporary folder, block by block, and removed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scale_data import write_cells

N_JOBS = 2
BUDGET = 120.0
_TRAIN = """
import json, sys, time
N_JOBS = 2
time.perf_counter = lambda: time.process_time() / N_JOBS  # before anything imports it
time.time = time.perf_counter
from optirank import save
from optirank.datasets import open_expression
from optirank.workflow.preparation import prepare
from optirank.workflow.train import reading_seconds, train_prepared
file, model, budget = sys.argv[1], sys.argv[2], float(sys.argv[3])
with open_expression(file) as data:
    prepared = prepare(data, "cell_type", seconds=reading_seconds(budget))
said = []
result = train_prepared(prepared, budget=budget, n_jobs=N_JOBS, say=said.append)
save(result.model, model)
lines = open("/proc/self/status").read().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(json.dumps({
    "seconds": time.perf_counter(), "gigabytes": peak / 1024**2,
    "held_out": result.balanced_accuracy,
    "n_settings": len(result.path), "timings": result.timings, "notes": result.notes, "said": said,
    "reading": prepared.seconds, "genes": list(map(str, prepared.genes[prepared.chooser()])),
}))
"""


def train(file: Path, model: Path, budget: float) -> dict:
    """Train in a process of its own; what it says about itself."""
    command = [sys.executable, "-c", _TRAIN, str(file), str(model), str(budget)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def accuracy(model: Path, query: Path) -> float:
    """Balanced accuracy of a model file on a query."""
    from optirank import load
    from optirank.datasets import read_expression
    from optirank.model import Predictor
    from optirank.tuning.selection import balanced_accuracy

    data = read_expression(query)
    found = Predictor(load(model), data.gene_names).predict(data.X)
    return balanced_accuracy(data.labels("cell_type").to_numpy(), np.asarray(found.labels))


def logistic_accuracy(file: Path, query: Path, genes: list[str]) -> float:
    """Balanced accuracy of scikit-learn's logistic regression on the same genes."""
    from sklearn.linear_model import LogisticRegression

    from optirank.datasets import open_expression, read_expression
    from optirank.datasets.data import gene_positions
    from optirank.datasets.profiles import gather
    from optirank.preprocessing import LogCPM
    from optirank.tuning.selection import balanced_accuracy

    with open_expression(file) as data:
        columns = gene_positions(data.gene_names, genes, str(file))
        X = gather(data, columns, np.arange(data.n_samples))
        y = data.obs["cell_type"].astype(str).to_numpy()
    model = LogisticRegression(max_iter=200).fit(LogCPM(1e4).transform(X), y)
    other = read_expression(query, genes=genes)
    labels = model.predict(LogCPM(1e4).transform(other.X))
    return balanced_accuracy(other.labels("cell_type").to_numpy(), labels)


def measure(n_cells: int, budget: float, folder: Path, query: Path, compare: bool = True) -> dict:
    """Train on so many generated cells; figures by name."""
    file, model = folder / f"cells_{n_cells}.h5ad", folder / f"m_{n_cells}.optirank"
    if not file.exists():
        write_cells(file, n_cells, (0, 1, 2), seed=n_cells)
    found = train(file, model, budget)
    found["query"] = accuracy(model, query)
    genes = found.pop("genes")
    found["logistic"] = logistic_accuracy(file, query, genes) if compare else float("nan")
    print(
        f"{n_cells} cells, {budget:.0f} s allowed: {found['seconds']:.0f} s and "
        f"{found['gigabytes']:.2f} GB used; balanced accuracy on the query "
        f"{100 * found['query']:.1f} %, logistic regression {100 * found['logistic']:.1f} %, held "
        f"out {100 * found['held_out']:.1f} %; {found['n_settings']} settings"
    )
    for note in found["notes"]:
        print(f"  {note}")
    return found


def judge(words: str, good: bool) -> None:
    """One line per target."""
    print(f"{'ok    ' if good else 'MISSED'} {words}")


def main() -> None:
    """5,000, 80,000 and 200,000 cells with their targets, or what the command line says."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        query = folder / "query.h5ad"
        write_cells(query, 4000, (9,), seed=2)
        if len(sys.argv) == 3:
            from optirank.cli.train import parse_time

            n_cells = int(sys.argv[1])
            measure(n_cells, parse_time(sys.argv[2]), folder, query, n_cells <= 200_000)
            return
        few, many = (measure(n, BUDGET, folder, query) for n in (5000, 80_000))
        most = measure(200_000, BUDGET, folder, query, compare=False)
    judge(
        "5,000 cells: within 4 points of logistic regression", few["query"] > few["logistic"] - 0.04
    )
    judge(
        "80,000 cells: within 5 points of logistic regression",
        many["query"] > many["logistic"] - 0.05,
    )
    judge("80,000 cells: 6 points better than 5,000", many["query"] > few["query"] + 0.06)
    judge("80,000 cells: below 1.5 GB", many["gigabytes"] < 1.5)
    judge("200,000 cells: below 1.5 GB", most["gigabytes"] < 1.5)
    judge("200,000 cells: not worse than 80,000", most["query"] > many["query"] - 0.01)
    longest = max(one["seconds"] for one in (few, many, most))
    judge("within 15 % of the time", longest < 1.15 * BUDGET)


if __name__ == "__main__":
    main()
