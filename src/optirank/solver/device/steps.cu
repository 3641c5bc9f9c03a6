// The CUDA kernels of optirank.solver.device.moves, which says what each computes: the parts of an
// accelerated proximal step, one block per problem.
extern "C" {

// Slopes and curvatures of v logloss(y, z + b), the sum of the slopes, and the bound L_b.
__global__ void slopes_of_scores(const double* z, const double* b, const double* y, const double* v,
                                 const int n, float* slopes, double* curvatures, double* total,
                                 double* L_b)
{
    const long long begin = (long long)blockIdx.x * n;
    const double here = b[blockIdx.x];
    double sum = 0, curved = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const double score = z[begin + i] + here, e = exp(-fabs(score)), q = 1.0 / (1.0 + e);
        const double p = score > 0 ? q : e * q, weight = v[begin + i];
        const double slope = weight * (p - y[begin + i]), curvature = weight * e * q * q;
        slopes[begin + i] = (float)slope;
        curvatures[begin + i] = curvature;
        sum += slope;
        curved += curvature;
    }
    sum = block_sum(sum);
    curved = block_sum(curved);
    if (threadIdx.x == 0) { total[blockIdx.x] = sum; L_b[blockIdx.x] = fmax(curved, 1e-3); }
}

// What is known of a step once its new point is: facts[0..3] are the squared change, its product
// with the momentum, its largest entry, and the mean's product with the new point.
__device__ void measure(const double* to, const double* ahead, const double* x, const double* mean,
                        const int d, float* single, const int problems, double* facts)
{
    double squared = 0, turn = 0, largest = 0, shift = 0;
    for (int j = threadIdx.x; j < d; j += blockDim.x) {
        const double u = to[j], change = u - ahead[j];
        squared += change * change;
        turn -= change * (u - x[j]);
        largest = fmax(largest, fabs(change));
        shift += mean[j] * u;
        single[j] = (float)u;
    }
    squared = block_sum(squared);
    turn = block_sum(turn);
    largest = block_max(largest);
    shift = block_sum(shift);
    if (threadIdx.x == 0) {
        double* own = facts + blockIdx.x;
        own[0] = squared;
        own[problems] = turn;
        own[2 * problems] = largest;
        own[3 * problems] = shift;
    }
}

// The step of w under l1 |w|_1 + l2 |w|^2; product is M^T slopes, not centred.
__global__ void elastic_net_step(const float* product, const double* mean, const double* total,
                                 const double* ahead, const double* x, const double* L,
                                 const double* l1, const double* l2, const int d,
                                 const int problems, double* to, float* single, double* facts)
{
    const long long k = blockIdx.x, begin = k * d;
    const double own_L = L[k], own_l1 = l1[k], sum = total[k], scale = own_L + 2.0 * l2[k];
    for (int j = threadIdx.x; j < d; j += blockDim.x) {
        const double gradient = product[begin + j] - mean[begin + j] * sum;
        const double u = own_L * ahead[begin + j] - gradient;
        to[begin + j] = copysign(fmax(fabs(u) - own_l1, 0.0), u) / scale;
    }
    __syncthreads();
    measure(to + begin, ahead + begin, x + begin, mean + begin, d, single + begin, problems, facts);
}

