"""What the fits on a GPU do otherwise than those on the CPU; the other constants are
those of ``optirank.solver.constants``.
"""

# A look at a result waits for all work before it
CHECK_EVERY = 10  # steps between two looks at which problems are done
CG_STEPS = 40  # of conjugate gradients per direction: a damped step needs no exact one
CG_TOL = 1e-3  # relative residual that ends them, for the same reason
# where a gene outside the candidates is put: far below any, yet finite
FORBIDDEN = -1e30
MODELS_ON_DEVICE = 30  # as one exchange is made per model there
# that are judged side by side: more found no better ones when measured
PAIRS_AT_ONCE = 24
COPIES = 6.0  # float32 matrices of a problem that are held at once, buffers counted in
FILLS_DEVICE = 1 << 22  # entries of a matrix whose product alone keeps a GPU busy
# values that are sorted at a time: small beside the memory of any GPU
BLOCK_BYTES = 1 << 30
USABLE = 0.8  # of the free memory of a GPU: the rest is for temporary arrays
# rounds and decrease that end them, from the relaxed solution of a neighbour in a grid
FOLLOW = (6, 2e-3)
