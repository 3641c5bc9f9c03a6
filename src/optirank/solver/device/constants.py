"""The constants of the algorithm on a device: those of the CPU, then those of lock step alone."""

from __future__ import annotations

# The same as on the CPU
GROW = 1.6  # a refused step is shortened by this: two refusals more than double the curvature
SMALLEST_RESIDUAL = 2e-7  # proximal gradient that float32 matrices resolve
FIRST_STEPS = 150  # accelerated steps before Newton's method: well-conditioned fits end within them
SMALL = 300  # unknowns up to which a factorisation costs next to nothing
SCREEN = (20, 5e-3)  # rounds at most and decrease that ends them: enough to tell the starts apart
RELAXED = (20, 2e-3)  # the same before the push: less is lost to the rounding that follows
RELAXED_RIDGE = 1e-5  # least l2 until gamma is a set: below, steps are too slow to be of use
FAR = 0.02  # a start this much above the other after screening never ended lower when measured
CLOSE = 0.005  # starts that differ by less after relaxing are both taken to a set
PUSH_STEP = 1e-4  # times path_step, of the loss at w = 0: what a round's push adds to the objective
PUSH_ROUNDS = 60  # at most: what is fractional then is rounded
INTEGRAL = 1e-3  # push penalty below which gamma is as good as a set
CHEAP = 1e7  # n d^2 below which a fit takes so little that both starts go to the end
SMALLEST_GAIN = 1e-6  # of the objective: less is within what the refit of an exchange leaves open
MODEL_ENTRIES = 2e7  # matrix above which fewer pairs are tried: they take longer than the rest
TRIAL_NEWTON_STEPS = 4  # that judge an exchange at l1 = 0: Newton's method has converged by then
HOPELESS = 0.003  # of the objective: a pair whose predicted rise is larger is not tried

# Steps in lock step, where a refused one counts: numbers of steps are higher than on the CPU
INNER_STEPS = 4  # per block and round: one more
BATCH_STEPS = 18  # that refit (w, b) after a batch of exchanges: three more
TRIAL_STEPS = 14  # that judge an exchange at l1 > 0: two more
ROUNDED_STEPS = 35  # on (w, b) after rounding, before sets are compared: five more
MORE_STEPS = 50  # between two rounds of Newton's method, to find the support: ten more
RELAX = 0.93  # after a step that was taken; nearer to 1, as a refused one keeps its problem waiting
CHECK_EVERY = 10  # steps between two looks at which problems are done: a look waits for the device
BURST = 30  # steps between two looks that leave the problems out which are done
NEWTON_STEPS = 5  # of a round: with few of them the support is found anew before it is far off
STALLED = 1e-9  # of the objective: a round of Newton's method that gains less has ended
CG_STEPS = 40  # of conjugate gradients per direction: a damped step needs no exact one
CG_TOL = 1e-3  # relative residual that ends them, for the same reason
FORBIDDEN = -1e30  # where a gene outside the candidates is put: far below any, yet finite

# What side by side makes cheap
CLOSE_ALONE = 0.02  # CLOSE outside a grid: an anchor has a start 1 % above that ends lower
FOLLOW = (6, 2e-3)  # RELAXED from the relaxed solution of a neighbour in a grid, nearly right
TOGETHER = (2, 3, 4, 6, 8, 12, 16)  # disjoint pairs that are tried at once, beside single pairs
MODELS = 30  # of exchanges at most: a problem that one of them does not improve is done
PAIRS = (30, 24)  # genes looked at each way, and single pairs that are judged side by side
PAIRS_IF_CHEAP = (60, 24)  # the same where a fit costs little
PAIRS_IF_LARGE = (10, 4)  # the same above MODEL_ENTRIES

# Memory
COPIES = 6.0  # float32 matrices of a problem that are held at once, buffers counted in
FILLS_DEVICE = 1 << 22  # entries of a matrix whose product alone keeps a GPU busy
BLOCK_BYTES = 1 << 30  # values that are sorted at a time: small beside the memory of any GPU
USABLE = 0.8  # of the free memory of a GPU: the rest is for temporary arrays
