// Reduction whose workgroups combine their totals by an atomic on one word a row, for comparison. Three dispatches: set
// totals to the identity, combine, convert to results. A bounded number of workgroups shares a row, or the atomics on
// one word would take longer than all the rest.
#import element/f32 as element
#import primitives/lift_value as lift
#import op/add as op
#import workgroup/index
#import workgroup/reduce_sequential
#import workgroup/atomic_combine

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    rows: u32,       // rows of the chunk
    row_stride: u32, // elements from one row to the next
    len: u32,        // elements of each row in the chunk
    origin: u32,     // where the chunk begins in the binding
    parts: u32,      // workgroups that share a row
    first: u32,      // total of the first row
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> totals: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn reduce_atomic_begin(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if row < params.rows { atomicStore(&totals[row], bitcast<u32>(op_identity())); }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn reduce_atomic_combine(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    let row = tile / params.parts;
    let part = tile % params.parts;
    if row >= params.rows { return; }
    var acc = op_identity();
    for (var column = part * WORKGROUP_SIZE + lane; column < params.len; column += params.parts * WORKGROUP_SIZE) {
        let at = params.origin + row * params.row_stride + column;
        acc = op_combine(acc, lift(decode(input[at / PACK], at % PACK), column));
    }
    let total = workgroup_reduce(acc, lane);
    if lane == 0u { atomic_combine(params.first + row, total); }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn reduce_atomic_finish(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if row < params.rows { output[row] = bitcast<u32>(finish(bitcast<Acc>(atomicLoad(&totals[row])))); }
}
