// Parameters of every kernel that converts sparse matrices.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const PADDING: u32 = 0xffffffffu;

struct Params {
    count: u32,      // outputs: entries, slots or rows, one per thread unless stated
    segments: u32,   // rows, columns, diagonals or slices delimited by pointers
    rows: u32,       // rows of the matrix
    width: u32,      // slots of a row (ell), rows in a slice (sell)
    window: u32,     // rows in a sort window
    longest: u32,    // entries of the longest row
    sources: u32,    // entries or slots read
    minor_bits: u32, // bits of a key below its major index
    begin: u32,      // first item of this dispatch
    end: u32,        // end of its items
}
@group(0) @binding(0) var<uniform> params: Params;

// Values move as bits.
alias Value = u32;

fn item(group: vec3<u32>, lane: u32) -> u32 {
    return workgroup_index(group) * WORKGROUP_SIZE + lane;
}
