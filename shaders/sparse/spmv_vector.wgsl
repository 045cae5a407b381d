// The vector, as an entry sees it: a column beyond the last one is padding, which never multiplies.
const VECTOR_BINDING: u32 = 4u;
@group(0) @binding(VECTOR_BINDING) var<storage, read> x: array<f32>;

fn product(value: f32, col: u32) -> f32 {
    if col < params.cols {
        return value * x[col];
    }
    return 0.0;
}
