"""One untuned fit per ordered pair of real data sets, with all that studies of queries need.

``OptirankClassifier(n_reference=0.2, l1=1e-3, l2=1e-3)`` on the 1000 genes of best t statistics.
``python benchmarks/adapt_pairs.py`` saves, per pair, the query's scores, the held-out scores of
five folds, plain and on simulated platforms, and within-panel ranks, under ``--cache``; then, for
unknown types, fits that lack one class of the training set. ``study_adapt.py`` reads these files.
Real sets: OPTIRANK_DATA, else ../shared/data beside the project.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.model_selection import StratifiedKFold

from optirank import OptirankClassifier

DATA = Path(
    os.environ.get("OPTIRANK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)
CACHE = Path(tempfile.gettempdir()) / "optirank-study-adapt"
GENES, FOLDS, DRAWS = 1000, 5, 3
STRENGTHS = (0.25, 0.5, 1.0)
SETTING = {"n_reference": 0.2, "l1": 1e-3, "l2": 1e-3}
_BOTH_WAYS = (
    ("baron_h1", "segerstolpe_1000g"),
    ("baron_h1", "xin_980g"),
    ("segerstolpe_1000g", "xin_980g"),
    ("tm_10x_immune", "zilionis_mouse_immune"),
    ("kang_pbmc_ctrl", "kang_pbmc_stim"),
    ("golub_leukemia", "armstrong_leukemia"),
    ("nki_er", "vdx_er"),
    ("vdx_er", "expo_er"),
    ("nki_er", "expo_er"),
    ("tasic_interneurons", "zeisel_interneurons"),
    ("cepo_baron_betaductal", "cepo_segerstolpe_betaductal"),
    ("cepo_baron_betaductal", "cepo_lawlor_betaductal"),
    ("cepo_segerstolpe_betaductal", "cepo_lawlor_betaductal"),
    ("bladder_gse89", "bladder_gse1827"),
)


def pairs() -> list[tuple[str, str]]:
    """Every ordered pair of the study."""
    both = [pair for a, b in _BOTH_WAYS for pair in ((a, b), (b, a))]
    return [*both, ("tcga_breast_crc", "chowdary_breast_colon")]


@cache
def read(name: str) -> pd.DataFrame:
    """A set as a frame: one row per sample, named by its label; one column per gene."""
    if name == "tcga_breast_crc":
        tumours = read("tcga_tumours9")
        return pd.concat([tumours[tumours.index == "breast"], read("tcga_crc")], join="inner")
    data = anndata.read_h5ad(DATA / f"{name}.h5ad")
    frame = data.to_df()
    frame.index = data.obs["cell_type"].astype(str)
    return frame.loc[:, ~frame.columns.duplicated()]


def best_genes(X: np.ndarray, y: np.ndarray, number: int) -> np.ndarray:
    """Genes of largest |t| between the ranks of a class and those of the rest, over classes."""
    if X.shape[1] <= number:
        return np.arange(X.shape[1])
    ranks = rankdata(X, axis=1)
    best = np.zeros(X.shape[1])
    for label in np.unique(y):
        inside, outside = ranks[y == label], ranks[y != label]
        variance = inside.var(axis=0) / len(inside) + outside.var(axis=0) / len(outside)
        t = (inside.mean(axis=0) - outside.mean(axis=0)) / np.sqrt(np.maximum(variance, 1e-12))
        best = np.maximum(best, np.abs(t))
    return np.sort(np.argsort(-best, kind="stable")[:number])


def shifted(X: np.ndarray, strength: float, rng: np.random.Generator) -> np.ndarray:
    """The values on a simulated platform: one factor per gene, the same for all samples."""
    if (X.min() < 0 and X.max() < 100) or (X.max() < 40 and (np.floor(X) != X).any()):
        level = X.mean(axis=0)  # a logarithmic scale
        return X + rng.normal(0, strength * level.std(), X.shape[1]) * (X != 0)
    level = np.log(np.maximum(X.mean(axis=0), 1e-3))
    return X * np.exp(rng.normal(0, strength * level.std(), X.shape[1]))


def columns(scores: np.ndarray) -> np.ndarray:
    """Scores with one column per binary problem."""
    return scores[:, None] if scores.ndim == 1 else scores


def fit_pair(train: str, test: str) -> dict[str, np.ndarray]:
    """What is saved of one pair."""
    A, B = read(train), read(test)
    classes = sorted(set(A.index) & set(B.index))
    genes = A.columns[A.columns.isin(B.columns)]
    A, B = A.loc[A.index.isin(classes), genes], B.loc[B.index.isin(classes), genes]
    X, y = A.to_numpy(np.float32), np.asarray(A.index, dtype=str)
    Q, q = B.to_numpy(np.float32), np.asarray(B.index, dtype=str)
    start = time.process_time()
    kept = best_genes(X, y, GENES)
    model = OptirankClassifier(**SETTING).fit(X[:, kept], y)
    seconds = time.process_time() - start
    panel = kept[model.genes_]
    n_problems = 1 if len(classes) == 2 else len(classes)
    held = np.full((len(y), n_problems), np.nan)
    moved = np.full((len(STRENGTHS), DRAWS, len(y), n_problems), np.nan)
    smallest = min((y == c).sum() for c in classes)
    folds = StratifiedKFold(min(FOLDS, smallest), shuffle=True, random_state=0)
    rng = np.random.default_rng(0)
    fold = np.zeros(len(y), dtype=int)
    for k, (inside, outside) in enumerate(folds.split(X, y)):
        some = best_genes(X[inside], y[inside], GENES)
        one = OptirankClassifier(**SETTING).fit(X[inside][:, some], y[inside])
        fold[outside] = k
        held[outside] = columns(one.decision_function(X[outside][:, some]))
        for i, strength in enumerate(STRENGTHS):
            for j in range(DRAWS):
                Z = shifted(X[outside], strength, rng)[:, some]
                moved[i, j, outside] = columns(one.decision_function(Z))
    return {
        "classes": np.array(classes),
        "y": np.searchsorted(classes, y),
        "q": np.searchsorted(classes, q),
        "fitted": columns(model.decision_function(X[:, kept])),
        "query": columns(model.decision_function(Q[:, kept])),
        "held": held,
        "moved": moved,
        "fold": fold,
        "ranks": (rankdata(X[:, panel], axis=1) / len(panel)).astype(np.float32),
        "query_ranks": (rankdata(Q[:, panel], axis=1) / len(panel)).astype(np.float32),
        "n_panel": np.array(len(panel)),
        "seconds": np.array(seconds),
    }


def fit_all(folder: Path) -> None:
    """Fit and save every pair that is not saved yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for train, test in pairs():
        path = folder / f"{train}__{test}.npz"
        if path.exists():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            found = fit_pair(train, test)
        save(path, **found)
        print(f"{train} -> {test}: {time.process_time() - start:.1f} CPU s", flush=True)


