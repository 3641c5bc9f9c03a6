"""The work of a whole unit: one tool on all classes of a task at once, in a process of its own."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from optirank import __version__
from optirank.benchmark import tools
from optirank.benchmark.running.children import gap, run_child
from optirank.benchmark.running.peers import peer_environment, peer_python, why_no_peer
from optirank.benchmark.running.processes import before_leaving
from optirank.benchmark.sets import Set, stack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.benchmark.classifiers import Classifier
    from optirank.benchmark.designs import Design
    from optirank.benchmark.splits import Split

_VALIDATION = "validation"


def run_whole(
    design: Design,
    tool: Classifier,
    *,
    n_splits: int,
    time_limit: float,
    peers: Mapping[str, str] | None = None,
) -> dict:
    """Train and test a tool on a design in a child process; return the record to be stored.

    Scores are balanced accuracies over the classes that a part has; a sample without a label counts
    as wrong. Times are CPU seconds measured by the child itself. Where the tool has no result, the
    record says why (``failed`` and ``stage``).
    """
    start = time.perf_counter()
    splits = whole_splits(design.splits, n_splits)
    same = {"kind": "whole", "tool": tool.name}
    python, variables = sys.executable, None
    if tool.peer:
        python = peer_python(tool.peer, peers or {})
        variables = peer_environment(python)
        if reason := why_no_peer(tool.peer, python):
            return {**same, **gap(reason, "install")}
    with tempfile.TemporaryDirectory(prefix="optirank-") as name:
        folder = Path(name)
        with before_leaving(lambda: shutil.rmtree(folder, ignore_errors=True)):
            job = write_job(folder, design, splits, tool)
            command = [python, str(Path(tools.__file__).parent / tool.script)]
            result = run_child(command, folder, time_limit, variables)
    if "failed" not in result:
        try:
            record = _record(design, splits, job, result)
            record["seconds"] = round(time.perf_counter() - start, 2)
            return {**same, **record}
        except (KeyError, TypeError, ValueError, IndexError) as error:
            result = gap(f"its result is incomplete: {type(error).__name__}: {error}", "predict")
    return {**same, **gap(result["failed"], result["stage"])}


def whole_splits(splits: list[Split], most: int) -> list[Split]:
    """The splits that whole units use: of several parts, one split per part."""
    parts: dict[int, Split] = {}
    for split in splits:
        parts.setdefault(split.part, split)
    return (list(parts.values()) if len(parts) > 1 else splits)[:most]


def write_job(folder: Path, design: Design, splits: list[Split], tool: Classifier) -> dict:
    """Write the files that a child reads (see `optirank.benchmark.tools.harness`)."""
    files: dict[str, str] = {}

    def add(name: str, part: Set) -> str:
        if name not in files:
            files[name] = f"part-{len(files)}"
            _write_part(folder / f"{files[name]}.npz", part)
        return files[name]

    jobs = []
    for split in splits:
        k = split.index
        train = [design.source.take(split.train)]
        if len(split.auxiliary_train):
            train.append(design.auxiliary.take(split.auxiliary_train))
        validation = design.source.take(split.validation) if len(split.validation) else None
        tests = {
            name: add(f"test {name}", one) if one is not None
            else add(f"test {name} {k}", design.source.take(split.test))
            for name, one in design.tests.items()
            if one is not None or len(split.test)
        }  # fmt: skip
        jobs.append(
            {
                "index": k,
                "seed": (design.seed + zlib.crc32(f"{design.key}/{k}".encode())) % 2**31,
                "train": add(f"train {k}", _joined(train)),
                "validation": None if validation is None else add(f"validation {k}", validation),
                "tests": tests,
            }
        )
    job = {
        "tool": tool.name,
        "genes": [str(gene) for gene in design.genes],
        "classes": [str(one) for one in design.classes],
        "options": {**tool.options(), "optirank": __version__},
        "splits": jobs,
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    return job


def _joined(sets: list[Set]) -> Set:
    """Training samples of one or two sets; where only one holds logarithms, log values of both."""
    if len({one.kind == "log" for one in sets}) > 1:
        sets = [replace(one, raw=one.values, kind="log") for one in sets]
    return stack(sets)


def _write_part(path: Path, part: Set) -> None:
    arrays = {"labels": part.labels.astype(str), "kind": np.array(part.kind)}
    matrices = {"": part.raw} | ({} if part.values is part.raw else {"log_": part.values})
    for prefix, matrix in matrices.items():
        csr = sp.csr_array(matrix)
        for name in ("data", "indices", "indptr"):
            arrays[prefix + name] = getattr(csr, name)
    with path.open("wb") as file:
        np.savez(file, shape=np.array(part.raw.shape), **arrays)


def _record(design: Design, splits: list[Split], job: dict, result: dict) -> dict:
    """The scores and costs of a tool from what its child returned."""
    truths = [_truths(design, split) for split in splits]
    found = result["predictions"]
    scores: dict[str, list] = {}
    unassigned: dict[str, list] = {}
    for labels, predicted in zip(truths, found, strict=True):
        for name, truth in labels.items():
            score, share = score_labels(truth, predicted[name])
            scores.setdefault(name, []).append(score)
            unassigned.setdefault(name, []).append(share)
    tests = {f"test {name}": name for name in design.tests if f"test {name}" in scores}
    return {
        "version": result["version"],
        "classes": job["classes"],
        "splits": [split.index for split in splits],
        "validation": scores.get(_VALIDATION, [None] * len(splits)),
        "test": {name: scores[key] for key, name in tests.items()},
        "unassigned": {name: unassigned[key] for key, name in tests.items()},
        "n_genes": result["n_genes"],
        "fit_seconds": result["fit_seconds"],
        "predict_seconds": {
            name: [times[key] for times in result["predict_seconds"]] for key, name in tests.items()
        },
        "n_test": {name: len(truths[0][key]) for key, name in tests.items()},
        "n_train": [len(split.train) + len(split.auxiliary_train) for split in splits],
        "n_features": len(design.genes),
        "peak_bytes": result["peak_bytes"],
        "start_bytes": result["start_bytes"],
    }


def _truths(design: Design, split: Split) -> dict[str, NDArray]:
    """The labels of the parts of a split, by their names in the child's result."""
    found = {
        f"test {name}": design.source.labels[split.test] if one is None else one.labels
        for name, one in design.tests.items()
        if one is not None or len(split.test)
    }
    if len(split.validation):
        found[_VALIDATION] = design.source.labels[split.validation]
    return found


def score_labels(truth: NDArray, predicted: list[str | None]) -> tuple[float, float]:
    """Balanced accuracy over the classes of ``truth``, and the share of samples without a label."""
    given = np.array(["" if one is None else one for one in predicted], dtype=object)
    if len(given) != len(truth):
        raise ValueError(f"{len(given)} labels for {len(truth)} samples")
    right = given == truth
    recalls = [right[truth == one].mean() for one in np.unique(truth)]
    return float(np.mean(recalls)), float(np.mean(given == ""))
