// Reads x for an entry. A column out of range is padding and never multiplies. There is at least one column. Loads do
// not wait for the test, so that many are in flight.
const VECTOR_BINDING: u32 = 4u;
@group(0) @binding(VECTOR_BINDING) var<storage, read> x: array<f32>;

alias Sum = f32;

fn product(value: f32, col: u32) -> f32 {
    let factor = x[min(col, params.cols - 1u)];
    return select(0.0, value * factor, col < params.cols);
}

fn terms4(values: vec4<f32>, cols: vec4<u32>) -> vec4<f32> {
    let at = min(cols, vec4<u32>(params.cols - 1u));
    let factors = vec4<f32>(x[at.x], x[at.y], x[at.z], x[at.w]);
    return select(vec4<f32>(), values * factors, cols < vec4<u32>(params.cols));
}

fn product4(values: vec4<f32>, cols: vec4<u32>) -> f32 {
    let terms = terms4(values, cols);
    return (terms.x + terms.y) + (terms.z + terms.w);
}