// The step of gamma within {0 <= gamma <= 1, sum gamma = s}; forbidden genes stay at zero.
__global__ void capped_simplex_step(const float* product, const double* mean, const double* total,
                                    const double* linear, const bool* allowed, const double* ahead,
                                    const double* x, const double* L, const double* s, const int d,
                                    const int problems, double* to, float* single, double* facts)
{
    const long long k = blockIdx.x, begin = k * d;
    const double own_L = L[k], sum = total[k], size = s[k];
    double high = -1e300, least = 1e300;
    for (int j = threadIdx.x; j < d; j += blockDim.x) {
        double gradient = product[begin + j] - mean[begin + j] * sum;
        if (linear) gradient += linear[begin + j];
        const double u = allowed && !allowed[j] ? -1e30 : ahead[begin + j] - gradient / own_L;
        to[begin + j] = u;
        high = fmax(high, u);
        least = fmin(least, u);
    }
    high = block_max(high);
    double low = fmax(-block_max(-least), high - 1e6) - 1.0;
    double shift = 0.5 * (low + high);
    for (int step = 0; step < 100; ++step) {
        double clipped = 0, between = 0;
        for (int j = threadIdx.x; j < d; j += blockDim.x) {
            const double u = to[begin + j] - shift;
            if (u >= 1.0) clipped += 1.0;
            else if (u > 0.0) { clipped += u; between += 1.0; }
        }
        const double excess = block_sum(clipped) - size;
        between = block_sum(between);
        if (excess > 0) low = shift; else high = shift;
        if (fabs(excess) <= 1e-12 * size || high - low <= 1e-15 * fmax(fabs(low), fabs(high))) break;
        double next = between > 0 ? shift + excess / between : low;
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        if (next == shift) break;
        shift = next;
    }
    for (int j = threadIdx.x; j < d; j += blockDim.x)
        to[begin + j] = fmin(fmax(to[begin + j] - shift, 0.0), 1.0);
    __syncthreads();
    measure(to + begin, ahead + begin, x + begin, mean + begin, d, single + begin, problems, facts);
}

// Accept the step where the loss rises by no more than its bound, and go ahead with momentum;
// otherwise shorten it. product is M new, not centred.
__global__ void judge_step(const float* product, const double* facts, const double* total,
                           const double* L_b, const double* curvatures, const double* v,
                           const double* to, const double* tol, const double relaxed,
                           const double grown, const int n, const int d, const int problems,
                           double* x, double* ahead, double* z, double* z_ahead, double* b,
                           double* b_ahead, double* t, double* L, double* residual, bool* done,
                           long long* taken)
{
    const long long k = blockIdx.x, samples = k * n, genes = k * d;
    if (done[k]) return;
    const double squared = facts[k], turn = facts[problems + k], largest = facts[2 * problems + k];
    const double shift = facts[3 * problems + k], before = b_ahead[k], at = b[k], own_L = L[k];
    const double b_new = before - total[k] / L_b[k], b_move = b_new - before;
    double rise = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const double moved = fabs(product[samples + i] - shift + b_move - z_ahead[samples + i]);
        const double quadratic = 0.125 * v[samples + i] * moved * moved;
        double bound = quadratic;
        if (moved < 3.0) {
            const double series =
                0.5 + moved * (1. / 6 + moved * (1. / 24 + moved * (1. / 120 + moved * (1. / 720))));
            const double above = moved < 0.3 ? moved * moved * series : exp(moved) - 1.0 - moved;
            bound = fmin(1.0001 * curvatures[samples + i] * above, quadratic);
        }
        rise += bound;
    }
    rise = block_sum(rise);
    const double most = 0.5 * (own_L * squared + L_b[k] * b_move * b_move);
    const bool accepted = rise <= most * (1.0 + 1e-6) + 1e-13;
    const bool turned = turn - b_move * (b_new - at) > 0;
    const double old = t[k], next = turned ? 1.0 : 0.5 * (1.0 + sqrt(1.0 + 4.0 * old * old));
    const double momentum = turned ? 0.0 : (old - 1.0) / next;
    __syncthreads();
    if (threadIdx.x == 0) {
        L[k] = own_L * (accepted ? relaxed : grown);
        if (accepted) {
            residual[k] = own_L * largest;
            t[k] = next;
            b_ahead[k] = b_new + momentum * (b_new - at);
            b[k] = b_new;
            done[k] = own_L * largest <= tol[k];
            taken[k] += 1;
        }
    }
    if (!accepted) return;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const double u = product[samples + i] - shift;
        z_ahead[samples + i] = u + momentum * (u - z[samples + i]);
        z[samples + i] = u;
    }
    for (int j = threadIdx.x; j < d; j += blockDim.x) {
        const double u = to[genes + j];
        ahead[genes + j] = u + momentum * (u - x[genes + j]);
        x[genes + j] = u;
    }
}

}
