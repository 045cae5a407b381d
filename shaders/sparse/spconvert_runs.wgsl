// The start of each run of equal keys, from the number of heads before each key, and the number of runs. One thread per
// key, and one that ends the last run.
#import sparse/spconvert_params

@group(0) @binding(1) var<storage, read> ranks: array<u32>;
@group(0) @binding(2) var<storage, read_write> starts: array<u32>;
@group(0) @binding(3) var<storage, read_write> sizes: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_runs(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = item(group, lane);
    if at > params.count {
        return;
    }
    if at == params.count {
        starts[ranks[at]] = at;
        sizes[0] = ranks[at];
    } else if ranks[at + 1u] > ranks[at] {
        starts[ranks[at]] = at;
    }
}
