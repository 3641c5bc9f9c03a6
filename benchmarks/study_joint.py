"""One panel for several classes against one reference set per class, on other platforms.

    python benchmarks/study_joint.py --out DIR [--wide]
    python benchmarks/study_joint.py --out DIR --report

Over the ordered pairs of real data sets with three common classes or more (see transfer_pairs.py)
models are trained on the one set and label the other; the figure is the balanced accuracy over all
common classes. All are chosen by the search of `optirank train`: the same folds, simulated
platforms to train on and to score, and the same rule. Compared are:

- one per class: the default of `optirank train`, and the single setting it falls back to
  (``--wide``: all settings of ``--method optirank``)
- one panel: one reference set for all classes, models that use their whole panel
  (`optirank.workflow.grids.one_panel_grids`)
- one panel, genes: the same with ``--prefer genes``
- not whole: the first setting of "one panel" without ``whole_panel``
- 50 genes: what `optirank panel --max-genes 50` learns, by its shorter grid
- 50 genes, not whole: the same without ``whole_panel``

Training sets have at most 100 samples per class. Each result is one JSON file below DIR, so that a
study can be interrupted.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score
from transfer_pairs import Pair, both_sides, labels_of, pairs

from optirank._util.files import write_text
from optirank.model import Predictor
from optirank.workflow.grids import make_grids, one_panel_grids, panel_grids
from optirank.workflow.preparation import prepare
from optirank.workflow.train import train_prepared

KINDS = (
    "one per class",
    "one panel",
    "one panel, genes",
    "not whole",
    "50 genes",
    "50 genes, not whole",
)
PANEL = 50  # genes of the small panels
MOST = 100  # samples per class
FOLDS = 2
LONG = 1e5  # seconds: nothing is left out to save time


def thinned(data):
    """At most ``MOST`` samples of each class."""
    rng, y = np.random.default_rng(0), labels_of(data)
    kept = [rng.permutation(np.flatnonzero(y == one))[:MOST] for one in np.unique(y)]
    return data.select_samples(np.isin(np.arange(len(y)), np.concatenate(kept)))


def grids_of(kind: str, n_classes: int, wide: bool):
    """The settings that are tried."""
    if kind == "one per class":
        return make_grids("optirank", n_classes)[0 if wide else 1 :]
    grids = panel_grids(PANEL)[1:] if kind.startswith("50") else one_panel_grids(n_classes)
    if kind.endswith("not whole"):
        return [replace(grids[-1], whole_panel=False)]
    return grids


def run(pair: Pair, kind: str, wide: bool, folder: Path) -> None:
    """Measure one pair and kind of model, unless it is there."""
    path = folder / f"{pair.train}--{pair.test}--{kind.replace(' ', '-').replace(',', '')}.json"
    if path.exists():
        return
    data, query = both_sides(pair)
    n_classes = len(np.unique(labels_of(data)))
    if n_classes < 3:
        return
    cpu = time.process_time()
    result = train_prepared(
        prepare(thinned(data), "cell_type", n_folds=FOLDS),
        grids=grids_of(kind, n_classes, wide),
        panel_size=PANEL if kind.startswith("50") else None,
        prefer="genes" if kind == "one panel, genes" else "accuracy",
        budget=LONG,
        n_jobs=1,
    )
    labels = Predictor(result.model, query.gene_names).predict(query.X).labels
    found = {
        "pair": f"{pair.train} -> {pair.test}",
        "kind": kind,
        "score": float(balanced_accuracy_score(labels_of(query), labels)),
        "genes": len(result.genes),
        "setting": {k: v for k, v in result.settings.items() if k in ("n_reference", "l1", "l2")},
        "cpu_seconds": time.process_time() - cpu,
    }
    write_text(path, json.dumps(found))
    print(f"{found['pair']}, {kind}: {found['score']:.3f}, {found['genes']} genes", flush=True)


def report(folder: Path) -> None:
    """One line per pair: accuracy and genes of each kind of model."""
    table = pd.DataFrame([json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))])
    wide = table.pivot(index="pair", columns="kind", values=["score", "genes", "cpu_seconds"])
    kinds = [kind for kind in KINDS if ("score", kind) in wide]
    wide = wide.dropna()
    print("| train -> test | " + " | ".join(f"{kind} | genes" for kind in kinds) + " |")
    print("|---|" + "--:|--:|" * len(kinds))
    wide.loc["mean"] = wide.mean()
    for pair, row in wide.iterrows():
        cells = [f"{row['score', kind]:.3f} | {row['genes', kind]:.0f}" for kind in kinds]
        print(f"| {pair} | " + " | ".join(cells) + " |")
    print(wide["cpu_seconds"].loc["mean"].round(0).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kinds", default=";".join(KINDS), help="separated by ;")
    parser.add_argument("--wide", action="store_true", help="all settings of one per class")
    parser.add_argument("--report", action="store_true", help="only read what is there")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", UserWarning)
    for kind in () if given.report else given.kinds.split(";"):
        for pair in pairs():
            if pair.train.startswith("cepo"):  # two classes
                continue
            run(pair, kind, given.wide, given.out)
    report(given.out)


if __name__ == "__main__":
    main()
