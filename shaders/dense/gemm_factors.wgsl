// The factors of a matrix product as they lie in memory: elements of op(A) (m x k) and op(B) (k x n).
#import dense/gemm_params

@group(0) @binding(1) var<storage, read> a: array<T>;
@group(0) @binding(2) var<storage, read> b: array<T>;

fn load_a(row: u32, i: u32) -> f32 {
#if TRANS_A
    return f32(a[i * params.lda + row]);
#else
    return f32(a[row * params.lda + i]);
#endif
}

fn load_b(i: u32, col: u32) -> f32 {
#if TRANS_B
    return f32(b[col * params.ldb + i]);
#else
    return f32(b[i * params.ldb + col]);
#endif
}
