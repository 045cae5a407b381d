// The factors of a matrix product in memory: elements of op(A) (m x k) and op(B) (k x n). With VEC_A and VEC_B rows
// are whole vec4s, bound as such.
#import dense/gemm_params

#if VEC_A
@group(0) @binding(1) var<storage, read> a: array<vec4<T>>;
#else
@group(0) @binding(1) var<storage, read> a: array<T>;

fn load_a(row: u32, i: u32) -> F {
#if TRANS_A
    return F(a[base_a + i * params.lda + row]);
#else
    return F(a[base_a + row * params.lda + i]);
#endif
}
#endif

#if VEC_B
@group(0) @binding(2) var<storage, read> b: array<vec4<T>>;
#else
@group(0) @binding(2) var<storage, read> b: array<T>;

fn load_b(i: u32, col: u32) -> F {
#if TRANS_B
    return F(b[base_b + col * params.ldb + i]);
#else
    return F(b[base_b + i * params.ldb + col]);
#endif
}
#endif
