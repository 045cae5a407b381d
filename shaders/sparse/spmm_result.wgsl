// Writes the sum of a row. Rows out of range are padding.
alias Chunk = vec4<f32>;
alias Sum = Chunk;

const RESULT_BINDING: u32 = 5u;
@group(0) @binding(RESULT_BINDING) var<storage, read_write> c: array<Chunk>;

// c = alpha sum + beta c
fn put(row: u32, sum: Chunk) {
    if row >= params.rows {
        return;
    }
    let at = row * params.stride_c + chunk;
    var value = params.alpha * sum;
    if params.read_c != 0u {
        value += params.beta * c[at];
    }
    c[at] = value;
}
