"""The constants of the algorithm on a device: those of the CPU, then those of lock step alone."""

from __future__ import annotations

from optirank.solver.constants import (  # noqa: F401 (those of the CPU, for all of this folder)
    CHEAP,
    CLOSE,
    FAR,
    FIRST_STEPS,
    GROW,
    HOPELESS,
    INTEGRAL,
    MODEL_ENTRIES,
    PUSH_ROUNDS,
    PUSH_STEP,
    RELAXED,
    RELAXED_RIDGE,
    SCREEN,
    SMALL,
    SMALLEST_GAIN,
    SMALLEST_RESIDUAL,
    TRIAL_NEWTON_STEPS,
)

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
