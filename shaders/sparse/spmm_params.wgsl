// Parameters of every kernel of sparse times dense, and a thread's place: LANES neighbouring threads are a team, and
// each has a chunk of columns.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const LANES: u32 = 8u;

struct Params {
    rows: u32,
    cols: u32,
    entries: u32,  // entries, or slots
    parts: u32,    // teams, if they share entries
    slice: u32,    // rows in a slice
    begin: u32,    // first slot of each row in this dispatch
    end: u32,      // end of its slots
    read_c: u32,   // whether c is read; 0 if beta = 0, so that a NaN in c does not matter
    chunks: u32,   // chunks of a dense row
    blocks: u32,   // teams for all chunks of a row
    stride_b: u32, // chunks from one row of b to the next
    stride_c: u32, // chunks from one row of c to the next
    alpha: f32,
    beta: f32,
}
@group(0) @binding(0) var<uniform> params: Params;

// The chunk of the thread.
var<private> chunk: u32;

// The index of the thread's team among those of its chunk.
fn join_team(group: vec3<u32>, lane: u32) -> u32 {
    let index = workgroup_index(group);
    chunk = (index % params.blocks) * LANES + lane % LANES;
    return index / params.blocks * (WORKGROUP_SIZE / LANES) + lane / LANES;
}
