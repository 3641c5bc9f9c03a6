// Sorting and the rank pass of optirank.solver.device.backend, one block per sample.
// INDEX and KEY stand for unsigned integer types.
extern "C" {

// Exclusive prefix sums of the weights in sorted order, then one value per gene:
// out[j] = base + sign * (c[start_j] + tie * (c[end_j] - c[start_j])).
__global__ void rank_pass(const INDEX* perm, const INDEX* start, const INDEX* end,
                          const float* a, const double* base, const double sign,
                          const double tie, const int n, const int d, float* out)
{
    extern __shared__ double c[];            // d + 1 prefix sums, then one sum per warp
    double* warps = c + d + 1;
    const long long i = blockIdx.x, item = blockIdx.y;
    const int t = threadIdx.x, T = blockDim.x, lane = t & 31, warp = t >> 5;
    const INDEX* p = perm + i * d;
    const float* w = a + item * d;
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
    const double first = base[item];
    const INDEX* lo = start + i * d;
    const INDEX* hi = end + i * d;
    float* row = out + (item * n + i) * d;
    for (int j = t; j < d; j += T) {
        const double low = c[lo[j]];
        row[j] = (float)(first + sign * (low + tie * (c[hi[j]] - low)));
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

}
