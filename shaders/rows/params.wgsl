// The parameters of the kernels over rows of n elements, each split into `parts`.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const LANES: u32 = 256u; // threads that share a row, or a part of one

struct Params {
    rows: u32,
    n: u32,
    parts: u32,
    part_len: u32, // elements of a part; the last may have fewer
    origin: u32, // offset of the first row in the bindings, in elements
    first: u32, // index of the first row among all rows
    eps: f32,
    pad: f32, // value of elements past the end, neutral for the center
}
@group(0) @binding(0) var<uniform> params: Params;
