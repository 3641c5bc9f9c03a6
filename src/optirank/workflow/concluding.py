"""The end of every training: held-out figures, calibration, warnings, and the result."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optirank.workflow.finishing import (
    HeldOut,
    calibrate_model,
    elsewhere_table,
    held_out_table,
    remember_held_out,
    summary,
)
from optirank.workflow.result import TrainingResult, class_table, fold_table, held_out_error
from optirank.workflow.weakness import weaknesses

if TYPE_CHECKING:
    from optirank.tuning.folds import Fold
    from optirank.workflow.planning import Plan
    from optirank.workflow.preparation import Prepared
    from optirank.workflow.searching import Choice


def conclude(
    prepared: Prepared,
    model: Any,
    *,
    plan: Plan,
    choice: Choice,
    scored: HeldOut,
    elsewhere: list[HeldOut],
    fold: Fold,
    genes: list[str],
    notes: tuple[list[str], list[str]],
    calibrate: bool,
    target_error: float | None,
    seconds: float,
    times: tuple[float, float, float, float],
) -> TrainingResult:
    """Let the model carry what held-out samples tell, and gather the result.

    Parameters
    ----------
    prepared, model : what was trained on, and the model that was fitted to all of it.
    plan, choice : what was planned, and the setting that was chosen.
    scored, elsewhere : held-out samples, as they are and on simulated platforms.
    fold : the one that plain logistic regression is compared on, for about ``seconds``.
    genes : that the model needs.
    notes : to say before and after the warnings.
    calibrate, target_error : see `optirank.workflow.train.train`.
    times : when the training began, and when planning, search and final fit were done.
    """
    undone = remember_held_out(model, prepared, prepared.chooser, scored)
    undone += calibrate_model(model, scored, calibrate, target_error, elsewhere)
    held_out = held_out_table(scored, model, prepared)
    by_fold = fold_table(held_out)
    warnings = weaknesses(prepared, fold, held_out, seconds)
    begin, planned, searched, fitted = times
    result = TrainingResult(
        model=model,
        plan=plan,
        label=prepared.label,
        batch=prepared.batch,
        source=Path(prepared.source).name,  # not the folder, which is private
        held_out=held_out,
        elsewhere=elsewhere_table(elsewhere, model),
        per_class=class_table(prepared.y, held_out, model.classes_),
        by_fold=by_fold,
        balanced_accuracy=float(by_fold["balanced_accuracy"].mean()),
        standard_error=held_out_error(held_out, by_fold),
        optimism=choice.optimism,
        settings=choice.params,
        path=choice.table,
        genes=genes,
        notes=[*notes[0], *warnings, *notes[1], *undone],
        warnings=warnings,
        timings={
            "planning": planned - begin,
            "cross-validation": searched - planned,
            "final fit": fitted - searched,
            "total": time.perf_counter() - begin,
        },
    )
    model.training_summary_ |= summary(result)
    return result
