// Loads and stores of the register-tiled batched product, four elements of a stored row at a time. With VEC_A,
// VEC_B and VEC_C rows and strides are whole numbers of four elements, bound as such.
#import dense/gemm_batched_params

#if VEC_A
@group(0) @binding(1) var<storage, read> a: array<vec4<T>>;
#else
@group(0) @binding(1) var<storage, read> a: array<T>;
#endif
#if VEC_B
@group(0) @binding(2) var<storage, read> b: array<vec4<T>>;
#else
@group(0) @binding(2) var<storage, read> b: array<T>;
#endif
#if VEC_C
@group(0) @binding(3) var<storage, read_write> c: array<vec4<T>>;
#else
@group(0) @binding(3) var<storage, read_write> c: array<T>;
#endif

// Elements of `a` from `at` on; zeros for what is beyond the `left` that the row has.
fn four_a(at: u32, left: u32) -> vec4<f32> {
    var four = vec4<f32>();
#if VEC_A
    if left > 0u {
        four = vec4<f32>(a[at / 4u]);
    }
#else
    if left > 0u {
        four.x = f32(a[at]);
    }
    if left > 1u {
        four.y = f32(a[at + 1u]);
    }
    if left > 2u {
        four.z = f32(a[at + 2u]);
    }
    if left > 3u {
        four.w = f32(a[at + 3u]);
    }
#endif
    return four;
}

// The same of `b`.
fn four_b(at: u32, left: u32) -> vec4<f32> {
    var four = vec4<f32>();
#if VEC_B
    if left > 0u {
        four = vec4<f32>(b[at / 4u]);
    }
#else
    if left > 0u {
        four.x = f32(b[at]);
    }
    if left > 1u {
        four.y = f32(b[at + 1u]);
    }
    if left > 2u {
        four.z = f32(b[at + 2u]);
    }
    if left > 3u {
        four.w = f32(b[at + 3u]);
    }
#endif
    return four;
}

#if VEC_C
#else
fn finish(at: u32, sum: f32) {
    var value = params.alpha * sum;
    if params.read_c != 0u {
        value += params.beta * f32(c[at]);
    }
    c[at] = T(value);
}
#endif

// Sums of a row become elements of the C that begins at `base`, as far as it reaches.
fn end_four(base: u32, row: u32, col: u32, sums: vec4<f32>) {
    if row >= params.m || col >= params.n {
        return;
    }
    let at = base + row * params.n + col;
#if VEC_C
    var value = params.alpha * sums;
    if params.read_c != 0u {
        value += params.beta * vec4<f32>(c[at / 4u]);
    }
    c[at / 4u] = vec4<T>(value);
#else
    finish(at, sums.x);
    if col + 1u < params.n {
        finish(at + 1u, sums.y);
    }
    if col + 2u < params.n {
        finish(at + 2u, sums.z);
    }
    if col + 3u < params.n {
        finish(at + 3u, sums.w);
    }
#endif
}
