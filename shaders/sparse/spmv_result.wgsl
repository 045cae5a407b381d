// Writes the sum of a row. Rows out of range are padding.
const RESULT_BINDING: u32 = 5u;
@group(0) @binding(RESULT_BINDING) var<storage, read_write> y: array<f32>;

// y = alpha sum + beta y
fn put(row: u32, sum: f32) {
    if row >= params.rows {
        return;
    }
    var value = params.alpha * sum;
    if params.read_y != 0u {
        value += params.beta * y[row];
    }
    y[row] = value;
}
