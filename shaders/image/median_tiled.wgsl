// Median filter by tiles of TILE x TILE elements: one workgroup loads the keys of its tile and of the RADIUS pixels
// around it into workgroup memory. Each thread finds the medians of four elements below one another there, by binary
// search, so that it reads each key once for all four, and then writes four elements of a row.
#import conv/lines_params
#import conv/lines_floats_in as source
#import conv/lines_floats_out as target
#import conv/lines_row
#import image/median_keys
#import image/median_search

const TILE: u32 = 32u;
const RADIUS: u32 = 1u;
const STEP: u32 = 1u;
const HALO: u32 = RADIUS * STEP;
const GROUPS: u32 = (TILE + 2u * HALO + 3u) / 4u; // groups of four keys in a row
const WIDTH: u32 = 4u * GROUPS;
const HEIGHT: u32 = TILE + 2u * RADIUS;
const WORKGROUP_SIZE: u32 = TILE / 4u * TILE;

var<workgroup> wg_keys: array<u32, WIDTH * HEIGHT>;

fn below(place: vec3<u32>, next: Keys, size: u32) -> Keys {
    var count = Keys();
    for (var tap = 0u; tap < size; tap++) {
        var at = place.y * WIDTH + place.x + tap * STEP;
        var keys = Keys(0u, wg_keys[at], wg_keys[at + WIDTH], wg_keys[at + 2u * WIDTH]);
        at += 3u * WIDTH;
        for (var j = 0u; j < size; j++) {
            keys = Keys(keys.yzw, wg_keys[at]);
            count += select(Keys(), Keys(1u), keys < next);
            at += WIDTH;
        }
    }
    return count;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn median_tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
    let row = tile / params.tiles_x;
    let origin = vec3(vec2(tile % params.tiles_x, row % params.tiles_y) * TILE, row / params.tiles_y);
    for (var i = lane; i < GROUPS * HEIGHT; i += WORKGROUP_SIZE) {
        let y = i32(origin.y + i / GROUPS) - i32(RADIUS);
        let keys = row_keys(origin, y, i32(origin.x + i % GROUPS * 4u) - i32(HALO));
        wg_keys[4u * i] = keys.x;
        wg_keys[4u * i + 1u] = keys.y;
        wg_keys[4u * i + 2u] = keys.z;
        wg_keys[4u * i + 3u] = keys.w;
    }
    workgroupBarrier();

    let column = vec3(lane % TILE, lane / TILE * 4u, 0u);
    let found = medians(column);
    workgroupBarrier();

    let top = column.y * TILE + column.x;
    wg_keys[top] = found.x;
    wg_keys[top + TILE] = found.y;
    wg_keys[top + 2u * TILE] = found.z;
    wg_keys[top + 3u * TILE] = found.w;
    workgroupBarrier();

    let first = 4u * lane;
    let p = origin + vec3(first % TILE, first / TILE, 0u);
    if p.x < params.w && p.y < params.h {
        let keys = Keys(wg_keys[first], wg_keys[first + 1u], wg_keys[first + 2u], wg_keys[first + 3u]);
        put_group(p, elements_of(keys));
    }
}
