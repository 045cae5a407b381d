// What the kernels over rows know of the work: rows of n elements, each taken in `parts`.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const LANES: u32 = 256u; // that share a row, or a part of one

struct Params {
    rows: u32, n: u32, parts: u32,
    part_len: u32, // elements of a part, of which the last may have fewer
    origin: u32, // where the first row begins in the bindings, in elements
    first: u32, // its number among all rows
    eps: f32,
    pad: f32, // what stands for an element beyond the end: it changes no centre
}
@group(0) @binding(0) var<uniform> params: Params;
