// The CUDA kernels of optirank.solver.device.blocks and sets: one block of whole warps per problem,
// or per right-hand side. tests/numpy_device.py says in NumPy what each computes.

// Sums over the threads of a block; all of them get both.
__device__ double2 block_sum(double2 value)
{
    __shared__ double2 parts[33];
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    for (int o = 16; o; o >>= 1) {
        value.x += __shfl_xor_sync(0xffffffffu, value.x, o);
        value.y += __shfl_xor_sync(0xffffffffu, value.y, o);
    }
    __syncthreads();
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    if (t == 0) {
        double2 sum = parts[0];
        for (int k = 1; k < (blockDim.x >> 5); ++k) { sum.x += parts[k].x; sum.y += parts[k].y; }
        parts[32] = sum;
    }
    __syncthreads();
    return parts[32];
}

// The largest value of the threads of a block.
__device__ double block_max(double value)
{
    __shared__ double parts[33];
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    for (int o = 16; o; o >>= 1) value = fmax(value, __shfl_xor_sync(0xffffffffu, value, o));
    __syncthreads();
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    if (t == 0) {
        double most = parts[0];
        for (int k = 1; k < (blockDim.x >> 5); ++k) most = fmax(most, parts[k]);
        parts[32] = most;
    }
    __syncthreads();
    return parts[32];
}

// First and second derivative of weight * logloss(y, score) in the score.
__device__ double2 derivatives(const double score, const double y, const double weight)
{
    const double e = exp(-fabs(score)), q = 1.0 / (1.0 + e), p = score > 0 ? q : e * q;
    return make_double2(weight * (p - y), weight * e * q * q);
}

// The shift at which clip(x - shift, 0, 1) sums to s: Newton steps inside a bracket.
__device__ double shift_to_sum(const double* x, const double s, const int d)
{
    double high = -1e300, least = 1e300;
    for (int j = threadIdx.x; j < d; j += blockDim.x) {
        high = fmax(high, x[j]);
        least = fmin(least, x[j]);
    }
    high = block_max(high);
    double low = fmax(-block_max(-least), high - 1e6) - 1.0;   // forbidden entries lie far below
    double shift = 0.5 * (low + high);
    for (int step = 0; step < 100; ++step) {
        double2 sums = make_double2(0, 0);                     // of the clipped, number of the free
        for (int j = threadIdx.x; j < d; j += blockDim.x) {
            const double u = x[j] - shift;
            if (u >= 1.0) sums.x += 1.0;
            else if (u > 0.0) { sums.x += u; sums.y += 1.0; }
        }
        sums = block_sum(sums);
        const double excess = sums.x - s;
        if (excess > 0) low = shift; else high = shift;
        if (fabs(excess) <= 1e-12 * s || high - low <= 1e-15 * fmax(fabs(low), fabs(high))) break;
        double next = sums.y > 0 ? shift + excess / sums.y : low;
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        if (next == shift) break;
        shift = next;
    }
    return shift;
}

extern "C" {

// The point of {0 <= u <= 1, sum u = s} nearest to each row of x.
__global__ void project_rows(const double* x, const double* s, const int d, double* out)
{
    const double* row = x + (long long)blockIdx.x * d;
    double* to = out + (long long)blockIdx.x * d;
    const double shift = shift_to_sum(row, s[blockIdx.x], d);
    for (int j = threadIdx.x; j < d; j += blockDim.x) to[j] = fmin(fmax(row[j] - shift, 0.0), 1.0);
}

// The intercept that minimises sum_i v_i logloss(y_i, z_i + b): Newton steps inside a bracket, each
// at most twice as long as the one before.
__global__ void best_intercepts(const double* z, const double* y, const double* v, const int n,
                                const int steps, double* b)
{
    const long long begin = (long long)blockIdx.x * n;
    double here = b[blockIdx.x], low = -1e300, high = 1e300, reach = 2.0;
    for (int step = 0; step < steps; ++step) {
        double2 sums = make_double2(0, 0);
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            const double2 own = derivatives(z[begin + i] + here, y[begin + i], v[begin + i]);
            sums.x += own.x;
            sums.y += own.y;
        }
        sums = block_sum(sums);
        if (sums.x > 0) high = fmin(high, here); else low = fmax(low, here);
        if (fabs(sums.x) < 1e-14) break;
        const double move = fmin(fmax(sums.x / fmax(sums.y, 1e-12), -reach), reach);
        double next = here - move;
        if (!(next >= low && next <= high)) next = 0.5 * (low + high);
        if (fabs(next - here) < 1e-12) { here = next; break; }
        here = next;
        reach *= 2.0;
    }
    if (threadIdx.x == 0) b[blockIdx.x] = here;
}

