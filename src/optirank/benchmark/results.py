"""From stored units to results: the setting of every problem chosen, its test scores kept."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from optirank.benchmark.classifiers import CLASSIFIERS, ordered
from optirank.benchmark.designs import ALL
from optirank.benchmark.storage import Storage
from optirank.tuning.selection import RULES, scored_folds, select

SCORES = [
    *("group", "task", "scenario", "title", "shift", "kind", "tissue", "problem", "classifier"),
    *("part", "split", "test", "validation", "n_genes", "n_features", "n_train", "n_test"),
    *("unlabelled", "cosine", "setting", "n_settings", "fit_seconds", "predict_seconds"),
    *("unit_seconds", "version"),
]
_GROUPS = {"": "", "single": ", one of two sources", "multi": ", two sources joined"}


@dataclass
class Results:
    """What a report is made from.

    Attributes
    ----------
    scores : DataFrame
        The one record of all experiments: a row for each task, scenario, problem, classifier, part
        and split, at the setting chosen from the validation scores of the part's splits. ``group``
        says what is compared: each class against the rest, all classes at once, synthetic data.
    tasks : DataFrame
        One row for each task and scenario.
    gaps : DataFrame
        Classifiers without a result on a task, with the reason.
    run : dict
        How it was run.
    """

    scores: pd.DataFrame
    tasks: pd.DataFrame
    gaps: pd.DataFrame
    run: dict = field(default_factory=dict)


def collect(storage: Storage, rule: str = "one_se") -> Results:
    """Read all results of a folder; a problem with a split missing is left out, and reported.

    The rule chooses the settings: "one_se" is the paper's, "best" takes the best validation score.
    """
    if rule not in RULES:
        raise ValueError(f"no rule is called {rule!r}: use {', '.join(RULES)}")
    record, lines = storage.record(), storage.log_lines()
    synthetic = record["experiment"] == "synthetic"
    rows, tasks, gaps, seconds = [], [], [], 0.0
    for key, design in storage.designs().items():
        units = storage.units(key)
        gaps += [
            {"task": key, "classifier": unit["classifier"], "reason": unit["failed"]}
            for unit in units
            if "failed" in unit
        ]
        seconds += sum(unit.get("unit_seconds", 0.0) for unit in units)
        groups = defaultdict(list)
        for unit in units:
            whole = unit["problem"] == ALL
            part = design["parts"][unit["split"]]
            # Whole tasks are not tuned: each split stands for itself.
            groups[unit["problem"], unit["classifier"], unit["split"] if whole else part].append(
                unit
            )
        splits = defaultdict(set)  # that any classifier has been run on
        for (problem, _, part), group in groups.items():
            splits[problem, part] |= {unit["split"] for unit in group}
        for (problem, name, part), group in groups.items():
            if lacking := len(splits[problem, part]) - len(group):
                reason = f"not run to the end: {problem} lacks {lacking} splits"
                gaps.append({"task": key, "classifier": name, "reason": reason})
                continue
            rows += _rows(design, group, "best" if synthetic else rule, synthetic=synthetic)
        tasks += [
            {
                "task": name,
                "scenario": design["scenario"],
                **about,
                "genes": design["n_genes"],
                "classes": ", ".join(design["classes"]),
                "notes": "; ".join(design["notes"]),
            }
            for name, about in design["tests"].items()
        ]
    last = lines[-1] if lines else {}
    gaps += [
        {"task": name, "classifier": "all", "reason": reason}
        for name, reason in last.get("problems", {}).items()
    ]
    scores = pd.DataFrame(rows, columns=SCORES)
    run = {
        "experiment": record["experiment"],
        "profile": record["profile"],
        "settings chosen by": rule,
        "seed": record["seed"],
        "classifiers": {name: CLASSIFIERS[name].words for name in ordered(scores["classifier"])
                        if name in CLASSIFIERS},
        "cpu_seconds": seconds,
        "wall_seconds": sum(line["wall_seconds"] for line in lines),
        "python": last.get("python"),
        "platform": last.get("platform"),
        "version": record["version"],
        "missing": list(last.get("missing", {})),
    }  # fmt: skip
    frame = pd.DataFrame(gaps, columns=["task", "classifier", "reason"]).drop_duplicates()
    return Results(scores, pd.DataFrame(tasks), frame, run)


def _rows(design: dict, group: list[dict], rule: str, *, synthetic: bool) -> list[dict]:
    """The rows of one problem, classifier and part, one per split and test set."""
    if any("failed" in unit for unit in group):
        return []
    first = group[0]
    whole = first["problem"] == ALL
    folds = [unit for unit in group if np.isfinite(unit["validation"]).any()]
    best = 0
    if len(first["settings"]) > 1:
        best = choose(folds, rule, by_order=synthetic) if folds else None
        if best is None:
            return []
    finals = [unit for unit in group if unit["test"]]
    same = {
        "group": _group(design["scenario"], whole=whole, synthetic=synthetic),
        "scenario": design["scenario"],
        "problem": first["problem"],
        "classifier": first["classifier"],
        "n_settings": len(first["settings"]),
        "validation": float(np.mean([unit["validation"][best] for unit in folds] or [np.nan])),
    }
    return [
        {
            **same,
            **{key: design["tests"][task][key] for key in ("title", "shift", "kind", "tissue")},
            "task": task,
            "part": design["parts"][unit["split"]],
            "split": unit["split"],
            "test": scores[best],
            "n_test": unit["n_test"][task],
            "cosine": unit.get("cosine", {best: None})[best],
            "setting": json.dumps(unit["settings"][best]),
            **{key: unit[key][best] for key in ("n_genes", "unlabelled", "fit_seconds",
                                                "predict_seconds")},
            **{key: unit[key] for key in ("n_features", "n_train", "unit_seconds", "version")},
        }
        for unit in finals
        for task, scores in unit["test"].items()
    ]  # fmt: skip


def _group(scenario: str, *, whole: bool, synthetic: bool) -> str:
    if synthetic:
        return "Synthetic data"
    return ("All classes at once" if whole else "Each class against the rest") + _GROUPS[scenario]


def choose(units: list[dict], rule: str, *, by_order: bool = False) -> int | None:
    """Position of the setting that a rule chooses from the units of the splits of one part.

    With ``by_order`` the order of the settings stands for their numbers of genes. None where no
    split has a score to choose by: a validation part may lack a class.
    """
    scores = np.array([unit["validation"] for unit in units], dtype=float).T
    costs = np.array([unit["n_genes"] for unit in units], dtype=float).T
    if by_order:
        costs = np.repeat(np.arange(len(costs), dtype=float)[:, None], len(units), axis=1)
    folds = scored_folds(scores)
    return select(scores[:, folds], costs[:, folds], rule) if folds.any() else None
