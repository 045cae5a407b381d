// What every kernel of the product of a sparse matrix and a vector knows of the work.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    rows: u32,
    cols: u32,
    entries: u32, // entries, or places
    parts: u32,   // workgroups, slices or diagonals
    slice: u32,   // rows of a slice
    begin: u32,   // first place of each row (column) that this dispatch takes
    end: u32,     // the place behind the last one of these
    read_y: u32,  // whether y is read; false for beta = 0, so that a NaN in y does not reach the result
    alpha: f32,
    beta: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
