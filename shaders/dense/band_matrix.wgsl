// A matrix of which elements near the diagonal are stored: by rows, as the rows of a band, or a triangle without gaps
// (PACKED; the upper one with UPPER). UPDATES writes it.
struct Params {
    outputs: u32, terms: u32,           // ends of the rows and columns of op(A) that are taken
    first_output: u32, first_term: u32, // and their beginnings
    // Which numbers a column may have above that of its row, where the element is stored in its own row, and where
    // it is stored at the mirrored place.
    row_begin: i32, row_end: i32, column_begin: i32, column_end: i32,
    origin: u32, pitch: u32,            // the first element of row 0, and from one row to the next, or the side
    reach: u32,                         // elements beside the diagonal of a triangle
    forward: u32, unit: u32,
    parts: u32,                         // workgroups that share a sum
    read_y: u32, alpha: f32, beta: f32,
}
@group(0) @binding(0) var<uniform> params: Params;

const MATRIX_BINDING: u32 = 1u;

#if UPDATES
@group(0) @binding(MATRIX_BINDING) var<storage, read_write> a: array<f32>;
#else
@group(0) @binding(MATRIX_BINDING) var<storage, read> a: array<f32>;
#endif

// Where element (p, q) is stored.
fn at(p: u32, q: u32) -> u32 {
#if PACKED
#if UPPER
    return p * (2u * params.pitch - p - 1u) / 2u + q;
#else
    return p * (p + 1u) / 2u + q;
#endif
#else
    return params.origin + p * params.pitch + q;
#endif
}
