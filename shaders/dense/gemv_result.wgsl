// The parameters of every kernel of the matrix-vector product, for a chunk of rows of A as stored, and the result:
// y becomes alpha * sum + beta * y, or, if sums are SPLIT, the sum goes to the parts of the whole. With SCALARS alpha
// and beta are bound.
#import workgroup/index
#if F16
enable f16;
#endif

alias T = f32;

const WORKGROUP_SIZE: u32 = 256u;

// Lengths along a row are counted in loads: vec4s with VECTORS, elements without.
struct Params {
    rows: u32,       // rows of the chunk
    cols: u32,       // loads of a row
    ld: u32,         // loads from one row to the next
    origin: u32,     // where the chunk begins in the binding, in loads
    first_row: u32,  // row of A that the chunk begins with
    parts: u32,      // workgroups (or threads) that share a sum
    part_len: u32,   // terms of a part, where parts are contiguous
    first_part: u32, // where the chunk's first part goes among all
    outputs: u32,    // elements of y
    read_y: u32,     // whether y is read; false for beta = 0, so that a NaN in y does not reach the result
    alpha: f32, beta: f32,
}
@group(0) @binding(0) var<uniform> params: Params;

const RESULT_BINDING: u32 = 3u;

#if SPLIT
@group(0) @binding(RESULT_BINDING) var<storage, read_write> partial: array<f32>;

fn put(at: u32, part: u32, sum: f32) { partial[(params.first_part + part) * params.outputs + at] = sum; }
#else
@group(0) @binding(RESULT_BINDING) var<storage, read_write> y: array<T>;

#if SCALARS
const SCALARS_BINDING: u32 = 4u;
@group(0) @binding(SCALARS_BINDING) var<storage, read> scalars: array<f32>;

fn put(at: u32, part: u32, sum: f32) {
    // With an alpha of 0, a NaN in the factors does not reach the result.
    var value = select(scalars[0] * sum, 0.0, scalars[0] == 0.0);
    if scalars[1] != 0.0 { value += scalars[1] * f32(y[at]); }
    y[at] = T(value);
}
#else
fn put(at: u32, part: u32, sum: f32) {
    var value = params.alpha * sum;
    if params.read_y != 0u { value += params.beta * f32(y[at]); }
    y[at] = T(value);
}
#endif
#endif
