"""The constants of the algorithm, the same on the CPU and on a GPU, each with its reason.

"Measured" means on the anchor problems of 50 to 1000 genes (``benchmarks/bench_solver.py``).
"""

from __future__ import annotations

DEFAULTS = {"n_reference": 0.2, "l1": 1e-3, "l2": 1e-3}
"""Of the estimators, and the setting that a search for another platform leaves only for a clearly
better one: over real pairs no other worked better on another platform."""

RIDGE_FLOOR = 1e-7
"""Stands in for l2 when l1 = l2 = 0: separable data would have no minimiser."""

STARTS = ("rising", "falling")
"""The two starts: gamma tilted to the genes that rise with the label, or to those that fall."""

# Accelerated steps on one block
GROW = (
    1.6  # a refused step is shortened by this: two refusals cover what RELAX gains in eight steps
)
RELAX = 0.9  # after a step that was taken a longer one is tried: the curvature falls on the way
LARGEST_L = 1e12  # a step this short no longer moves anything in float32: take it and stop trying
SLACK = 1e-12  # what the roundoff of float32 scores adds to the rise of the loss
INTERCEPT_CURVATURE = 1e-3  # least curvature along b: it vanishes where all samples are certain
SMALLEST_RESIDUAL = 2e-7  # proximal gradient that float32 matrices resolve

# (w, b) to convergence
FIRST_STEPS = 150  # accelerated steps before Newton's method: well-conditioned fits end within them
MORE_STEPS = 40  # between two rounds of Newton's method: enough to find the support
NEWTON_SIZE = 1500  # largest system that is factored: above, a factor costs more than 150 steps
SMALL = 300  # unknowns up to which a factorisation costs next to nothing
SINGLE = 1e-5  # ridge over the largest diagonal entry from which a float32 factor loses no digits

# Alternating rounds on the relaxed problem
INNER_STEPS = 3  # per block and round: a matrix costs as much as 5 to 10 of its products
ROUNDS_PER_SET = 3  # rounds that keep to the genes which a round over all genes has found
NEAR_ACTIVE = 0.8  # of l1: genes with such a gradient may get a weight in the next steps
FEW = 0.7  # share of the genes above which a matrix of some is not cheaper than that of all
SCREEN = (20, 5e-3)  # rounds at most and decrease that ends them: enough to tell the starts apart
RELAXED = (20, 2e-3)  # the same before the push: closer than this changed no set when measured
RELAXED_RIDGE = 1e-5  # least l2 until gamma is a set: below, steps are too slow to be of use

# From the relaxed solution to a set
FAR = 0.02  # a start this much above the other after screening never ended lower when measured
CLOSE = 0.005  # starts that differ by less after relaxing are both taken to a set
CLOSE_SETS = 1e-3  # sets that differ by less may change places when (w, b) converge: finish both
PUSH_STEP = 1e-4  # times path_step, of the loss at w = 0: what a round's push adds to the objective
PUSH_ROUNDS = 60  # at most: what is fractional then is rounded
INTEGRAL = 1e-3  # push penalty below which gamma is as good as a set
ROUNDED_STEPS = 30  # on (w, b) after rounding, before sets are compared
FASTER = 2.0  # pushes in a grid after the first, from a relaxed solution that is nearly right
CHEAP = 1e7  # n d^2 below which a fit takes a tenth of a second: both starts go to the end

# Exchanges of reference genes
SMALLEST_GAIN = 1e-6  # of the objective: less is within what the refit of an exchange leaves open
BATCH_STEPS = 15  # that refit (w, b) after a batch of exchanges
MODEL_ENTRIES = 2e7  # largest matrix that trials go over: above, they take longer than the rest
EXACT_TRIALS = 100  # genes up to which, with l1 = 0, an exchange is judged by Newton steps
FEW_GENES = 20  # reference genes of which each is so much of the set that the Hessian changes
PAIRS = (30, 6, 12)
"""Genes looked at each way, refusals in a row that end a model, steps that judge at l1 > 0."""
PAIRS_IF_CHEAP = (60, 12, 25)
"""The same where trials cost little: 12 steps refuse exchanges that 25 find to be good."""
TRIAL_NEWTON_STEPS = 4  # that judge one at l1 = 0, at most
HOPELESS = 0.003  # of the objective: a pair whose predicted rise is larger is not tried
