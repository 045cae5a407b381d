// Reads a chunk of B for an entry. A column out of range is padding and never multiplies. There is at least one column.
// Loads do not wait for the test, so that many are in flight.
const DENSE_BINDING: u32 = 4u;
@group(0) @binding(DENSE_BINDING) var<storage, read> b: array<Chunk>;

fn product(value: f32, col: u32) -> Chunk {
    let factor = b[min(col, params.cols - 1u) * params.stride_b + chunk];
    return select(Chunk(), value * factor, col < params.cols);
}

fn product4(values: vec4<f32>, cols: vec4<u32>) -> Chunk {
    let first = product(values.x, cols.x) + product(values.y, cols.y);
    return first + (product(values.z, cols.z) + product(values.w, cols.w));
}