// t = c (u - sum c u / sum c), one block per right-hand side, m of them per problem.
__global__ void weigh_scores(const float* u, const float* c, const int n, const int m, float* out)
{
    const float* row = u + (long long)blockIdx.x * n;
    const float* weights = c + (long long)(blockIdx.x / m) * n;
    float* to = out + (long long)blockIdx.x * n;
    double2 sums = make_double2(0, 0);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        sums.x += (double)weights[i] * row[i];
        sums.y += weights[i];
    }
    sums = block_sum(sums);
    const double shift = sums.x / fmax(sums.y, 1e-30);
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        to[i] = (float)(weights[i] * (row[i] - shift));
}

// One step of conjugate gradients for each right-hand side that has not ended; q is the product
// with its direction p, to which the ridge is added here.
__global__ void gradient_step(const float* q, const double* diagonal, const bool* support,
                              const double* ridge, const double* limit, const int d, const int m,
                              double* x, double* r, double* p, float* p_single, double* rz,
                              bool* active)
{
    const long long row = blockIdx.x, problem = row / m;
    if (!active[row]) return;
    q += row * d; x += row * d; r += row * d; p += row * d; p_single += row * d;
    diagonal += problem * d; support += problem * d;
    const double own = ridge[problem], before = rz[row];
    double2 sums = make_double2(0, 0);  // p' H p and the squared residual
    for (int j = threadIdx.x; j < d; j += blockDim.x)
        if (support[j]) { sums.x += p[j] * (q[j] + own * p[j]); sums.y += r[j] * r[j]; }
    sums = block_sum(sums);
    if (!(sums.y > limit[row] && sums.x > 0)) {
        if (threadIdx.x == 0) active[row] = false;
        return;
    }
    const double alpha = before / sums.x;
    double after = 0;
    for (int j = threadIdx.x; j < d; j += blockDim.x)
        if (support[j]) {
            x[j] += alpha * p[j];
            r[j] -= alpha * (q[j] + own * p[j]);
            after += r[j] * r[j] / diagonal[j];
        }
    after = block_sum(make_double2(after, 0)).x;
    for (int j = threadIdx.x; j < d; j += blockDim.x)
        if (support[j]) {
            p[j] = r[j] / diagonal[j] + after / before * p[j];
            p_single[j] = (float)p[j];
        }
    if (threadIdx.x == 0) rz[row] = after;
}

// Slopes and curvatures of v logloss(y, z + b), the sum of the slopes, and the bound L_b.
__global__ void slopes_of_scores(const double* z, const double* b, const double* y, const double* v,
                                 const int n, float* slopes, double* curvatures, double* total,
                                 double* L_b)
{
    const long long begin = (long long)blockIdx.x * n;
    const double here = b[blockIdx.x];
    double2 sums = make_double2(0, 0);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const double2 own = derivatives(z[begin + i] + here, y[begin + i], v[begin + i]);
        slopes[begin + i] = (float)own.x;
        curvatures[begin + i] = own.y;
        sums.x += own.x;
        sums.y += own.y;
    }
    sums = block_sum(sums);
    if (threadIdx.x == 0) { total[blockIdx.x] = sums.x; L_b[blockIdx.x] = fmax(sums.y, 1e-3); }
}

// What is known of a step once its new point is: facts[0..3] are the squared change, its product
// with the momentum, its largest entry, and the mean's product with the new point.
__device__ void measure(const double* to, const double* ahead, const double* x, const double* mean,
                        const int d, float* single, const int problems, double* facts)
{
    double2 moved = make_double2(0, 0);
    double largest = 0, shift = 0;
    for (int j = threadIdx.x; j < d; j += blockDim.x) {
        const double u = to[j], change = u - ahead[j];
        moved.x += change * change;
        moved.y -= change * (u - x[j]);
        largest = fmax(largest, fabs(change));
        shift += mean[j] * u;
        single[j] = (float)u;
    }
    moved = block_sum(moved);
    largest = block_max(largest);
    shift = block_sum(make_double2(shift, 0)).x;
    if (threadIdx.x == 0) {
        double* own = facts + blockIdx.x;
        own[0] = moved.x;
        own[problems] = moved.y;
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

// The step of gamma within {0 <= gamma <= 1, sum gamma = s}; genes that are not allowed
// stay at zero. linear, added to the gradient, and allowed may be null.
__global__ void capped_simplex_step(const float* product, const double* mean, const double* total,
                                    const double* ahead, const double* x, const double* L,
                                    const double* s, const double* linear, const bool* allowed,
                                    const int d, const int problems, double* to, float* single,
                                    double* facts)
{
    const long long k = blockIdx.x, begin = k * d;
    const double own_L = L[k], sum = total[k];
    for (int j = threadIdx.x; j < d; j += blockDim.x) {
        double gradient = product[begin + j] - mean[begin + j] * sum;
        if (linear) gradient += linear[begin + j];
        to[begin + j] = allowed && !allowed[j] ? -1e30 : ahead[begin + j] - gradient / own_L;
    }
    __syncthreads();
    const double shift = shift_to_sum(to + begin, s[k], d);
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
    rise = block_sum(make_double2(rise, 0)).x;
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
