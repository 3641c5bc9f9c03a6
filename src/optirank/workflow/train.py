"""Train a model on labelled profiles: choose settings by cross-validation, calibrate, refit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.cluster import Cluster
from optirank._util.workers import worker_count
from optirank.datasets.errors import DataError
from optirank.preprocessing._statistics import is_counts
from optirank.solver.device.backend import check_device
from optirank.workflow.concluding import conclude
from optirank.workflow.device_clock import time_on_device
from optirank.workflow.finishing import (
    elsewhere_scores,
    final_fit,
    held_out_scores,
    search_notes,
)
from optirank.workflow.folding import N_FOLDS
from optirank.workflow.grids import METHODS, PREFERENCES, UNTUNED, Grid, make_families, make_grids
from optirank.workflow.large import PENALTIES, LargeTraining
from optirank.workflow.planning import (
    BUDGET,
    Clock,
    Plan,
    compiling_note,
    fit_into,
    time_one_fit,
)
from optirank.workflow.preparation import Prepared, prepare
from optirank.workflow.result import TrainingResult
from optirank.workflow.searching import choose, choose_panel, cross_validate
from optirank.workflow.sorting import SortedSamples
from optirank.workflow.voting import METHOD as PAIRS
from optirank.workflow.voting import train_pairs

if TYPE_CHECKING:
    from distributed import Client

    from optirank.datasets.profiles import Profiles

_MARGIN = 0.85  # of the time allowed that is planned for
_READING = 0.3  # of the time allowed that reading may take
_TARGET_SUM = 1e4  # to which counts are scaled before logarithms, for weights on values
_NO_REFERENCE = {
    "lr": "uses values and has no reference set",
    "rank-lr": "takes ranks among all genes",
    PAIRS: "compares the genes of pairs with each other",
}
_TAIL = 0.04  # of the time allowed for what follows the final fit, such as calibration
_MANY = 3000  # samples from which on one set for all classes comes before a shortened grid
_FEWEST = 200  # samples below which none are left out to save time


def train(
    data: Profiles,
    label: str,
    *,
    batch: str | None = None,
    genes: Sequence[str] | None = None,
    available: Sequence[str] | None = None,
    max_genes: int | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    reference_from: Sequence[str] = (),
    not_in_reference: Sequence[str] = (),
    budget: float | None = None,
    n_jobs: int | None = None,
    device: str = "cpu",
    client: Client | None = None,
    calibrate: bool = True,
    target_error: float | None = None,
    method: str = "auto",
    prefer: str = "accuracy",
    grids: Sequence[Grid] | None = None,
    n_folds: int = N_FOLDS,
    say: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TrainingResult:
    """Train a classifier on labelled expression profiles.

    Samples without a label, samples without counts and classes of fewer than three samples are
    left out; ``notes`` of the result say so. Above 1000 genes, 1000 to 2000 are selected first by
    their correlation with the labels, anew in every fold. Models are trained on copies of the
    samples on simulated platforms too. Settings are compared by their balanced accuracy on held-out
    samples, as they are and on other simulated platforms; the default is an average of models that
    carried over best between real platforms, and is left only for something clearly better.

    Parameters
    ----------
    data : the profiles, see :func:`optirank.datasets.read_expression`, or an opened file, of which
        only what is used is read (:func:`optirank.datasets.open_expression`).
    label : the column of ``data.obs`` with the classes.
    batch : a column with the source of each sample (data set, donor, platform): folds then leave
        whole sources out, and the figures say what to expect of a new one.
    genes : the genes to use; others are ignored.
    available : the genes of the data to be labelled later; others are not used. They are found by
        name as in prediction, whatever their case and version.
    max_genes : the most genes the model may need.
    include : genes of a fixed reference set (names or patterns such as ``RPL*``), such as
        housekeeping genes; nothing is then learned about the reference, only the weights are, and
        the model is an AnovaRankLogisticRegression with this ``reference``.
    exclude : genes (or patterns such as ``MT-*``) that the model may not use at all, neither as
        reference nor with a weight.
    reference_from, not_in_reference : genes (or patterns such as ``RPL*``) that the reference set
        is chosen from, and genes that may not be in it; every gene may have weights.
    budget : seconds that the training may take, ten minutes by default. One small fit is timed and
        the grid of settings shortened to fit, down to the one that carries over best on its own;
        if that is not enough, so are the samples.
    n_jobs : threads; -1 for all processors.
    device : "cpu", or "cuda" to fit on an NVIDIA GPU (``pip install 'optirank[gpu]'``).
    client : a client of a dask cluster (``distributed.Client``) whose workers fit the settings in
        all folds. Reading and the final fit are done here, and so is a training that learns one
        reference set on some of the samples for lack of time.
    calibrate : whether to fit probabilities on the held-out scores.
    target_error : the share of wrong labels to allow: the model then carries the confidence below
        which a label is withheld (``rejection_``).
    method : "optirank", "rank-lr" (ranks among all genes, which all have to be measured), "auto" to
        compare both by the same rule, "lr": logistic regression on log values, or "k-tsp": a vote
        of pairs of genes. For "lr", counts are scaled to 10,000 per sample first; other values are
        used as they are.
    prefer : "accuracy", or "genes": small models, which have one panel for all classes and use all
        of it; of these the fewest genes within two points of the best.
    grids : the settings to try, from the widest grid to the narrowest; each holds the next. Those
        of ``method`` where not given.
    n_folds : of the cross-validation, at most; sources are shared out over so many.
    say : is told in words what will be done, before it is.
    progress : is told how much is done, and of how much.

    Raises
    ------
    DataError
        Where the data cannot be trained on, before any work.
    DeviceError
        Where there is no GPU that can be used, before any work.
    """
    check_device(device)
    check_choice("method", method, (*METHODS, PAIRS))
    check_reference(method, bool(include or reference_from or not_in_reference))
    prepared = prepare(
        data,
        label,
        batch=batch,
        genes=genes,
        available=available,
        max_genes=max_genes,
        include=include,
        exclude=exclude,
        reference_from=reference_from,
        not_in_reference=not_in_reference,
        n_folds=n_folds,
        seconds=reading_seconds(budget),
    )
    return train_prepared(
        prepared,
        budget=budget,
        n_jobs=n_jobs,
        device=device,
        client=client,
        calibrate=calibrate,
        target_error=target_error,
        method=method,
        prefer=prefer,
        grids=grids,
        say=say,
        progress=progress,
    )


def train_prepared(
    prepared: Prepared,
    *,
    budget: float | None = None,
    n_jobs: int | None = None,
    device: str = "cpu",
    client: Client | None = None,
    calibrate: bool = True,
    target_error: float | None = None,
    method: str = "auto",
    prefer: str = "accuracy",
    grids: Sequence[Grid] | None = None,
    panel_size: int | None = None,
    say: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TrainingResult:
    """Train on data that `prepare` has made ready; see `train`.

    With ``panel_size`` the best setting of at most so many genes is chosen, and its penalty raised
    where the final model would need more.
    """
    budget = BUDGET if budget is None else check_budget(budget)
    check_target_error(target_error)
    check_choice("method", method, (*METHODS, PAIRS))
    check_choice("prefer", prefer, PREFERENCES)
    check_device(device)
    check_reference(method, prepared.reference is not None or prepared.candidates is not None)
    if device != "cpu" and prepared.reference is not None:
        raise DataError(
            f"a fixed reference set (include) is fitted on the CPU alone: leave device={device!r} "
            "out"
        )
    if device != "cpu" and method in ("lr", PAIRS):
        raise DataError(
            f"method={method!r} is fitted on the CPU alone: leave device={device!r} out"
        )
    if client is not None and device != "cpu":
        raise DataError(f"a dask cluster fits on CPUs: leave device={device!r} out, or client")
    begin = time.perf_counter() - prepared.seconds
    if method == PAIRS:
        if client is not None:
            raise DataError("method='k-tsp' is fitted in this process alone: leave client out")
        tail = {"calibrate": calibrate, "target_error": target_error, "seconds": _TAIL * budget}
        return train_pairs(prepared, begin, budget, prefer, say=say, progress=progress, **tail)
    if grids is None:
        grids = make_grids(method, len(prepared.classes), prefer)
    if prepared.reference is not None:
        grids = [replace(grid, average=None) for grid in grids]
    chooser = prepared.chooser
    values = grids[0].values
    target_sum = _TARGET_SUM if values and is_counts(prepared.X) else None
    samples = SortedSamples(
        prepared.X,
        worker_count(n_jobs),
        device=device,
        values=values,
        target_sum=target_sum,
    )
    if say is not None and (note := compiling_note(budget)) is not None:
        say(note)
    time_fits = time_one_fit if device == "cpu" else time_on_device
    clock = time_fits(prepared, chooser, samples, prepared.folds[0], grids)
    cluster = None if client is None else Cluster(client)
    if cluster is not None:
        clock.n_final, clock.n_jobs = clock.n_jobs, cluster.n_threads
    room = _MARGIN * (budget - (time.perf_counter() - begin))
    size = fit_into(clock, samples, len(prepared.folds), room)
    # on many samples one set for all classes is as accurate as one per class, and much faster
    narrow = size is None or (size[0] > 0 and len(prepared.y) > _MANY)
    may_be_large = len(prepared.y) > _FEWEST and not values
    may_be_large &= prepared.reference is None and panel_size is None and device == "cpu"
    large = narrow and may_be_large
    size = None if large else size
    if size is None and not large:
        prepared, samples = _thinned(prepared, clock, samples, room)
        chooser, size = prepared.chooser, (len(grids) - 1, len(prepared.folds))
    level, n_folds = (len(grids) - 1, 1) if size is None else size
    notes = list(prepared.notes)
    end = begin + (1 - _TAIL) * budget  # of the final fit
    plan = _plan(prepared, n_folds, clock, level, begin, budget, large, device, cluster)
    for line in (*notes, *plan.lines()) if say else ():
        say(line)
    planned = time.perf_counter()
    rule = {"real": prepared.groups is not None, "prefer": prefer}
    if not large:
        found = cross_validate(
            prepared, chooser, samples, n_folds, clock, level, end, progress, cluster, may_be_large
        )
        if not found.results:
            large, plan = True, replace(plan, n_folds=1)
            notes.append(
                "fits took longer than planned: one reference set for all classes was learned "
                "instead of one per class"
            )
    if large:
        first = UNTUNED if grids[-1].whole_panel else grids[-1].settings[0]
        threads = samples.n_jobs
        del samples  # and what it has sorted
        stages = LargeTraining(prepared, first, threads, end)
        found = stages.search(progress)
        choice = choose(found, prepared.y, **rule)
        stages.refit(found, choice)
        searched = time.perf_counter()
        model, genes, fit_notes = stages.finish(choice)
    else:
        if panel_size is None:
            choice = choose(found, prepared.y, **rule)
        else:
            choice = choose_panel(found, prepared.y, panel_size)
        searched = time.perf_counter()
        model, genes, fit_notes = final_fit(prepared, chooser, choice, samples, panel_size)
    fitted = time.perf_counter()
    scored = held_out_scores(prepared, found, choice)
    elsewhere = elsewhere_scores(prepared, found, choice)
    return conclude(
        prepared,
        model,
        plan=plan,
        choice=choice,
        scored=scored,
        elsewhere=elsewhere,
        fold=found.folds[0],
        genes=genes,
        notes=(notes, [*search_notes(plan, found), *fit_notes]),
        calibrate=calibrate,
        target_error=target_error,
        seconds=_TAIL * budget,
        times=(begin, planned, searched, fitted),
    )


def check_budget(budget: float) -> float:
    """A number of seconds, or a DataError."""
    if not math.isfinite(budget) or budget <= 0:
        raise DataError(f"budget={budget!r}: give a time above 0, in seconds")
    return float(budget)


def reading_seconds(budget: float | None) -> float:
    """The time that reading may take."""
    return _READING * (BUDGET if budget is None else check_budget(budget))


def check_target_error(target_error: float | None) -> None:
    """A share, or a DataError."""
    if target_error is not None and not 0 < target_error < 1:
        raise DataError(f"target error {target_error!r}: use a share between 0 and 1, as 0.05")


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """One of some words, or a DataError."""
    if value not in allowed:
        raise DataError(f"{name}={value!r} is not known: use one of {', '.join(allowed)}")


def check_reference(method: str, given: bool) -> None:
    """Refuse a reference set that the user has a say in where the method has none."""
    if given and method in _NO_REFERENCE:
        raise DataError(
            f"method={method!r} {_NO_REFERENCE[method]}, so include, reference_from and "
            "not_in_reference (--include, --reference-from, --not-in-reference) mean nothing: "
            "leave them out, or use method='optirank'"
        )


def _thinned(
    prepared: Prepared, clock: Clock, samples: SortedSamples, room: float
) -> tuple[Prepared, SortedSamples]:
    """As many samples as the narrowest grid has time for, but not fewer than a few hundred."""
    shortest = clock.seconds(clock.grids[-1], 1)
    n = max(_FEWEST, int(len(prepared.y) * room / shortest))
    if n >= len(prepared.y):
        return prepared, samples
    prepared = prepared.thinned(n, "the time allowed is short")
    return prepared, replace(samples, X=prepared.X)


def _plan(
    prepared: Prepared,
    n_folds: int,
    clock: Clock,
    level: int,
    begin: float,
    budget: float,
    large: bool,
    device: str,
    cluster: Cluster | None,
) -> Plan:
    grid = clock.grids[level]
    spent = time.perf_counter() - begin
    if not large:  # further folds are added where time is left
        left = (1 - _TAIL) * budget - spent
        more = range(n_folds + 1, len(prepared.folds) + 1)
        planned = max((k for k in more if clock.seconds(grid, k) <= left), default=n_folds)
    return Plan(
        n_samples=len(prepared.y),
        n_genes=prepared.n_genes,
        n_candidates=prepared.chooser.limit,
        n_classes=len(prepared.classes),
        n_folds=n_folds,
        sources=None if prepared.groups is None else len(np.unique(prepared.groups)),
        n_settings=len(PENALTIES) if large else _n_settings(grid, prepared),
        n_widest=len(PENALTIES) if large else _n_settings(clock.grids[0], prepared),
        n_platforms=clock.n_platforms,
        level=0 if large else level,
        seconds=budget if large else spent + clock.seconds(grid, planned),
        large=large,
        budget=budget,
        n_jobs=clock.n_final or clock.n_jobs if large else clock.n_jobs,
        device=device,
        cluster=cluster is not None and not large,
    )


def _n_settings(grid: Grid, prepared: Prepared) -> int:
    return sum(len(one.settings()) for one in make_families(grid, prepared.reference))
