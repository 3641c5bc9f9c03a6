"""Small joint problems, and a slow, independent way to solve them."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import LinearConstraint, minimize
from scipy.special import logsumexp

from optirank.ranks.definition import comparison_matrix
from optirank.ranks.orders import order_samples
from optirank.solver.joint_problem import JointProblem, joint_weights


def make_counts(n=60, d=12, n_classes=3, seed=0):
    """Counts with ties and zeros whose classes differ in some genes."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    means = np.exp(rng.normal(0.5, 0.8, (n_classes, d)))
    return rng.poisson(means[codes]).astype(float), codes


def make_problem(X, codes, s, *, as_sparse=False, weights=None, balanced=True, **options):
    """The joint problem of values and codes."""
    n_classes = int(codes.max()) + 1
    orders = order_samples(sparse.csr_array(X) if as_sparse else X)
    v = joint_weights(codes, n_classes, weights, balanced)
    return JointProblem(orders, codes, n_classes, v, s, **options)


class SlowJoint:
    """Loss and gradients from the comparison matrices; convex solves by scipy."""

    def __init__(self, X, problem):
        self.p = problem
        self.C = np.array([comparison_matrix(x, problem.ties) for x in X])
        self.offset = {"average": 0.5, "min": 0.0, "max": 1.0}[problem.ties]

    def scores(self, W, b, gamma):
        ranks = self.C @ gamma - self.offset
        return ranks @ W / self.p.n_reference + b

    def objective(self, W, b, gamma):
        z = self.scores(W, b, gamma)
        loss = self.p.v @ (logsumexp(z, axis=1) - z[np.arange(len(z)), self.p.codes])
        norms = np.linalg.norm(W, axis=1).sum()
        return loss + self.p.l1 * norms + self.p.l2 * (W**2).sum()

    def slopes(self, W, b, gamma):
        z = self.scores(W, b, gamma)
        p = np.exp(z - logsumexp(z, axis=1, keepdims=True))
        p[np.arange(len(z)), self.p.codes] -= 1.0
        return p * self.p.v[:, None]

    def gradients(self, W, b, gamma):
        """Of the loss in W, b and gamma."""
        G = self.slopes(W, b, gamma)
        ranks = self.C @ gamma - self.offset
        in_gamma = np.einsum("ijk,ij->k", self.C, G @ W.T)
        return ranks.T @ G / self.p.n_reference, G.sum(axis=0), in_gamma / self.p.n_reference

    def best_weights(self, gamma, W, b):
        """(W, b) by L-BFGS (l1 = 0)."""
        shape, d = W.shape, W.size

        def value(x):
            W, b = x[:d].reshape(shape), x[d:]
            in_W, in_b, _ = self.gradients(W, b, gamma)
            in_W = in_W + 2 * self.p.l2 * W
            return self.objective(W, b, gamma), np.concatenate([in_W.ravel(), in_b])

        start = np.concatenate([W.ravel(), b])
        options = {"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-9}
        x = minimize(value, start, jac=True, method="L-BFGS-B", options=options).x
        return x[:d].reshape(shape), x[d:]

    def best_gamma(self, gamma, W, b, push):
        """gamma by a general solver of constrained problems, with the tangent of the push."""

        def value(g):
            _, _, in_gamma = self.gradients(W, b, g)
            return self.objective(W, b, g) + push @ g, in_gamma + push

        ones = LinearConstraint(np.ones((1, len(gamma))), self.p.n_reference, self.p.n_reference)
        options = {"maxiter": 200, "ftol": 1e-12}
        bounds = [(0.0, 1.0)] * len(gamma)
        found = minimize(
            value, gamma, jac=True, method="SLSQP", bounds=bounds, constraints=ones, options=options
        )
        return np.clip(found.x, 0.0, 1.0)

    def alternate(self, n_rounds=15):
        """Exact alternation, relaxed and then pushed, rounded and refitted: the objective."""
        d, s, K = self.C.shape[1], self.p.n_reference, self.p.n_classes
        gamma, W, b = np.full(d, s / d), np.zeros((d, K)), np.zeros(K)
        lambda_p = 0.0
        for k in range(3 * n_rounds):
            W, b = self.best_weights(gamma, W, b)
            if k >= n_rounds:
                lambda_p += 0.002
            gamma = self.best_gamma(gamma, W, b, lambda_p * (1.0 - 2.0 * gamma))
            if k >= n_rounds and (gamma * (1.0 - gamma)).sum() < 1e-3:
                break
        vertex = np.zeros(d)
        vertex[np.argsort(-gamma, kind="stable")[:s]] = 1.0
        W, b = self.best_weights(vertex, W, b)
        return self.objective(W, b, vertex)
