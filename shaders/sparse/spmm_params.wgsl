// What every kernel of the product of a sparse and a dense matrix knows of the work, and an invocation's place in it.
// LANES neighbouring invocations are a team; each of them has a chunk of columns.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const LANES: u32 = 8u;

struct Params {
    rows: u32,
    cols: u32,
    entries: u32,  // entries, or places
    parts: u32,    // teams, where they share entries
    slice: u32,    // rows of a slice
    begin: u32,    // first place of each row that this dispatch takes
    end: u32,      // the place behind the last one of these
    read_c: u32,   // whether c is read; false for beta = 0, so that a NaN in c does not reach the result
    chunks: u32,   // chunks of a dense row
    blocks: u32,   // teams beside each other that have all chunks of a row
    stride_b: u32, // chunks from one row of b to the next
    stride_c: u32, // chunks from one row of c to the next
    alpha: f32,
    beta: f32,
}
@group(0) @binding(0) var<uniform> params: Params;

// The chunk of the invocation.
var<private> chunk: u32;

// The number of the invocation's team among those of its chunk.
fn join_team(group: vec3<u32>, lane: u32) -> u32 {
    let index = workgroup_index(group);
    chunk = (index % params.blocks) * LANES + lane % LANES;
    return index / params.blocks * (WORKGROUP_SIZE / LANES) + lane / LANES;
}
