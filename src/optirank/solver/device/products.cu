// The CUDA kernels of optirank.solver.device.products: products of many matrices, each with a vector
// of its own. Both read each matrix once and add in a fixed order.
extern "C" {

#define ROWS 4  // rows that a warp reads side by side, to have more loads under way

// out[k, i] = sum_j M[k, i, j] x[k, j]; a warp per ROWS rows.
__global__ void batched_dot(const float* matrix, const float* x, const int n, const int d,
                            float* out)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const long long k = blockIdx.y;
    const int first = (blockIdx.x * warps + warp) * ROWS;
    if (first >= n) return;
    const float* own = x + k * d;
    const float* row[ROWS];
    float sum[ROWS];
    for (int r = 0; r < ROWS; ++r) {
        row[r] = matrix + (k * n + min(first + r, n - 1)) * d;
        sum[r] = 0.f;
    }
    if ((d & 3) == 0) {
        for (int j = lane * 4; j < d; j += 128) {
            const float4 b = *(const float4*)(own + j);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const float4 a = *(const float4*)(row[r] + j);
                sum[r] += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
            }
        }
    } else {
        for (int j = lane; j < d; j += 32) {
            const float b = own[j];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) sum[r] += row[r][j] * b;
        }
    }
    for (int r = 0; r < ROWS; ++r) {
        for (int o = 16; o; o >>= 1) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], o);
        if (lane == 0 && first + r < n) out[k * n + first + r] = sum[r];
    }
}

// out[c, k, j] = sum of a[k, i] M[k, i, j] over the c-th part of the rows; a block has 128 columns,
// and its warps take the rows in turn.
__global__ void batched_transpose_dot(const float* matrix, const float* a, const int n,
                                      const int d, const int rows, const int problems, float* out)
{
    extern __shared__ float parts[];         // warps x 128
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const long long k = blockIdx.y;
    const int begin = blockIdx.z * rows, end = min(begin + rows, n);
    const float* values = matrix + k * n * d;
    const float* own = a + k * n;
    const int column = blockIdx.x * 128;
    float sum[4] = {0.f, 0.f, 0.f, 0.f};
    if ((d & 3) == 0) {
        const int j = column + lane * 4;
        if (j < d) {
#pragma unroll 4
            for (int i = begin + warp; i < end; i += warps) {
                const float4 m = *(const float4*)(values + (long long)i * d + j);
                const float w = own[i];
                sum[0] += w * m.x; sum[1] += w * m.y; sum[2] += w * m.z; sum[3] += w * m.w;
            }
        }
        for (int c = 0; c < 4; ++c) parts[warp * 128 + lane * 4 + c] = sum[c];
    } else {
        for (int i = begin + warp; i < end; i += warps) {
            const float w = own[i];
            const float* row = values + (long long)i * d;
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const int j = column + c * 32 + lane;
                if (j < d) sum[c] += w * row[j];
            }
        }
        for (int c = 0; c < 4; ++c) parts[warp * 128 + c * 32 + lane] = sum[c];
    }
    __syncthreads();
    for (int c = threadIdx.x; c < 128; c += blockDim.x) {
        if (column + c >= d) continue;
        float whole = 0.f;
        for (int one = 0; one < warps; ++one) whole += parts[one * 128 + c];
        out[((long long)blockIdx.z * problems + k) * d + column + c] = whole;
    }
}

}
