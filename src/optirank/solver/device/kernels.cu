// The CUDA kernels of optirank.solver.device.kernels, which says what each computes.
// INDEX and KEY stand for unsigned integer types.
extern "C" {

// Exclusive prefix sums of the weights in sorted order, then one value per gene:
// out[j] = base + sign * (c[start_j] + tie * (c[end_j] - c[start_j])).
__global__ void rank_pass(const INDEX* perm, const INDEX* start, const INDEX* end,
                          const float* a, const long long a_item, const long long a_sample,
                          const double* base, const double sign, const double tie,
                          const int n, const int d, float* out)
{
    extern __shared__ double c[];            // d + 1 prefix sums, then one sum per warp
    double* warps = c + d + 1;
    const long long i = blockIdx.x, item = blockIdx.y;
    const int t = threadIdx.x, T = blockDim.x, lane = t & 31, warp = t >> 5;
    const INDEX* p = perm + i * d;
    const float* w = a + item * a_item + i * a_sample;
    for (int k = t; k < d; k += T) c[k + 1] = w[p[k]];
    __syncthreads();
    const int chunk = (d + T - 1) / T, from = min(t * chunk, d), to = min(from + chunk, d);
    double sum = 0;
    for (int k = from; k < to; ++k) sum += c[k + 1];
    double inclusive = sum;
    for (int o = 1; o < 32; o <<= 1) {
        double other = __shfl_up_sync(0xffffffffu, inclusive, o);
        if (lane >= o) inclusive += other;
    }
    if (lane == 31) warps[warp] = inclusive;
    __syncthreads();
    if (warp == 0) {
        double total = t < (T >> 5) ? warps[t] : 0;
        for (int o = 1; o < 32; o <<= 1) {
            double other = __shfl_up_sync(0xffffffffu, total, o);
            if (lane >= o) total += other;
        }
        if (t < (T >> 5)) warps[t] = total;
    }
    __syncthreads();
    double running = inclusive - sum + (warp ? warps[warp - 1] : 0.0);
    for (int k = from; k < to; ++k) { running += c[k + 1]; c[k + 1] = running; }
    if (t == 0) c[0] = 0;
    __syncthreads();
    const double b0 = base[item * (a_sample ? 0 : 1)];
    const double whole = a_sample ? c[d] : 0.0;   // weights per sample: co-ranks start at their sum
    const INDEX* lo = start + i * d;
    const INDEX* hi = end + i * d;
    float* row = out + (item * n + i) * d;
    for (int j = t; j < d; j += T) {
        const double low = c[lo[j]];
        row[j] = (float)(b0 + whole + sign * (low + tie * (c[hi[j]] - low)));
    }
}

// Bitonic sort of (key, gene) in shared memory, then the place of each gene's tie group.
__global__ void sort_samples(const KEY* keys, const int n, const int d, const int size,
                             INDEX* perm, INDEX* start, INDEX* end)
{
    extern __shared__ unsigned char memory[];
    KEY* key = (KEY*)memory;
    INDEX* gene = (INDEX*)(key + size);
    const long long i = blockIdx.x;
    const int t = threadIdx.x, T = blockDim.x;
    for (int k = t; k < size; k += T) {
        key[k] = k < d ? keys[i * d + k] : (KEY)~(KEY)0;
        gene[k] = (INDEX)k;
    }
    __syncthreads();
    for (int width = 2; width <= size; width <<= 1)
        for (int stride = width >> 1; stride > 0; stride >>= 1) {
            for (int q = t; q < size / 2; q += T) {
                const int k = 2 * q - (q & (stride - 1)), m = k + stride;
                const bool up = (k & width) == 0;
                const KEY x = key[k], y = key[m];
                const INDEX g = gene[k], h = gene[m];
                const bool greater = x > y || (x == y && g > h);   // padding stays behind
                if (greater == up) { key[k] = y; key[m] = x; gene[k] = h; gene[m] = g; }
            }
            __syncthreads();
        }
    for (int k = t; k < d; k += T) {
        const KEY x = key[k];
        int low = 0, high = k;                       // first place of this key
        while (low < high) {
            const int mid = (low + high) >> 1;
            if (key[mid] < x) low = mid + 1; else high = mid;
        }
        const int first = low;
        low = k + 1; high = d;                       // first place behind it
        while (low < high) {
            const int mid = (low + high) >> 1;
            if (key[mid] <= x) low = mid + 1; else high = mid;
        }
        perm[i * d + k] = gene[k];
        start[i * d + gene[k]] = (INDEX)first;
        end[i * d + gene[k]] = (INDEX)low;
    }
}

// The point of {0 <= u <= 1, sum u = s} nearest to x, one block per row: safeguarded Newton steps.
__global__ void project_rows(const double* x, const double* s, const int d, double* out)
{
    __shared__ double parts[32], parts2[32];
    __shared__ double shared_value[2];
    const double* row = x + (long long)blockIdx.x * d;
    double* to = out + (long long)blockIdx.x * d;
    const double sum = s[blockIdx.x];
    const int t = threadIdx.x, T = blockDim.x, lane = t & 31, warp = t >> 5;
    double high = -1e300, low = 1e300;
    for (int j = t; j < d; j += T) { high = fmax(high, row[j]); low = fmin(low, row[j]); }
    for (int o = 16; o; o >>= 1) {
        high = fmax(high, __shfl_xor_sync(0xffffffffu, high, o));
        low = fmin(low, __shfl_xor_sync(0xffffffffu, low, o));
    }
    if (lane == 0) { parts[warp] = high; parts2[warp] = low; }
    __syncthreads();
    if (t == 0) {
        for (int k = 1; k < (T >> 5); ++k) { high = fmax(high, parts[k]); low = fmin(low, parts2[k]); }
        shared_value[0] = high; shared_value[1] = low;
    }
    __syncthreads();
    high = shared_value[0];
    low = fmax(shared_value[1], high - 1e6) - 1.0;   // forbidden entries lie far below
    double shift = 0.5 * (low + high);
    for (int step = 0; step < 100; ++step) {
        double clipped = 0, free_ = 0;
        for (int j = t; j < d; j += T) {
            const double u = row[j] - shift;
            if (u >= 1.0) clipped += 1.0;
            else if (u > 0.0) { clipped += u; free_ += 1.0; }
        }
        for (int o = 16; o; o >>= 1) {
            clipped += __shfl_xor_sync(0xffffffffu, clipped, o);
            free_ += __shfl_xor_sync(0xffffffffu, free_, o);
        }
        __syncthreads();
        if (lane == 0) { parts[warp] = clipped; parts2[warp] = free_; }
        __syncthreads();
        if (t == 0) {
            double a = 0, f = 0;
            for (int k = 0; k < (T >> 5); ++k) { a += parts[k]; f += parts2[k]; }
            shared_value[0] = a - sum; shared_value[1] = f;
        }
        __syncthreads();
        const double excess = shared_value[0], n_free = shared_value[1];
        if (excess > 0) low = shift; else high = shift;
        if (fabs(excess) <= 1e-12 * sum || high - low <= 1e-15 * fmax(fabs(low), fabs(high))) break;
        double next = n_free > 0 ? shift + excess / n_free : low;
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        if (next == shift) break;
        shift = next;
    }
    for (int j = t; j < d; j += T) to[j] = fmin(fmax(row[j] - shift, 0.0), 1.0);
}

// The intercept that minimises sum_i v_i logloss(y_i, z_i + b), one block per problem: Newton steps
// inside a bracket, each at most twice as long as the one before.
__global__ void best_intercepts(const double* z, const double* y, const double* v, const int n,
                                const int steps, double* b)
{
    __shared__ double parts[32], parts2[32];
    __shared__ double sums[2];
    const long long begin = (long long)blockIdx.x * n;
    const int t = threadIdx.x, T = blockDim.x, lane = t & 31, warp = t >> 5;
    double here = b[blockIdx.x], low = -1e300, high = 1e300, reach = 2.0;
    for (int step = 0; step < steps; ++step) {
        double slope = 0, curvature = 0;
        for (int i = t; i < n; i += T) {
            const double score = z[begin + i] + here, e = exp(-fabs(score)), q = 1.0 / (1.0 + e);
            const double p = score > 0 ? q : e * q, weight = v[begin + i];
            slope += weight * (p - y[begin + i]);
            curvature += weight * e * q * q;
        }
        for (int o = 16; o; o >>= 1) {
            slope += __shfl_xor_sync(0xffffffffu, slope, o);
            curvature += __shfl_xor_sync(0xffffffffu, curvature, o);
        }
        __syncthreads();
        if (lane == 0) { parts[warp] = slope; parts2[warp] = curvature; }
        __syncthreads();
        if (t == 0) {
            double a = 0, c = 0;
            for (int k = 0; k < (T >> 5); ++k) { a += parts[k]; c += parts2[k]; }
            sums[0] = a; sums[1] = c;
        }
        __syncthreads();
        slope = sums[0]; curvature = sums[1];
        if (slope > 0) high = fmin(high, here); else low = fmax(low, here);
        if (fabs(slope) < 1e-14) break;
        const double move = fmin(fmax(slope / fmax(curvature, 1e-12), -reach), reach);
        double next = here - move;
        if (!(next >= low && next <= high)) next = 0.5 * (low + high);
        if (fabs(next - here) < 1e-12) { here = next; break; }
        here = next;
        reach *= 2.0;
    }
    if (t == 0) b[blockIdx.x] = here;
}

// t = c (u - sum c u / sum c), one block per right-hand side, m of them per problem.
__global__ void weigh_scores(const float* u, const float* c, const int n, const int m, float* out)
{
    const float* row = u + (long long)blockIdx.x * n;
    const float* weights = c + (long long)(blockIdx.x / m) * n;
    float* to = out + (long long)blockIdx.x * n;
    double sum = 0, total = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        sum += (double)weights[i] * row[i];
        total += weights[i];
    }
    sum = block_sum(sum);
    total = block_sum(total);
    const double shift = sum / fmax(total, 1e-30);
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
    double bent = 0, left = 0;
    for (int j = threadIdx.x; j < d; j += blockDim.x)
        if (support[j]) { bent += p[j] * (q[j] + own * p[j]); left += r[j] * r[j]; }
    bent = block_sum(bent);
    left = block_sum(left);
    if (!(left > limit[row] && bent > 0)) {
        if (threadIdx.x == 0) active[row] = false;
        return;
    }
    const double alpha = before / bent;
    double after = 0;
    for (int j = threadIdx.x; j < d; j += blockDim.x)
        if (support[j]) {
            x[j] += alpha * p[j];
            r[j] -= alpha * (q[j] + own * p[j]);
            after += r[j] * r[j] / diagonal[j];
        }
    after = block_sum(after);
    for (int j = threadIdx.x; j < d; j += blockDim.x)
        if (support[j]) {
            p[j] = r[j] / diagonal[j] + after / before * p[j];
            p_single[j] = (float)p[j];
        }
    if (threadIdx.x == 0) rz[row] = after;
}

}
