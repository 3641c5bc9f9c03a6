"""The constants of the algorithm, each with its reason.

"Measured" means on the anchor problems of 50 to 1000 genes
(``benchmarks/bench_solver.py``).
"""

DEFAULTS = {"n_reference": 0.2, "l1": 1e-3, "l2": 1e-3}
"""Of the estimators: over real pairs no other worked better on another platform."""

RIDGE_FLOOR = 1e-7
"""Stands in for l2 when l1 = l2 = 0: separable data would have no minimiser."""

STARTS = ("rising", "falling")
"""The two starts: gamma tilted to the genes that rise with the label, or to those
that fall.
"""

# Accelerated steps on one block
# A refused step is shortened by it: two refusals cover what eight taken steps gain
GROW = 1.6
# After a step that was taken a longer one is tried: the curvature falls on the way
RELAX = 0.9
# A step this short no longer moves anything in float32: take it and stop trying
LARGEST_L = 1e12
SLACK = 1e-12  # what the roundoff of float32 scores adds to the rise of the loss
# least curvature along b: it vanishes where all samples are certain
INTERCEPT_CURVATURE = 1e-3
SMALLEST_RESIDUAL = 2e-7  # proximal gradient that float32 matrices resolve

# (w, b) to convergence
# Accelerated steps before Newton's method: well-conditioned fits end within them
FIRST_STEPS = 150
MORE_STEPS = 40  # between two rounds of Newton's method: enough to find the support
NEWTON_STEPS = 5  # of a round, at most: then the support is found anew
# largest system that is factored: above, a factor costs more than 150 steps
NEWTON_SIZE = 1500
SMALL = 300  # unknowns up to which a factorisation costs next to nothing
# Ridge over the largest diagonal entry from which a float32 factor loses no digits
SINGLE = 1e-5
LAST_STEPS = 10  # in float64, at most: each gains three digits or more when measured
STALLED = 1e-9  # of the objective: a round of Newton's method that gains less has ended

# Alternating rounds on the relaxed problem
# per block and round: a matrix costs as much as 5 to 10 of its products
INNER_STEPS = 3
# of l1: genes with such a gradient may get a weight in the next steps
NEAR_ACTIVE = 0.8
# rounds at most and decrease that ends them: enough to tell the starts apart
SCREEN = (20, 1e-2)
# the same before the push: closer changed hardly a set when measured
RELAXED = (30, 1e-3)
# least l2 until gamma is a set: below, steps are too slow to be of use
RELAXED_RIDGE = 1e-5

# From the relaxed solution to a set
# A start this much above the other after screening ended lower on 1 of 100 problems,
# and wider margins did not help that one
FAR = 0.01
CLOSE = 0.002  # the same after the relaxed problem
# sets that differ by less may change places when (w, b) converge: finish both
CLOSE_SETS = 1e-3
# Times path_step, of the loss at w = 0: what a round's push adds to the objective; half
# of it took a third more rounds and ended no lower
PUSH_STEP = 2e-4
PUSH_ROUNDS = 60  # at most: what is fractional then is rounded
INTEGRAL = 1e-3  # push penalty below which gamma is as good as a set
# n d^2 below which a fit takes a tenth of a second: both starts go to the end
CHEAP = 1e7

# Exchanges of reference genes
# of the objective: less is within what the refit of an exchange leaves open
SMALLEST_GAIN = 1e-6
BATCHES = 6  # tries of a batch of genes: it has halved from s/4 to a few genes by then
# that refit (w, b) to a new set to judge it: with fewer, good ones are refused
REFIT_STEPS = 15
# largest matrix that trials go over: above, they take longer than the rest
MODEL_ENTRIES = 2e7
# genes up to which, with l1 = 0, an exchange is judged by Newton steps
EXACT_TRIALS = 100
# reference genes of which each is so much of the set that the Hessian changes
FEW_GENES = 20
MODELS = 8  # of exchanges at most; few fits come to as many
# looked at each way; here and below twice as many for cheap problems
PAIR_GENES = 30
REFUSALS = 6  # in a row that end a model
TRIAL_NEWTON_STEPS = 4  # that judge one at l1 = 0, at most
HOPELESS = 5e-4  # of the objective: a pair whose predicted rise is larger is not tried
