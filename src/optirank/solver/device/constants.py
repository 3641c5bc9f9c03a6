"""The constants of the algorithm on a device; where the CPU has the same quantity, its name.

Steps are counted in lock step here: a refused step counts, so some numbers of steps are higher.
"""

# Steps on one block
GROW = 1.6  # factor on the step's curvature when it is refused: two refusals more than double it
RELAX = 0.93  # when it is taken; nearer to 1 than on the CPU, as a refused step costs a product
INNER_STEPS = 4  # of each block per round: one more than on the CPU, since refused steps count
CHECK_EVERY = 10  # steps between two looks at which problems are done: a look waits for the device
FORBIDDEN = -1e30  # where a gene outside the candidates is put: far below any, yet finite

# The way to a set
SCREEN = (20, 5e-3)  # rounds at most, relative decrease that ends them: tells a bad start
RELAXED = (20, 2e-3)  # the same before the push: less is lost to the rounding that follows
FOLLOW = (6, 2e-3)  # the same from the relaxed solution of a neighbour in a grid, nearly right
FAR = 0.02  # a start this much above the other after screening has not been seen to end lower
CLOSE = 0.02  # the same after relaxing: an anchor has a start 1 % above that ends lower
CLOSE_IN_GRIDS = 0.005  # in a grid, where a start too few costs one setting of many a little
PUSH_ROUNDS = 60  # at most; gamma is a set after 20 to 40, and what is fractional is rounded
PUSH_STEP = 1e-4  # times path_step, of the loss at zero weights: the rise that a push adds
INTEGRAL = 1e-3  # sum of gamma (1 - gamma) below which gamma is a set but for rounding
RELAXED_RIDGE = 1e-5  # least l2 until gamma is a set: below, steps are too slow to be of use
ROUNDED_STEPS = 35  # on (w, b) after rounding: then objectives of starts can be compared

# Exchanges
SMALLEST_GAIN = 1e-6  # of the objective: what float32 scores tell from noise
BATCH_STEPS = 18  # on (w, b) that judge a batch; 3 more than on the CPU, since refused steps count
TRIAL_STEPS = 14  # on (w, b) that judge a pair; 2 more, likewise
TRIAL_NEWTON_STEPS = 4  # that do so at l1 = 0: Newton's method has converged by then
TOGETHER = (2, 3, 4, 6, 8, 12, 16)  # disjoint pairs that are tried at once, beside single pairs
HOPE = 3e-3  # of the objective: a pair whose model predicts a larger rise is not tried
MODELS = 30  # at most: a problem that one of them does not improve is done
CHEAP = 1e7  # n d^2 below which a fit takes so little that both starts go to the end
LARGE = 2e7  # entries of a matrix above which fewer pairs are modelled, for memory and time

# (w, b) to convergence
FIRST_STEPS = 150  # accelerated steps before Newton's method: enough where l2 is not small
BURST = 30  # of them at a time, then the problems that have converged are left out
MORE_STEPS = 50  # between rounds of Newton's method, to find the support
EXACT_SIZE = 300  # genes up to which Hessians are factored, and the end is in float64
SMALLEST_RESIDUAL = 2e-7  # what float32 matrices resolve
NEWTON_STEPS = 5  # of a round: with few of them the support is found anew before it is far off
STALLED = 1e-9  # of the objective: a Newton round that lowers it by less has ended
CG_STEPS = 40  # of conjugate gradients per direction: a damped step needs no exact one
CG_TOL = 1e-3  # relative residual that ends them, for the same reason

# Memory
COPIES = 6.0  # float32 matrices of a problem that are held at once, buffers counted in
FILLS_DEVICE = 1 << 22  # entries of a matrix whose product alone keeps a GPU busy
BLOCK_BYTES = 1 << 30  # values that are sorted at a time: small beside the memory of any GPU
USABLE = 0.8  # of the free memory of a GPU: the rest is for temporary arrays
