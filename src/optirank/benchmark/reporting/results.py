"""From stored units to results: the setting of every problem chosen, its test scores kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from optirank.benchmark.classifiers import CLASSIFIERS, get, ordered, tuned_parameters
from optirank.benchmark.reporting.whole_results import WholeResults, collect_whole
from optirank.benchmark.running.storage import Storage, Unit
from optirank.tuning.selection import (
    RULES,
    TRANSFER,
    scored_folds,
    select,
    select_for_transfer,
    untuned,
)

TASK_COLUMNS = [
    *("task", "scenario", "title", "shift", "kind", "sources", "target", "n_genes", "n_classes"),
    *("classes", "n_train", "n_validation", "n_test", "n_splits", "note"),
]


def score_columns() -> list[str]:
    """The columns of the table of scores; the tuned parameters are among them."""
    return [
        *("task", "scenario", "positive", "classifier", "part", "split", "validation", "test"),
        *("n_genes", "n_features", *tuned_parameters()),
        *("fit_seconds", "unit_seconds", "n_settings"),
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
    whole : WholeResults
        The results of tools on whole tasks, if there are any.
    """

    scores: pd.DataFrame
    tasks: pd.DataFrame
    problems: dict[str, str] = field(default_factory=dict)
    run: dict = field(default_factory=dict)
    whole: WholeResults = field(default_factory=WholeResults)


def collect(storage: Storage, rules: Sequence[str] = ("one_se",)) -> Results:
    """Read all results of a folder; a problem with a split missing is left out, and reported.

    Rules choose the settings: "one_se" is the paper's, "best" takes the best validation score,
    "transfer" also counts the validation scores on simulated platforms. A classifier whose settings
    are chosen by a rule after the first has the name "NAME (RULE)".
    """
    known = (*RULES, TRANSFER)
    if unknown := [rule for rule in rules if rule not in known]:
        raise ValueError(f"no rule is called {unknown[0]!r}: use {', '.join(known)}")
    record, lines = storage.record(), storage.log_lines()
    rows, tasks, incomplete, seconds, unconverged = [], [], {}, 0.0, 0
    designs = list(storage.designs().values())
    whole = collect_whole(storage, designs, lines)
    for design in designs:
        units = load_units(storage, design)
        seconds += sum(unit["unit_seconds"] for unit in units.values())
        unconverged += sum(unit["converged"].count(False) for unit in units.values())
        chosen, lacking = _choose(design, units, _planned(design, units, lines), rules)
        rows += chosen
        if lacking:
            incomplete[design["task"]] = f"not run to the end: {lacking} units are missing"
        there = {(row["task"], row["scenario"]) for row in chosen} | whole.places()
        tasks += [row for row in _task_rows(design) if (row["task"], row["scenario"]) in there]
    last = lines[-1] if lines else {}
    scores = pd.DataFrame(rows, columns=score_columns())
    run = {
        "profile": record["profile"],
        "selection": list(rules),
        "version": record["version"],
        "seed": record["seed"],
        "classifiers": ordered(scores["classifier"]),
        "tools": ordered(whole.scores["tool"]),
        "jobs": last.get("jobs"),
        "cpu_seconds": seconds,
        "unconverged": unconverged,
        "wall_seconds": sum(line["wall_seconds"] for line in lines),
        "python": last.get("python"),
        "platform": last.get("platform"),
        "missing": list(last.get("missing", {})),
    }
    problems = {**incomplete, **last.get("problems", {})}
    return Results(scores, pd.DataFrame(tasks, columns=TASK_COLUMNS), problems, run, whole)


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
    alone = not design["scenario"]  # no second data set
    return [name for name in ordered(planned) if not (alone and get(name).needs == "auxiliary")]


def _choose(
    design: dict, units: dict[tuple[int, str, str], dict], names: list[str], rules: Sequence[str]
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
                tuned = len(group[0]["settings"]) > 1
                for k, rule in enumerate(rules if tuned else rules[:1]):
                    best = choose(group, rule)
                    if best is None:
                        continue
                    label = f"{name} ({rule})" if k else name
                    same = {"positive": positive, "classifier": label, "part": int(part)}
                    for split, unit in zip(splits, group, strict=True):
                        rows += _rows(design, unit, best, same | {"split": split})
    return rows, lacking


def choose(group: list[dict], rule: str, cost: NDArray | None = None) -> int | None:
    """Position of the setting that a rule chooses from the units of the splits of one part.

    ``cost`` stands for the numbers of genes, one value per setting; an infinite one rules a setting
    out. None where no split has a score to choose by: a validation part may lack a class.
    """
    scores = np.array([unit["validation"] for unit in group]).T
    costs = np.array([unit["n_genes"] for unit in group], dtype=float).T
    if cost is not None:
        costs = np.repeat(np.asarray(cost, dtype=float)[:, None], len(group), axis=1)
        scores = np.where(np.isfinite(costs), scores, np.nan)
    folds = scored_folds(scores)
    if not folds.any():
        return None
    if rule == TRANSFER:
        default = untuned(group[0]["settings"])
        return select_for_transfer(scores, _shifted_scores(group), costs, default=default)
    return select(scores[:, folds], costs[:, folds], rule)


def _shifted_scores(group: list[dict]) -> NDArray:
    """Validation scores on simulated platforms, settings x splits x platforms."""
    if any(not unit.get("platforms") for unit in group):
        raise ValueError(
            "the run has no scores on simulated platforms, which the rule 'transfer' needs: run "
            "the benchmark with this version into a new folder, or choose another rule"
        )
    return np.moveaxis(np.array([unit["platforms"] for unit in group], dtype=float), 2, 0)


def _rows(design: dict, unit: dict, best: int, same: dict) -> list[dict]:
    """One row per test set."""
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
            **{name: setting.get(name, np.nan) for name in tuned_parameters()},
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
