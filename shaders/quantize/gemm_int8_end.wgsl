// The epilogue of a product of bytes: C = sum, or with SCALED activate(a_scale[row] * b_scale[column] * sum +
// bias[column]). With VEC_C rows of C are whole vec4s, bound as such.
#import dense/gemm_params
#import activation/none as activation

// The type of C.
alias R = i32;

const C_BINDING: u32 = 3u;

#if SCALED
@group(0) @binding(3) var<storage, read> a_scale: array<f32>;
@group(0) @binding(4) var<storage, read> b_scale: array<f32>;
#endif
#if BIAS
@group(0) @binding(5) var<storage, read> bias: array<f32>;
#endif
#if VEC_C
@group(0) @binding(C_BINDING) var<storage, read_write> c: array<vec4<R>>;
#else
@group(0) @binding(C_BINDING) var<storage, read_write> c: array<R>;
#endif

fn begin_sum(row: u32, col: u32) -> S { return 0; }

#if SCALED
fn result(row: u32, col: u32, sum: S) -> R {
    var value = a_scale[row] * b_scale[col] * f32(sum);
#if BIAS
    value += bias[col];
#endif
    return R(activate(value));
}
#else
fn result(row: u32, col: u32, sum: S) -> R { return sum; }
#endif

#if VEC_C
// Four elements from column `col` on, all of them inside C.
fn finish_four(row: u32, col: u32, sums: vec4<S>) {
    c[(row * params.ldc + col) / 4u] = vec4(
        result(row, col, sums.x),
        result(row, col + 1u, sums.y),
        result(row, col + 2u, sums.z),
        result(row, col + 3u, sums.w),
    );
}
#else
fn finish(row: u32, col: u32, sum: S) { c[row * params.ldc + col] = result(row, col, sum); }
#endif
