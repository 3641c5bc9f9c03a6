"""From stored whole units to results: one row per task, tool and split, and the named gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from optirank.benchmark.designs import design_key
from optirank.benchmark.running.storage import Storage

SCORE_COLUMNS = [
    *("task", "scenario", "tool", "version", "split", "test", "validation", "unassigned"),
    *("n_genes", "n_features", "n_train", "n_test", "fit_seconds", "predict_seconds"),
    *("peak_bytes", "start_bytes"),
]
GAP_COLUMNS = ["task", "scenario", "tool", "stage", "reason"]
NOT_RUN = "not run"


@dataclass(frozen=True)
class WholeResults:
    """What the report of whole tasks is made from.

    Attributes
    ----------
    scores : DataFrame
        One row for each task, scenario, tool and split. Numbers of bytes are those of the process,
        which runs all splits of a task.
    gaps : DataFrame
        One row for each task, scenario and tool without a result, with the reason.
    """

    scores: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=SCORE_COLUMNS))
    gaps: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=GAP_COLUMNS))

    def __bool__(self) -> bool:
        return not (self.scores.empty and self.gaps.empty)

    def places(self) -> set[tuple[str, str]]:
        """Return every (task, scenario) with a score or a gap."""
        both = pd.concat([self.scores[["task", "scenario"]], self.gaps[["task", "scenario"]]])
        return set(both.itertuples(index=False, name=None))


def collect_whole(storage: Storage, designs: Sequence[dict], lines: Sequence[dict]) -> WholeResults:
    """Read the whole units of a folder; `lines` of its log say which tools were asked for."""
    rows, gaps = [], []
    for design in designs:
        records = storage.whole(design_key(design["task"], design["scenario"]))
        for tool, record in records.items():
            if "failed" in record:
                gaps += _gaps(design, tool, record["stage"], record["failed"])
            else:
                rows += _rows(design, tool, record)
        asked = [
            tool
            for line in lines
            if set(design["tests"]) & set(line["tasks"])
            for tool in line.get("tools", ())
        ]
        for tool in dict.fromkeys(asked):
            if tool not in records:
                gaps += _gaps(design, tool, NOT_RUN, "not run yet; the same command continues")
    return WholeResults(
        pd.DataFrame(rows, columns=SCORE_COLUMNS), pd.DataFrame(gaps, columns=GAP_COLUMNS)
    )


def _gaps(design: dict, tool: str, stage: str, reason: str) -> list[dict]:
    same = {"scenario": design["scenario"], "tool": tool, "stage": stage, "reason": reason}
    return [{"task": task, **same} for task in design["tests"]]


def _rows(design: dict, tool: str, record: dict) -> list[dict]:
    """One row per test set and split; a value that the record lacks is missing."""
    rows = []
    for task, scores in record["test"].items():
        of_test = {
            "unassigned": record["unassigned"].get(task, []),
            "predict_seconds": record["predict_seconds"].get(task, []),
        }
        of_split = {name: record[name] for name in ("validation", "n_genes", "fit_seconds")}
        for k, score in enumerate(scores):
            rows.append(
                {
                    "task": task,
                    "scenario": design["scenario"],
                    "tool": tool,
                    "version": record["version"],
                    "split": record["splits"][k],
                    "test": _number(score),
                    "n_train": _at(record["n_train"], k),
                    **{name: _at(values, k) for name, values in (of_test | of_split).items()},
                    "n_test": _number(record["n_test"].get(task)),
                    **{
                        name: _number(record[name])
                        for name in ("n_features", "peak_bytes", "start_bytes")
                    },
                }
            )
    return rows


def _at(values: Sequence[float | None], k: int) -> float:
    return _number(values[k]) if k < len(values) else np.nan


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)
