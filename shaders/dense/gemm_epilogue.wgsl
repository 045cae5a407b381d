// The epilogue of a matrix product: C = activate(alpha * sum + beta * C + bias).
// With CARRY, k is cut into slices, one dispatch each: all but the last leave their sum in `partial`. With VEC_C
// rows of C are whole vec4s, bound as such. The bias belongs to columns, with ROW_BIAS to rows. C is read only with
// READ_C, never for beta = 0, so that a NaN in it does not reach the result. With LOWER or UPPER only that triangle of
// C is touched. With SCALARS alpha and beta are bound. WEIGHTS: the sums are scores of attention, and C their weights.
// SLOPES: they are products of dy and v, and C slopes.
#import dense/gemm_params
#import activation/none as activation
#if WEIGHTS || SLOPES
#import element/exp4
#endif

// The type of the bias and C.
alias R = f32;

#if SCALARS
const SCALARS_BINDING: u32 = 3u;
@group(0) @binding(SCALARS_BINDING) var<storage, read> scalars: array<f32>;
#endif
const BIAS_BINDING: u32 = 3u;
const C_BINDING: u32 = 3u;
const PARTIAL_BINDING: u32 = 4u;

#if BIAS
@group(0) @binding(BIAS_BINDING) var<storage, read> bias: array<R>;
#endif
#if VEC_C
@group(0) @binding(C_BINDING) var<storage, read_write> c: array<vec4<R>>;
#else
@group(0) @binding(C_BINDING) var<storage, read_write> c: array<R>;
#endif
#if WEIGHTS || SLOPES
const ROWS_BINDING: u32 = 3u;
const WEIGHTS_BINDING: u32 = 4u;

// Of each row of all C: the logarithm, the mean, the first column that counts, and one past the last.
@group(0) @binding(ROWS_BINDING) var<storage, read> row_ends: array<vec4<f32>>;
#endif
#if SLOPES
#if VEC_C
@group(0) @binding(WEIGHTS_BINDING) var<storage, read> weights: array<vec4<f32>>;
#else
@group(0) @binding(WEIGHTS_BINDING) var<storage, read> weights: array<f32>;
#endif
#endif
#if CARRY
@group(0) @binding(PARTIAL_BINDING) var<storage, read_write> partial: array<f32>;
#endif

#if WEIGHTS || SLOPES
// Four elements of a row of all C from column `col` on, of which the first is element `at` of C.
fn by_row(row: u32, at: u32, col: u32, sums: vec4<f32>) -> vec4<f32> {
    let of_row = row_ends[row];
#if SLOPES
    return params.alpha * weights[at] * (sums - of_row.y);
#else
    let column = f32(col) + vec4(0.0, 1.0, 2.0, 3.0);
    let counts = (column >= vec4(of_row.z)) & (column < vec4(of_row.w));
    return select(vec4<f32>(), exp4(params.alpha * sums - of_row.x), counts);
#endif
}
#endif

// The initial sum of an element of C.
fn begin_sum(row: u32, col: u32) -> f32 {
#if CARRY
    if params.first_k > 0u { return partial[base_partial + row * params.n + col]; }
#endif
    return 0.0;
}

#if VEC_C
// Four elements from column `col` on, all of them inside C.
fn finish_four(row: u32, col: u32, sums: vec4<f32>) {
#if CARRY
    if params.end_k < params.k {
        let to = base_partial + row * params.n + col;
        partial[to] = sums.x;
        partial[to + 1u] = sums.y;
        partial[to + 2u] = sums.z;
        partial[to + 3u] = sums.w;
        return;
    }
#endif
    let at = (base_c + row * params.ldc + col) / 4u;
#if WEIGHTS || SLOPES
    c[at] = by_row(base_c / params.ldc + row, at, col, sums);
#else
#if SCALARS
    // With an alpha of 0, a NaN in the factors does not reach the result.
    var value = select(scalars[0] * sums, vec4(0.0), scalars[0] == 0.0);
    if scalars[1] != 0.0 {
        value += scalars[1] * vec4<f32>(c[at]);
    }
#else
    var value = params.alpha * sums;
#if READ_C
    value += params.beta * vec4<f32>(c[at]);
#endif
#endif
#if BIAS
#if ROW_BIAS
    value += f32(bias[row]);
#else
    value += vec4(f32(bias[col]), f32(bias[col + 1u]), f32(bias[col + 2u]), f32(bias[col + 3u]));
#endif
#endif
    c[at] = vec4<R>(vec4(activate(value.x), activate(value.y), activate(value.z), activate(value.w)));
#endif
}
#else
fn finish(row: u32, col: u32, sum: f32) {
#if LOWER
    if col > row { return; }
#endif
#if UPPER
    if col < row { return; }
#endif
#if CARRY
    if params.end_k < params.k {
        partial[base_partial + row * params.n + col] = sum;
        return;
    }
#endif
    let at = base_c + row * params.ldc + col;
#if WEIGHTS || SLOPES
    c[at] = by_row(base_c / params.ldc + row, at, col, vec4(sum)).x;
#else
#if SCALARS
    var value = select(scalars[0] * sum, 0.0, scalars[0] == 0.0);
    if scalars[1] != 0.0 {
        value += scalars[1] * f32(c[at]);
    }
#else
    var value = params.alpha * sum;
#if READ_C
    value += params.beta * f32(c[at]);
#endif
#endif
#if BIAS
#if ROW_BIAS
    value += f32(bias[row]);
#else
    value += f32(bias[col]);
#endif
#endif
    c[at] = R(activate(value));
#endif
}
#endif
