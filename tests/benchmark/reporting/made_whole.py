"""Made-up records of tools on whole tasks, written into a folder of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from made_results import PLAIN, TRIPLES

from optirank.benchmark.designs import design_key
from optirank.benchmark.profiles import PAPER
from optirank.benchmark.running.storage import Storage, WholeUnit

TOOLS = (
    *("optirank", "optirank train", "rank-lr", "SCN", "k-TSP", "lr-log", "lr-ranks", "svm-ranks"),
    *("centroid", "rf", "CellTypist", "SingleR", "pySingleCellNet"),
)
_LEVELS = (0.86, 0.87, 0.865, 0.8, 0.75, 0.78, 0.86, 0.85, 0.82, 0.7, 0.8, 0.84, 0.6)
_GENES = (160, 420, 1000, 300, 18, 1000, 1000, 1000, 1000, 800, 300, 350, 90)
_SECONDS = (2.0, 11, 0.6, 30, 1.5, 0.8, 0.9, 0.2, 0.05, 2.2, 25, 0.4, 40)

# (design, tool) -> (stage, reason), or None where there is no record
Gaps = Mapping[tuple[str, str], tuple[str, str] | None]


def design(task: str, scenario: str = "", *, shift: str = "platform", splits: int = 5) -> dict:
    names = task.split("-")
    return {
        "fingerprint": "x",
        "added": "2026",
        "task": task,
        "scenario": scenario,
        "kind": "single-cell",
        "sources": " + ".join(names[: 2 if scenario == "multi" else 1]),
        "tests": [task],
        "titles": [f"made-up scores of {task}"],
        "shifts": [shift],
        "targets": [names[-1]],
        "n_genes": 1200,
        "classes": ["alpha", "beta", "gamma"],
        "positives": ["alpha", "beta", "gamma"],
        "parts": [0] * splits,
        "n_train": [100] * splits,
        "n_validation": [20] * splits,
        "n_test": [[250] * splits],
        "notes": [],
    }


def record(task: str, tool: str, scores: Sequence[float], **changed: object) -> dict:
    """The record of a tool with these test scores, one per split."""
    place = TOOLS.index(tool) if tool in TOOLS else 0
    n = len(scores)
    spread = 1 + 0.1 * (sum(map(ord, task)) % 7)
    found = {
        "kind": "whole",
        "tool": tool,
        "version": f"{tool} 1.2.3",
        "classes": ["alpha", "beta", "gamma"],
        "splits": list(range(n)),
        "validation": [min(1.0, score + 0.05) for score in scores],
        "test": {task: list(scores)},
        "unassigned": {task: [0.3 if tool == "pySingleCellNet" else 0.0] * n},
        "n_genes": [int(_GENES[place] * spread)] * n,
        "fit_seconds": [_SECONDS[place] * spread] * n,
        "predict_seconds": {task: [0.01 * (place + 1)] * n},
        "n_test": {task: 250},
        "n_train": [100] * n,
        "n_features": 1200,
        "peak_bytes": 400_000_000 + 50_000_000 * place,
        "start_bytes": 350_000_000,
        "seconds": 12.0,
    }
    return {**found, **changed}


def gap_record(tool: str, stage: str, reason: str) -> dict:
    return {"kind": "whole", "tool": tool, "failed": reason, "stage": stage}


def write_run(
    folder: Path,
    plain: Sequence[str] = tuple(PLAIN),
    triples: Sequence[str] = tuple(TRIPLES),
    tools: Sequence[str] = TOOLS,
    *,
    gaps: Gaps | None = None,
    splits: int = 5,
    seed: int = 0,
) -> Storage:
    """A folder of results of whole tasks, with noisy scores around one level per task and tool."""
    gaps = gaps or {}
    rng = np.random.default_rng(seed)
    storage = Storage(folder)
    with storage.open(PAPER, 0):
        for task, scenario in [
            *((task, "") for task in plain),
            *((task, scenario) for task in triples for scenario in ("single", "multi")),
        ]:
            shift, level = {**PLAIN, **TRIPLES}.get(task, ("none", 0.8))
            described = design(task, scenario, shift=shift, splits=splits)
            storage.add_design(design_key(task, scenario), described)
            for tool in tools:
                centre = level - 0.86 + _LEVELS[TOOLS.index(tool)] + rng.normal(0, 0.03)
                scores = np.clip(centre + rng.normal(0, 0.02, splits), 0, 1).round(3).tolist()
                unit = WholeUnit(task, scenario, tool)
                if gap := gaps.get((unit.design, tool)):
                    storage.save(unit, gap_record(tool, *gap))
                elif (unit.design, tool) not in gaps:
                    storage.save(unit, record(task, tool, scores))
        storage.log("2026", log_line([*plain, *triples], tools))
    return storage


def log_line(tasks: Sequence[str], tools: Sequence[str]) -> dict:
    return {
        "units": 1,
        "jobs": 2,
        "wall_seconds": 5.0,
        "tasks": list(tasks),
        "classifiers": [],
        "tools": list(tools),
        "missing": {},
        "problems": {},
    }
