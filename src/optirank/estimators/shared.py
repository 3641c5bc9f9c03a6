"""A classifier made from a solution of the joint problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optirank.estimators.optirank import OptirankClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.joint_problem import JointSolution
    from optirank.solver.problem import Solution


def solutions_by_class(solution: JointSolution) -> list[Solution]:
    """One row per class; of two classes the difference of their rows, as one binary problem."""
    rows = solution.by_class()
    if len(rows) > 2:
        return rows
    first, second = rows
    return [replace(second, w=second.w - first.w, b=second.b - first.b)]


def shared_model(
    params: Mapping[str, Any], classes: NDArray, solution: JointSolution
) -> OptirankClassifier:
    """A fitted classifier with one reference set for all classes.

    Whether the solution converged is for the caller to say; here it gives no warning.
    """
    model = OptirankClassifier(**params)
    model.n_features_in_ = len(solution.gamma)
    model.classes_ = classes
    model._keep([[replace(one, converged=True)] for one in solutions_by_class(solution)], 2)
    return model
