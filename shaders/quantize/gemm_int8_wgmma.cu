// C = A B of signed bytes by products of warpgroups (Hopper), summed in i32, and scaled (cuda/bytes_epilogue.cuh). A is
// stored m x k and B n x k, with rows of whole 16-byte chunks.
#include "cuda/bytes_epilogue.cuh"
#include "cuda/warpgroups.cuh"

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)
gemm_int8_wgmma(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                const __grid_constant__ TensorMap map_a_low, const __grid_constant__ TensorMap map_b_low,
                const float *bias, Element *c, unsigned each_a, unsigned each_b, unsigned products, unsigned m, unsigned n,
                unsigned k, unsigned long long ldc, unsigned long long stride_c, unsigned slices, unsigned slice_k,
                const float *row_scale, const float *column_scale) {
    const TensorMap *const a[2] = {&map_a, &map_a_low}, *const b[2] = {&map_b, &map_b_low};
    const Products all = {each_a, each_b, products, m, n, k, c, ldc, stride_c, slices, slice_k};
    all.run(a, b, {row_scale, column_scale, bias});
}
