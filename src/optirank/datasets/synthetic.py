"""The paper's synthetic model: a group of genes that shifts together and spoils
full ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state, check_scalar

WEIGHTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "folded": np.abs,
    "normal": np.asarray,
}
"""What is made of normal numbers before 1 is added: the weights but for their signs."""


def make_unstable_ranks(
    n_samples: int = 1000,
    n_genes: int = 50,
    n_perturbed: int = 40,
    *,
    tau: float = 0.2,
    sigma: float = 0.05,
    label_accuracy: float = 0.98,
    weights: str = "folded",
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    r"""Draw samples whose labels depend on ranks that a coordinated shift hides.

    Gene :math:`j` has a typical level :math:`\mu_j \sim U[0, 1]` and sample :math:`i`
    shows

    .. math:: X_{ij} = \mu_j + \sigma \varepsilon_{ij} + \Delta_i 1[j \in P], \quad
              \Delta_i \sim N(0, \tau^2),

    so the perturbed genes :math:`P` move together, by one shift per sample. The labels
    come from a logistic model on the ranks within the stable genes :math:`S`, which the
    shift leaves alone:

    .. math:: P(y_i = 1) = \operatorname{sigmoid}(w \cdot r_i / |S| + b), \quad
              w_j = \pm(|N(0, 1)| + 1) \text{ on } S, \; 0 \text{ on } P.

    This is the folded normal distribution. With ``weights="normal"`` the weights are
    :math:`\pm(N(0, 1) + 1)`, as the paper prints: some of them are near zero.

    One factor on :math:`w` and the intercept :math:`b` are solved for together, such
    that over the samples drawn the mean probability is 1/2 and the expected accuracy of
    the most probable label is `label_accuracy`. Where too many samples share the order
    of the stable genes at the middle score, no model does both, and the weights are
    drawn again. With very few stable genes no draw may do, which is an error.

    With the same seed, the levels, the noise, the labels and the directions of the
    shifts are the same whatever `tau` is: ``tau=0`` shows the same samples before the
    shift.

    Parameters
    ----------
    n_samples, n_genes
        Size of the table.
    n_perturbed
        Number of genes that shift together. At least two genes have to stay stable, as
        the rank of one gene among itself says nothing.
    tau
        Standard deviation of the shift.
    sigma
        Standard deviation of the noise of one expression value.
    label_accuracy
        Expected accuracy of the most probable label, above 1/2 and below 1.
    weights
        Distribution of the weights before their signs, ``"folded"`` or ``"normal"``.
    random_state
        Seed, as in scikit-learn.

    Returns
    -------
    Bunch
        `X` (n_samples, n_genes); `y` (0 or 1); `reference`, the mask of the stable
        genes :math:`S`; `perturbed`, its complement; `coef` and `intercept`, the model
        of the labels in the units of :class:`optirank.OptirankClassifier`: average
        ranks (lowest 0) divided by :math:`|S|`.

    Examples
    --------
    >>> from optirank.datasets import make_unstable_ranks
    >>> data = make_unstable_ranks(random_state=0)
    >>> data.X.shape, int(data.reference.sum())
    ((1000, 50), 10)
    """
    from scipy.stats import rankdata  # SciPy's statistics take long to load

    check_scalar(n_samples, "n_samples", Integral, min_val=2)
    check_scalar(n_genes, "n_genes", Integral, min_val=2)
    check_scalar(n_perturbed, "n_perturbed", Integral, min_val=0)
    if n_perturbed > n_genes - 2:
        raise ValueError(
            f"n_perturbed={n_perturbed} leaves {max(n_genes - n_perturbed, 0)} stable "
            f"of n_genes={n_genes}: the labels need the ranks of at least 2 stable "
            f"genes, so use n_perturbed of at most {n_genes - 2}"
        )
    for name, value in (("tau", tau), ("sigma", sigma)):
        check_scalar(value, name, Real, min_val=0.0)
        if not np.isfinite(value):
            raise ValueError(f"{name}={value}: use a finite number of at least 0")
    between = {"min_val": 0.5, "max_val": 1.0, "include_boundaries": "neither"}
    check_scalar(label_accuracy, "label_accuracy", Real, **between)
    if weights not in WEIGHTS:
        known = " or ".join(map(repr, WEIGHTS))
        raise ValueError(f"weights={weights!r}: use {known}")
    rng = check_random_state(random_state)

    # Everything is drawn in one fixed order and size, so that tau and n_perturbed
    # change nothing but what they name.
    levels = rng.uniform(size=n_genes)
    order = rng.permutation(n_genes)
    shift = tau * rng.normal(size=n_samples)
    uniform = rng.uniform(size=n_samples)
    X = levels + sigma * rng.normal(size=(n_samples, n_genes))

    perturbed = np.zeros(n_genes, dtype=bool)
    perturbed[order[:n_perturbed]] = True
    reference = ~perturbed
    X[:, perturbed] += shift[:, None]

    ranks = (rankdata(X[:, reference], axis=1) - 1.0) / reference.sum()
    coef, intercept = _weights_and_intercept(
        ranks, reference, label_accuracy, WEIGHTS[weights], rng
    )
    y = (uniform < expit(ranks @ coef[reference] + intercept)).astype(np.int64)
    model = {"coef": coef, "intercept": intercept}
    return Bunch(X=X, y=y, reference=reference, perturbed=perturbed, **model)


def _weights_and_intercept(
    ranks: np.ndarray,
    reference: np.ndarray,
    label_accuracy: float,
    of_normal: Callable[[np.ndarray], np.ndarray],
    rng: np.random.RandomState,
) -> tuple[np.ndarray, float]:
    """Draw weights on the reference genes until a model of the labels is as it
    should be.
    """
    for _ in range(50):  # draws of the weights before giving up
        signs = rng.choice([-1.0, 1.0], size=reference.size)
        weights = signs * (of_normal(rng.normal(size=reference.size)) + 1.0)
        weights[~reference] = 0.0
        model = _balanced_and_accurate(ranks @ weights[reference], label_accuracy)
        if model is not None:
            return model[0] * weights, model[1]
    raise ValueError(
        f"the ranks of {ranks.shape[1]} stable genes take too few values for balanced "
        f"labels at label_accuracy={label_accuracy}: use more stable genes (a smaller "
        "n_perturbed), a larger sigma or a lower label_accuracy"
    )


def _balanced_and_accurate(
    scores: np.ndarray, label_accuracy: float
) -> tuple[float, float] | None:
    """Return the factor and the intercept of a model with mean 1/2 and the accuracy
    asked for.

    For any factor `a`, the mean of ``sigmoid(a * scores + b)`` grows with `b` and
    crosses 1/2 once, at `b(a)`. The expected accuracy at ``(a, b(a))`` goes from 1/2 at
    ``a = 0`` to what the ties among the scores allow: None where that is too little.
    """

    def intercept(log_factor: float) -> float:
        z = np.exp(log_factor) * scores
        ends = (-z.max(), -z.min())
        return root_scalar(
            lambda b: expit(z + b).mean() - 0.5, bracket=ends, xtol=1e-13
        ).root

    def excess(log_factor: float) -> float:
        p = expit(np.exp(log_factor) * scores + intercept(log_factor))
        return np.maximum(p, 1.0 - p).mean() - label_accuracy

    spread = np.ptp(scores)
    if spread < 1e-9:
        return None
    # With log-odds of a smaller spread labels are too noisy: |p - 1/2| <= log-odds / 4
    flattest = np.log((label_accuracy - 0.5) / spread)
    # With log-odds of a larger spread the labels are noiseless but for ties
    steepest = np.log(1e4 / spread)
    if excess(steepest) < 0.0:
        return None
    log_factor = root_scalar(excess, bracket=(flattest, steepest), xtol=1e-12).root
    return float(np.exp(log_factor)), intercept(log_factor)
