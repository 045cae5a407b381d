// The length of the longest run of equal keys; `sizes` holds the number of runs, then 0. One thread per run.
#import sparse/spconvert_params

@group(0) @binding(1) var<storage, read> starts: array<u32>;
@group(0) @binding(2) var<storage, read_write> sizes: array<atomic<u32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_longest_run(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let run = item(group, lane);
    if run < min(atomicLoad(&sizes[0]), params.count) {
        let length = starts[run + 1u] - starts[run];
        // Most runs have one entry. Skipping them avoids contention on the word.
        if length > atomicLoad(&sizes[1]) {
            atomicMax(&sizes[1], length);
        }
    }
}
