// Conjugate gradients, preconditioner: one element of z = M^-1 r.
#if JACOBI
const INVERSE_BINDING: u32 = 7u;
@group(0) @binding(INVERSE_BINDING) var<storage, read> inverse: array<f32>;

fn preconditioned(residual: f32, i: u32) -> f32 {
    return inverse[i] * residual;
}
#else
fn preconditioned(residual: f32, i: u32) -> f32 {
    return residual;
}
#endif
