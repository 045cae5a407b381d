// Writes how many keys lie in long segments, and the workgroups of the dispatches that sort these keys. One thread
// writes those of one dispatch: `each` keys a workgroup or, if that is 0, as many as the table says if there are keys.
#import workgroup/fold

const WORKGROUP_SIZE: u32 = 32u;

struct Params { tiles: u32, dispatches: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> sums: array<u32>;
@group(0) @binding(2) var<storage, read> launches: array<vec2<u32>>; // workgroups, and each
@group(0) @binding(3) var<storage, read_write> length: array<u32>;
@group(0) @binding(4) var<storage, read_write> workgroups: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn segmented_sort_launch(@builtin(local_invocation_index) lane: u32) {
    let count = sums[params.tiles];
    if lane == 0u { length[0] = count; }
    for (var i = lane; i < params.dispatches; i += WORKGROUP_SIZE) {
        let launch = launches[i];
        let items = select(select(0u, launch.x, count > 0u), count, launch.y > 0u);
        let folded = folded_workgroups(items, launch.y);
        workgroups[3u * i] = folded.x;
        workgroups[3u * i + 1u] = folded.y;
        workgroups[3u * i + 2u] = folded.z;
    }
}
