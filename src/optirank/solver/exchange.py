"""Exchanges of reference genes at an integral gamma.

In batches, judged by the gradient and a short refit; then pair by pair, ranked by a
second-order model of the objective in which (w, b) respond to the exchange.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optirank._compiled import rank_loops
from optirank._util.numbers import product
from optirank.ranks.orders import take_columns
from optirank.ranks.scoring import check_ties
from optirank.solver import constants as c
from optirank.solver.blocks import (
    accelerated_steps,
    not_centred,
    spread,
)
from optirank.solver.convex import (
    RidgeHessian,
    newton_steps,
    steps_with_hessian,
)

if TYPE_CHECKING:
    from optirank.solver.solve import Run, State


def exchange_batches(run: Run, state: State, n_tries: int) -> State:
    """Swap batches of genes by the gradient of gamma, halving the batch when a refit
    says no.

    If all tries are refused, ``state.batch`` keeps the size that comes next, so that
    another call goes on from there.
    """
    s = run.problem.n_reference
    batch = state.batch
    if batch is None:
        batch = max(1, min(s, run.problem.n_genes - s) // 4)
    gradient = None
    changed = False
    for _ in range(n_tries):
        if batch == 0:
            break
        if gradient is None:
            gradient = _gradient_gamma(run, state)
        inside, outside = run.feasible.exchangeable(state.gamma, gradient, batch)
        size = min(len(inside), len(outside))
        inside = inside[:size]
        outside = outside[:size]
        better = gradient[outside] < gradient[inside]
        if not better.any():
            batch = 0
            break
        gamma = state.gamma.copy()
        gamma[inside[better]] = 0.0
        gamma[outside[better]] = 1.0
        new = run.steps_on_w(replace(state, gamma=gamma), c.REFIT_STEPS)
        if new.objective < state.objective * (1.0 - c.SMALLEST_GAIN):
            state = new
            gradient = None
            changed = True
        else:
            batch //= 2
    return replace(state, batch=None if changed else batch)


def exchange_pairs(run: Run, state: State, n_models: int) -> State:
    """Swap the pairs that a second-order model ranks best, as long as the objective
    falls.

    Each model serves until too many pairs in a row were refused; then a new one is
    made, if any was accepted, up to ``n_models``. Cheap problems have more pairs
    tried. For many reference genes among many genes a new model has the old one's
    Hessian, which is most of its cost, as long as that leads to exchanges.
    """
    problem = run.problem
    keeps_hessian = (
        run.penalty.smooth
        and problem.n_genes > c.SMALL
        and problem.n_reference > c.FEW_GENES
    )
    factored = None
    for _ in range(n_models):
        model = make_pair_model(run, state, factored)
        new = None if model is None else model.exchange()
        if model is not None and new is not None:
            state = new
            factored = model.hessian if keeps_hessian else None
        elif factored is not None:
            factored = None
        else:
            break
    return state


def make_pair_model(
    run: Run, state: State, factored: RidgeHessian | None
) -> PairModel | None:
    """The model of the exchanges at a set, after a few steps on (w, b); None if it is
    too large.
    """
    penalty = run.penalty
    orders = run.problem.orders
    matrix = run.matrices.ranks(state.gamma)
    z = matrix.dot(state.w)
    run.loss.differentiate(z, run.loss.best_intercept(z, state.b))
    columns = np.arange(orders.n_genes)
    if not penalty.smooth:
        slopes = np.abs(matrix.transpose_dot(run.loss.slopes))
        near = slopes > c.NEAR_ACTIVE * penalty.threshold
        columns = np.flatnonzero((state.w != 0) | near)
    w = state.w[columns]
    active = np.arange(len(columns)) if penalty.smooth else np.flatnonzero(w)
    too_many = min(len(active), orders.n_samples) > c.NEWTON_SIZE
    too_large = len(columns) * orders.n_samples > c.MODEL_ENTRIES
    if not w.any() or too_many or too_large:
        return None
    return PairModel(run, state, columns, active, matrix.columns(columns), factored)


class PairModel:
    """A second-order model of all exchanges at a set, and the trials of the best ones.

    It sees some ``columns`` (genes that have a weight or may get one), of which the
    ``active`` ones respond to an exchange. (w, b), the ranks and gamma move on with
    each exchange that is taken.

    Attributes
    ----------
    inside, outside : genes of the set that most want out, candidates that most want in.
    pair_groups : tie groups of the inside genes, then of the outside ones.
    gains : predicted change of the objective, inside x outside.
    responses : of the active weights to each gene, active x genes.
    """

    def __init__(
        self,
        run: Run,
        state: State,
        columns: NDArray,
        active: NDArray,
        ranks: NDArray,
        factored: RidgeHessian | None,
    ) -> None:
        self.problem = run.problem
        self.loss = loss = run.loss
        self.penalty = penalty = run.penalty
        self.state = state
        self.effort = 2 if run.cheap else 1
        self.columns = columns
        self.active = active
        self.ranks = ranks
        self.w = state.w[columns]
        self.b = state.b
        self.objective = state.objective
        self.tie, _ = check_ties(self.problem.ties)
        self.by_newton = penalty.smooth and self.problem.n_genes <= c.EXACT_TRIALS
        # The Hessian of the active weights, w being where its gradient is nearly zero
        if self.by_newton:
            self.w, self.b, self.objective, _ = newton_steps(
                ranks, loss, self.w, self.b, penalty, 10
            )
        active_ranks = take_columns(ranks, active)
        self.hessian = RidgeHessian(
            active_ranks, loss.curvatures, penalty.curvature, factored
        )
        if penalty.smooth and not self.by_newton:
            self.w, self.b, self.objective = steps_with_hessian(
                self.hessian, ranks, loss, self.w, self.b, penalty, n_steps=2
            )
        self.groups = self.problem.orders.groups_of(columns)
        n_genes = self.problem.n_genes
        coranks = run.matrices.coranks(spread(self.w, columns, n_genes))
        gradient = coranks.transpose_dot(loss.slopes)
        self.inside, self.outside = run.feasible.exchangeable(
            state.gamma, gradient, self.effort * c.PAIR_GENES
        )
        genes = np.concatenate([self.inside, self.outside])
        self.pair_groups = self.problem.orders.groups_of(genes)
        self.gains, self.responses = self._predict(
            coranks.columns(genes), gradient[genes]
        )
        if len(columns) < n_genes:
            self.spare = np.empty_like(ranks)
        else:
            self.spare = coranks.columns(columns)  # their memory is free now

    def _predict(self, coranks: NDArray, gradient: NDArray) -> tuple[NDArray, NDArray]:
        """Predicted change of the objective for each (inside, outside) pair; the
        response of w.

        With u the change of the scores at fixed w, H the Hessian in w and q the change
        of w's gradient (through the scores' curvature and through the ranks
        themselves), the change is ``g.u + u'Du/2 - q'H^-1 q/2``: a quadratic form in
        the difference of two genes.
        """
        n_inside = len(self.inside)
        slopes = self.loss.slopes
        curvatures = self.loss.curvatures
        active_groups = take_columns(self.groups, self.active)
        roots = np.sqrt(curvatures)[:, None]
        mean = curvatures @ coranks / max(curvatures.sum(), 1e-30)
        scaled = ((coranks - mean) * roots).astype(np.float32)
        turn = np.zeros((coranks.shape[1], len(self.active)), np.float32)
        rank_loops.slopes_of_comparisons(
            active_groups, slopes, self.pair_groups, self.tie, turn
        )
        q = turn.T.astype(np.float64) / self.problem.n_reference
        q += self.hessian.transpose_scaled_dot(scaled)
        w = self.w[self.active]
        rest = product(slopes, take_columns(self.ranks, self.active))
        rest = rest + self.penalty.gradient(w, np.sign(w))
        responses = self.hessian.solve(q)
        linear = gradient - responses.T @ rest
        form = product(scaled.T, scaled).astype(np.float64) - q.T @ responses
        alone = 0.5 * np.diag(form)
        gains = (alone + linear)[None, n_inside:] + (alone - linear)[:n_inside, None]
        return gains - form[:n_inside, n_inside:], responses

    def exchange(self) -> State | None:
        """Try pairs in the order of their predicted gains; None if none was
        accepted.
        """
        gamma = self.state.gamma.copy()
        used: set[int] = set()
        n_refused = 0
        for number in np.argsort(self.gains, axis=None, kind="stable"):
            i, k = divmod(int(number), self.gains.shape[1])
            hopeless = self.gains[i, k] > c.HOPELESS * self.objective
            if hopeless or n_refused >= self.effort * c.REFUSALS:
                break
            goes = int(self.inside[i])
            comes = int(self.outside[k])
            if goes in used or comes in used:
                continue
            target = self.objective * (1.0 - c.SMALLEST_GAIN)
            w, b, objective = self._try(i, len(self.inside) + k, target)
            if objective < target:
                self.w = w
                self.b = b
                self.objective = objective
                self.ranks, self.spare = self.spare, self.ranks
                gamma[goes] = 0.0
                gamma[comes] = 1.0
                used |= {goes, comes}
                n_refused = 0
            else:
                n_refused += 1
        if not used:
            return None
        w = spread(self.w, self.columns, self.problem.n_genes)
        return replace(self.state, w=w, b=self.b, gamma=gamma, objective=self.objective)

    def _try(
        self, goes: int, comes: int, target: float
    ) -> tuple[NDArray, float, float]:
        """(w, b) after an exchange (places among the pairs' genes), whose ranks are in
        ``spare``, and the objective.

        Steps stop early where they will not get below the target.
        """
        loss = self.loss
        penalty = self.penalty
        b = self.b
        rank_loops.exchange_in_ranks(
            self.groups,
            self.pair_groups[:, comes],
            self.pair_groups[:, goes],
            self.tie,
            1.0 / self.problem.n_reference,
            self.ranks,
            self.spare,
        )
        guess = self.w.copy()
        guess[self.active] -= self.responses[:, comes] - self.responses[:, goes]
        if self.by_newton:
            n_steps = c.TRIAL_NEWTON_STEPS
            w, b, objective, _ = newton_steps(
                self.spare, loss, guess, b, penalty, n_steps, target=self.objective
            )
            return w, b, objective
        if penalty.smooth:
            n_steps = c.TRIAL_NEWTON_STEPS
            return steps_with_hessian(
                self.hessian, self.spare, loss, guess, b, penalty, n_steps, target
            )
        guess = penalty.keep_signs(guess, np.sign(self.w))
        matrix = not_centred(self.spare)
        n_steps = self.effort * c.REFIT_STEPS
        done = accelerated_steps(
            matrix, loss, guess, b, penalty, self.state.L_w, n_steps
        )
        b = loss.best_intercept(done.z, done.b)
        return done.x, b, loss.value(done.z, b) + penalty.value(done.x)


def _gradient_gamma(run: Run, state: State) -> NDArray:
    coranks = run.matrices.coranks(state.w)
    z = coranks.dot(state.gamma)
    run.loss.differentiate(z, run.loss.best_intercept(z, state.b))
    return coranks.transpose_dot(run.loss.slopes)
