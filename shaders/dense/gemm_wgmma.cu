// C = activation(alpha op(A) op(B) + beta C + bias) by products of warpgroups (Hopper): cuda/warpgroups.cuh.
#include "cuda/epilogue.cuh"
#include "cuda/warpgroups.cuh"

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)
gemm_wgmma(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
           const __grid_constant__ TensorMap map_a_low, const __grid_constant__ TensorMap map_b_low, const Element *bias,
           Element *c, unsigned each_a, unsigned each_b, unsigned products, unsigned m, unsigned n, unsigned k, unsigned long long ldc,
           unsigned long long stride_c, unsigned slices, unsigned slice_k, float alpha, float beta) {
    const TensorMap *const a[2] = {&map_a, &map_a_low}, *const b[2] = {&map_b, &map_b_low};
    Epilogue end;
    end.alpha = alpha;
    end.beta = beta;
    end.bias = bias;
    const Products all = {each_a, each_b, products, m, n, k, c, ldc, stride_c, slices, slice_k};
    all.run(a, b, end);
}
