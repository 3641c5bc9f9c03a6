"""From stored units to results: the setting of every problem chosen, its test scores kept."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from optirank.benchmark.classifiers import CLASSIFIERS
from optirank.benchmark.storage import Storage, Unit
from optirank.tuning.selection import scored_folds, select

PARAMETERS = ("n_reference", "l1", "l2")
SCORE_COLUMNS = [
    *("task", "scenario", "positive", "classifier", "part", "split", "validation", "test"),
    *("n_genes", "n_features", *PARAMETERS, "fit_seconds", "unit_seconds", "n_settings"),
]
TASK_COLUMNS = [
    *("task", "scenario", "title", "shift", "kind", "sources", "target", "n_genes", "n_classes"),
    *("classes", "n_train", "n_validation", "n_test", "n_splits", "note"),
]


@dataclass
class Results:
    """What a report is made from.

    Attributes
    ----------
    scores : DataFrame
        One row for each task, scenario, positive class, classifier, part and split, at the setting
        chosen from the validation scores of the part's splits.
    tasks : DataFrame
        One row for each task and scenario.
    problems : dict
        Tasks that could not run, or not to the end, and why.
    run : dict
        How it was run.
    """

    scores: pd.DataFrame
    tasks: pd.DataFrame
    problems: dict[str, str] = field(default_factory=dict)
    run: dict = field(default_factory=dict)


def collect(storage: Storage, rule: str = "one_se") -> Results:
    """Read all results of a folder; a problem with a split missing is left out, and said.

    ``rule`` chooses the settings: "one_se", the paper's, or "best" validation score.
    """
    record, lines = storage.record(), storage.log_lines()
    rows, tasks, incomplete, seconds, unconverged = [], [], {}, 0.0, 0
    for design in storage.designs().values():
        units = load_units(storage, design)
        seconds += sum(unit["unit_seconds"] for unit in units.values())
        unconverged += sum(unit["converged"].count(False) for unit in units.values())
        chosen, lacking = _choose(design, units, _planned(design, units, lines), rule)
        rows += chosen
        if lacking:
            incomplete[design["task"]] = f"not run to the end: {lacking} units are missing"
        there = {row["task"] for row in chosen}
        tasks += [row for row in _task_rows(design) if row["task"] in there]
    last = lines[-1] if lines else {}
    scores = pd.DataFrame(rows, columns=SCORE_COLUMNS)
    run = {
        "profile": record["profile"],
        "selection": rule,
        "version": record["version"],
        "seed": record["seed"],
        "classifiers": [name for name in CLASSIFIERS if name in set(scores["classifier"])],
        "jobs": last.get("jobs"),
        "cpu_seconds": seconds,
        "unconverged": unconverged,
        "wall_seconds": sum(line["wall_seconds"] for line in lines),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "missing": list(last.get("missing", {})),
    }
    problems = {**incomplete, **last.get("problems", {})}
    return Results(scores, pd.DataFrame(tasks, columns=TASK_COLUMNS), problems, run)


def load_units(storage: Storage, design: dict) -> dict[tuple[int, str, str], dict]:
    """Results by split, positive class and classifier."""
    found = {}
    for split in range(len(design["parts"])):
        for number, positive in enumerate(design["positives"]):
            for name in CLASSIFIERS:
                unit = Unit(design["task"], design["scenario"], split, number, positive, name)
                result = storage.load(unit)
                if result is not None:
                    found[split, positive, name] = result
    return found


def _planned(design: dict, units: dict, lines: list[dict]) -> list[str]:
    """The classifiers a design was to be run with, by the log and by what is there."""
    planned = {key[2] for key in units}
    for line in lines:
        if set(design["tests"]) & set(line["tasks"]):
            planned |= set(line["classifiers"])
    if not design["scenario"]:
        planned.discard("ANrank-lr")
    return [name for name in CLASSIFIERS if name in planned]


def _choose(
    design: dict, units: dict[tuple[int, str, str], dict], names: list[str], rule: str
) -> tuple[list[dict], int]:
    """The rows of a design, and the number of units that its classifiers lack."""
    rows, lacking = [], 0
    parts = np.array(design["parts"])
    for name in names:
        for positive in design["positives"]:
            for part in np.unique(parts):
                splits = np.flatnonzero(parts == part).tolist()
                group = [units.get((split, positive, name)) for split in splits]
                if None in group:
                    lacking += group.count(None)
                    continue
                validation = np.array([unit["validation"] for unit in group]).T
                n_genes = np.array([unit["n_genes"] for unit in group]).T
                folds = scored_folds(validation)  # one may have no validation samples of a class
                if not folds.any():
                    continue
                best = select(validation[:, folds], n_genes[:, folds], rule)
                same = {"positive": positive, "classifier": name, "part": int(part)}
                for split, unit in zip(splits, group, strict=True):
                    rows += _rows(design, unit, best, same | {"split": split})
    return rows, lacking


def _rows(design: dict, unit: dict, best: int, same: dict) -> list[dict]:
    """One row a test set."""
    setting = unit["settings"][best]
    return [
        {
            "task": task,
            "scenario": design["scenario"],
            **same,
            "validation": unit["validation"][best],
            "test": unit["test"][best][k],
            "n_genes": unit["n_genes"][best],
            "n_features": unit["n_features"],
            **{name: setting.get(name, np.nan) for name in PARAMETERS},
            "fit_seconds": unit["fit_seconds"][best],
            "unit_seconds": unit["unit_seconds"],
            "n_settings": len(unit["settings"]),
        }
        for k, task in enumerate(design["tests"])
    ]


def _task_rows(design: dict) -> list[dict]:
    rows = []
    for k, name in enumerate(design["tests"]):
        rows.append(
            {
                "task": name,
                "scenario": design["scenario"],
                "title": design["titles"][k],
                "shift": design["shifts"][k],
                "kind": design["kind"],
                "sources": design["sources"],
                "target": design["targets"][k],
                "n_genes": design["n_genes"],
                "n_classes": len(design["classes"]),
                "classes": ", ".join(design["classes"]),
                "n_train": float(np.mean(design["n_train"])),
                "n_validation": float(np.mean(design["n_validation"])),
                "n_test": float(np.mean(design["n_test"][k])),
                "n_splits": len(design["parts"]),
                "note": "; ".join(design["notes"]),
            }
        )
    return rows
