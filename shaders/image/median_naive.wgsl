// Median filter: one thread finds the medians of a group of four elements by binary search, and reads their windows
// from memory in each round.
#import conv/lines_params
#import conv/lines_floats_in as source
#import conv/lines_floats_out as target
#import conv/lines_row
#import image/median_keys
#import image/median_search

const WORKGROUP_SIZE: u32 = 256u;

fn below(p: vec3<u32>, next: Keys, size: u32) -> Keys {
    var count = Keys();
    for (var j = 0u; j < size; j++) {
        let y = i32(p.y + j) - i32(params.radius_y);
        for (var tap = 0u; tap < size; tap++) {
            let keys = row_keys(p, y, i32(p.x + tap * params.step) - i32(params.radius_x * params.step));
            count += select(Keys(), Keys(1u), keys < next);
        }
    }
    return count;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn median_naive(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.tiles { return; }
    let p = vec3(i % params.groups * 4u, i / params.groups % params.h, i / params.groups / params.h);
    put_group(p, elements_of(medians(p)));
}
