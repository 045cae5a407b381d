// Shared by all reduction kernels: element, monoid, and the chunk of the input that a dispatch covers.
#import dispatch/extent
#import primitives/reduce_elements
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    rows: u32,        // rows of the chunk
    row_stride: u32,  // elements from one row to the next
    len: u32,         // elements of each row in the chunk
    column: u32,      // column of the first of them
    origin: u32,      // where the chunk begins in the binding
    parts: u32,       // workgroups that share a row of the chunk
    part_len: u32,    // elements of a part, where parts are contiguous
    part_stride: u32, // results from one row to the next
    first: u32,       // where the first result goes
}
@group(0) @binding(0) var<uniform> params: Params;

#put extent(params.len, params.column)
