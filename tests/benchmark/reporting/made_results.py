"""Made-up results of a benchmark, with the shape that a real run has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from optirank.benchmark.reporting.results import Results

CLASSIFIERS = ("ANrank-lr", "SCN", "lr", "optirank", "rank-lr", "rf")
PLAIN = {
    "nci60_p53": ("none", 0.60),
    "tcga_tumours9": ("none", 0.97),
    "tcga_crc_cms": ("none", 0.88),
    "tcga_crc_msi": ("none", 0.90),
    "kang_pbmc_ctrl-kang_pbmc_stim": ("biological", 0.90),
    "baron_h1-segerstolpe_1000g": ("platform", 0.97),
    "baron_h1-xin_980g": ("platform", 0.96),
    "segerstolpe_1000g-baron_h1": ("platform", 0.93),
    "tm_10x_immune-zilionis_mouse_immune": ("platform", 0.80),
    "zilionis_mouse_immune-tm_10x_immune": ("platform", 0.92),
    "tcga_breast_crc-chowdary_breast_colon": ("technology", 0.91),
    "golub_leukemia-armstrong_leukemia": ("technology", 0.88),
    "armstrong_leukemia-golub_leukemia": ("technology", 0.90),
    "nki_er-vdx_er": ("technology", 0.85),
    "vdx_er-expo_er": ("technology", 0.83),
}
TRIPLES = {
    "baron_h1-segerstolpe_1000g-xin_980g": ("platform", 0.94),
    "nki_er-vdx_er-expo_er": ("technology", 0.82),
}
_LEVEL = {"ANrank-lr": -0.01, "SCN": -0.08, "lr": -0.05, "optirank": 0, "rank-lr": 0.01, "rf": -0.2}
_GENES = {"ANrank-lr": 600, "SCN": 300, "lr": 220, "optirank": 410, "rank-lr": 1000, "rf": 900}
_SECONDS = {"ANrank-lr": 0.4, "SCN": 20, "lr": 0.1, "optirank": 1.5, "rank-lr": 0.3, "rf": 0.8}


def made_results(
    plain: Sequence[str] = tuple(PLAIN),
    triples: Sequence[str] = tuple(TRIPLES),
    classifiers: Sequence[str] = CLASSIFIERS,
    *,
    classes: Sequence[str] = ("alpha", "beta", "gamma"),
    splits: int = 5,
    seed: int = 0,
) -> Results:
    """Noisy scores around one level per task and classifier; two sources are better than one."""
    rng = np.random.default_rng(seed)
    scores, tasks = [], []
    places = [(task, "") for task in plain]
    places += [(task, scenario) for task in triples for scenario in ("single", "multi")]
    for task, scenario in places:
        shift, level = {**PLAIN, **TRIPLES}.get(task, ("none", 0.8))
        tasks.append(_task(task, scenario, shift, classes, splits))
        for classifier in classifiers:
            if classifier == "ANrank-lr" and not scenario:
                continue
            centre = level + _LEVEL[classifier] + rng.normal(0, 0.03)
            centre += 0.05 * (scenario == "multi")
            parts = 4 if task == "nci60_p53" else 1
            for positive in classes:
                for part in range(parts):
                    for split in range(splits):
                        noise = rng.normal(0, 0.02)
                        row = _score(classifier, rng, centre + noise)
                        keys = (task, scenario, positive, classifier, part, split)
                        scores.append({**dict(zip(_KEYS, keys, strict=True)), **row})
    run = {
        "profile": "paper",
        "classifiers": list(classifiers),
        "version": "0.9.0",
        "jobs": 2,
        "cpu_seconds": float(sum(row["unit_seconds"] for row in scores)),
        "python": "3.12.1",
        "platform": "Linux",
        "missing": ["BRCA", "TCGA"],
    }
    problems = {"broken_task": "broken.h5ad cannot be read: the file is cut off"}
    return Results(pd.DataFrame(scores), pd.DataFrame(tasks), problems, run)


_KEYS = ("task", "scenario", "positive", "classifier", "part", "split")


def _task(task: str, scenario: str, shift: str, classes: Sequence[str], splits: int) -> dict:
    names = task.split("-")
    return {
        "task": task,
        "scenario": scenario,
        "title": f"made-up scores of {' and '.join(names)}",
        "shift": shift,
        "kind": "bulk" if shift == "technology" else "single-cell",
        "sources": " + ".join(names[: 2 if scenario == "multi" else 1]),
        "target": names[-1],
        "n_genes": 969,
        "n_classes": len(classes),
        "classes": ", ".join(classes),
        "n_train": 400.0,
        "n_validation": 120.0,
        "n_test": 702.0,
        "n_splits": splits,
        "note": "",
    }


def _score(classifier: str, rng: np.random.Generator, score: float) -> dict:
    spread = rng.lognormal(0, 0.4)
    tuned = classifier not in ("SCN", "rf")
    has_reference = classifier in ("optirank", "ANrank-lr")
    genes = _GENES[classifier]
    return {
        "validation": float(np.clip(score + 0.02, 0, 1)),
        "test": float(np.clip(round(score, 3), 0, 1)),
        "n_genes": float(genes if classifier == "rank-lr" else min(1000, int(genes * spread))),
        "n_features": 1000,
        "n_reference": 0.05 if has_reference else np.nan,
        "l1": 1e-4 if tuned else np.nan,
        "l2": 1e-3 if tuned else np.nan,
        "fit_seconds": _SECONDS[classifier] * spread,
        "unit_seconds": _SECONDS[classifier] * spread * 20,
        "n_settings": 250 if has_reference else 25 if tuned else 1,
    }
