// Parameters of every kernel of sparse times vector.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    rows: u32,
    cols: u32,
    entries: u32, // entries, or slots
    parts: u32,   // workgroups, slices or diagonals
    slice: u32,   // rows in a slice
    begin: u32,   // first slot of each row (column) in this dispatch
    end: u32,     // end of its slots
    read_y: u32,  // whether y is read; 0 if beta = 0, so that a NaN in y does not matter
    alpha: f32,
    beta: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
