// Sums of runs of equal keys, in the order of their entries, `begin` to `end` of each run. One thread per run.
#import sparse/spconvert_params
#import sparse/spconvert_key

@group(0) @binding(1) var<storage, read> starts: array<u32>;
@group(0) @binding(2) var<storage, read> keys: array<Key>;
@group(0) @binding(3) var<storage, read> from_values: array<u32>;
@group(0) @binding(4) var<storage, read_write> idxs: array<u32>;
@group(0) @binding(5) var<storage, read_write> values: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let run = item(group, lane);
    if run >= params.count {
        return;
    }
    let first = min(starts[run], params.sources - 1u);
    let length = min(starts[run + 1u], params.sources) - first;
    // A single entry keeps its bits.
    var sum = from_values[first];
    var nth = 1u;
    if params.begin > 0u {
        sum = values[run];
        nth = params.begin;
    }
    for (; nth < min(length, params.end); nth++) {
        sum = bitcast<u32>(bitcast<f32>(sum) + bitcast<f32>(from_values[first + nth]));
    }
    idxs[run] = minor_of(keys[first]);
    values[run] = sum;
}
