// The bandwidth, and the sides of the diagonal that hold entries. A workgroup takes a tile of entries and adds its
// result to memory once.
#import sparse/spconvert_params
#import sparse/spconvert_measures
#import sparse/spconvert_segment

@group(0) @binding(3) var<storage, read> col_idxs: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_measure_entries(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let begin = workgroup_index(group) * TILE;
    if begin >= params.count {
        return;
    }
    clear_measures(lane);
    find_bounds(lane, begin);
    var farthest = 0u;
    var sides = 0u;
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) {
        let at = begin + i * WORKGROUP_SIZE + lane;
        if at < params.count {
            let row = segment_of(at);
            let col = col_idxs[at];
            farthest = max(farthest, max(row, col) - min(row, col));
            sides |= u32(col > row) | (u32(col < row) << 1u);
        }
    }
    atomicMax(&wg_measures[BANDWIDTH], farthest);
    atomicOr(&wg_measures[SIDES], sides);
    workgroupBarrier();
    if lane == 0u {
        atomicMax(&measures[BANDWIDTH], atomicLoad(&wg_measures[BANDWIDTH]));
        atomicOr(&measures[SIDES], atomicLoad(&wg_measures[SIDES]));
    }
}
