// Box blur by tiles of TILE x TILE pixels: a workgroup loads its tile with a halo of RADIUS to workgroup memory,
// 0 where the image ends, and each invocation computes the four pixels of a group from there.
#import image/blur_params
#import image/blur_group

const TILE: u32 = 32u;
const RADIUS: u32 = 1u;
const SIDE: u32 = TILE + 2u * RADIUS;
const WORKGROUP_SIZE: u32 = TILE / PACK * TILE;

var<workgroup> wg_cells: array<u32, SIDE * SIDE>;

fn total(p: vec2<u32>) -> u32 {
    let first = p % TILE;
    var sum = 0u;
    for (var j = 0u; j < 2u * RADIUS + 1u; j++) {
        for (var i = 0u; i < 2u * RADIUS + 1u; i++) {
            sum += wg_cells[(first.y + j) * SIDE + first.x + i];
        }
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn blur_tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.work {
        return;
    }
    let origin = vec2(tile % params.tiles_x, tile / params.tiles_x) * TILE;
    for (var i = lane; i < SIDE * SIDE; i += WORKGROUP_SIZE) {
        // Before the image this wraps to beyond it.
        let p = origin + vec2(i % SIDE, i / SIDE) - vec2(RADIUS);
        var value = 0u;
        if p.x < params.w && p.y < params.h {
            value = byte_at(p.y * params.w + p.x);
        }
        wg_cells[i] = value;
    }
    workgroupBarrier();

    let p = origin + vec2(lane % (TILE / PACK) * PACK, lane / (TILE / PACK));
    if p.x < params.w && p.y < params.h {
        blur_group(p);
    }
}
