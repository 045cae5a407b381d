// What every kernel that converts sparse matrices knows of the work.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const PADDING: u32 = 0xffffffffu;

struct Params {
    count: u32,      // what is made: entries, places or rows, an invocation each where nothing else is said
    segments: u32,   // rows, columns, diagonals or slices that pointers divide entries or places into
    rows: u32,       // rows of the matrix
    width: u32,      // places of a row (ell), rows of a slice (sell)
    window: u32,     // rows that are sorted among themselves
    longest: u32,    // entries of the longest row
    sources: u32,    // entries or places that are read
    minor_bits: u32, // bits of a key below its major index
    begin: u32,      // of what is taken in several dispatches, the first
    end: u32,        // and the one behind the last
}
@group(0) @binding(0) var<uniform> params: Params;

// Values move as bits, so that all of them come through.
alias Value = u32;

fn item(group: vec3<u32>, lane: u32) -> u32 {
    return workgroup_index(group) * WORKGROUP_SIZE + lane;
}
