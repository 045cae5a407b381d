// The lengths of runs from where they begin. A fixed number of workgroups strides over the runs, whose number
// only the device knows.
const WORKGROUP_SIZE: u32 = 256u;
const WORKGROUPS: u32 = 64u;

struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> starts: array<u32>;
@group(0) @binding(2) var<storage, read> total: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn count_runs(@builtin(global_invocation_id) id: vec3<u32>) {
    let runs = total[0];
    for (var r = id.x; r < runs; r += WORKGROUPS * WORKGROUP_SIZE) {
        var end = params.n;
        if r + 1u < runs {
            end = starts[r + 1u];
        }
        counts[r] = end - starts[r];
    }
}
