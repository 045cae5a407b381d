// Arithmetic of complex numbers: pairs of a real and an imaginary part.
fn complex_product(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
fn conjugate(a: vec2<f32>) -> vec2<f32> { return vec2<f32>(a.x, -a.y); }