def fit_unknown(train: str, test: str, folder: Path) -> None:
    """Fits without one class of the training set each, at most 120 samples per class."""
    A, B = read(train), read(test)
    classes = sorted(set(A.index) & set(B.index))
    genes = A.columns[A.columns.isin(B.columns)]
    rng = np.random.default_rng(0)
    parts = []
    for frame in (A, B):
        labels = np.asarray(frame.index, dtype=str)
        some = [rng.permutation(np.flatnonzero(labels == c))[:120] for c in classes]
        rows = np.concatenate(some)
        parts += [frame[genes].to_numpy(np.float32)[rows], labels[rows]]
    X, y, Q, q = parts
    for left_out in classes:
        path = folder / f"{train}__{test}__{left_out.replace(' ', '-')}.npz"
        if path.exists():
            continue
        there = y != left_out
        Xc, yc = X[there], y[there]
        names = np.unique(yc)
        kept = best_genes(Xc, yc, GENES)
        model = OptirankClassifier(**SETTING).fit(Xc[:, kept], yc)
        panel = kept[model.genes_]
        held = np.zeros((len(yc), 1 if len(names) == 2 else len(names)))
        for inside, outside in StratifiedKFold(3, shuffle=True, random_state=0).split(Xc, yc):
            some = best_genes(Xc[inside], yc[inside], GENES)
            one = OptirankClassifier(**SETTING).fit(Xc[inside][:, some], yc[inside])
            held[outside] = columns(one.decision_function(Xc[outside][:, some]))
        save(
            path,
            classes=names,
            y=np.searchsorted(names, yc),
            unknown=q == left_out,
            held=held,
            query=columns(model.decision_function(Q[:, kept])),
            X=Xc[:, panel],
            Q=Q[:, panel],
        )


def save(path: Path, **arrays: np.ndarray) -> None:
    """Write under another name, then rename."""
    np.savez_compressed(path.with_suffix(".tmp.npz"), **arrays)
    path.with_suffix(".tmp.npz").rename(path)


def saved(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """What was saved, by name."""
    return {path.stem: dict(np.load(path)) for path in sorted(folder.glob("*__*.npz"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=CACHE)
    folder = parser.parse_args().cache
    fit_all(folder)
    (folder / "unknown").mkdir(exist_ok=True)
    for train, test in pairs():
        if len(set(read(train).index) & set(read(test).index)) > 3:
            fit_unknown(train, test, folder / "unknown")


if __name__ == "__main__":
    main()
