// What the kernels of this folder share; put before each of their sources.

// Sum over the threads of a block; all of them get it.
__device__ double block_sum(double value)
{
    __shared__ double parts[33];
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    for (int o = 16; o; o >>= 1) value += __shfl_xor_sync(0xffffffffu, value, o);
    __syncthreads();
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    if (t == 0) {
        double sum = 0;
        for (int k = 0; k < (blockDim.x >> 5); ++k) sum += parts[k];
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
