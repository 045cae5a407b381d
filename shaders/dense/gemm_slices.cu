// Adds the sums of slices of k in their order, and ends the product: C = activation(alpha sum + beta C + bias).
// A block of 256 adds 256 / groups vec4s; each of `groups` threads of a vec4 adds every groups-th slice.
#include "cuda/epilogue.cuh"

// `sums` holds m rows of `vec4s` for each slice of each product.
extern "C" __global__ void __launch_bounds__(256)
gemm_slices(const float4 *sums, const Element *bias, Element *c, unsigned slices, unsigned groups, unsigned products,
            unsigned m, unsigned n, unsigned vec4s, unsigned long long ldc, unsigned long long stride_c, float alpha,
            float beta) {
    __shared__ float4 parts[256];
    const unsigned lanes = 256 / groups, lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
    const unsigned long long at = (unsigned long long)blockIdx.x * lanes + lane, each = (unsigned long long)m * vec4s;
    const unsigned row = (unsigned)(at / vec4s), col = (unsigned)(at % vec4s) * 4;
    const bool fours = (ldc | stride_c) % 4 == 0 && col + 4 <= n;
    Epilogue end;
    end.alpha = alpha;
    end.beta = beta;
    end.bias = bias;
    for (unsigned product = blockIdx.y; product < products; product += gridDim.y) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (at < each) {
            const float4 *from = sums + product * slices * each + at;
#pragma unroll 8
            for (unsigned slice = group; slice < slices; slice += groups) {
                const float4 x = from[slice * each];
                sum.x += x.x;
                sum.y += x.y;
                sum.z += x.z;
                sum.w += x.w;
            }
        }
        if (groups > 1) {
            __syncthreads();
            parts[threadIdx.x] = sum;
            __syncthreads();
            for (unsigned other = 1; group == 0 && other < groups; other++) {
                const float4 x = parts[other * lanes + lane];
                sum.x += x.x;
                sum.y += x.y;
                sum.z += x.z;
                sum.w += x.w;
            }
        }
        if (group > 0 || at >= each) continue;
        Element *const to = c + product * stride_c + row * ldc + col;
        if (fours) {
            end.four(to, row, col, sum);
        } else {
            const float each_sum[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
            for (unsigned i = 0; i < 4; i++)
                if (col + i < n) end.one(to + i, row, col + i, each_sum[i]);
        }
    }
}
