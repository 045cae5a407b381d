// A filter by tiles: a workgroup is as large as its tile (u8 and f16: a quarter), which it loads to
// workgroup memory without the halo. Elements beyond the tile are read from memory, where caches have them for a
// neighbour.
#import conv/stencil_params
#import conv/filter2d_tile as tile
#import conv/stencil_floats as element
#import conv/stencil_at

const TILE: vec3<u32> = vec3(TILE_X, TILE_Y, TILE_Z);
const CELLS: u32 = TILE_X * TILE_Y * TILE_Z;
const WORKGROUP_SIZE: u32 = CELLS / PACK;

var<workgroup> wg_cells: array<f32, CELLS>;

fn result(p: vec3<u32>) -> f32 {
    let local = p % TILE;
    let origin = vec3<i32>(p - local);
    var sum = 0.0;
    var tap = 0u;
    for (var z = 0u; z < FILTER_Z; z++) {
        for (var y = 0u; y < FILTER_Y; y++) {
            for (var x = 0u; x < FILTER_X; x++) {
                // Below the tile this wraps to more than any side of it.
                let c = local + vec3(x, y, z) - RADIUS;
                var value: f32;
                if all(c < TILE) {
                    value = wg_cells[(c.z * TILE_Y + c.y) * TILE_X + c.x];
                } else {
                    value = at(origin + vec3<i32>(c));
                }
                sum = fma(weight(tap), value, sum);
                tap++;
            }
        }
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn stencil_strategy3(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
    let origin = tile_origin(tile);
    for (var i = lane; i < CELLS; i += WORKGROUP_SIZE) {
        wg_cells[i] = at(vec3<i32>(origin + cell(i, TILE_X, TILE_Y)));
    }
    workgroupBarrier();

    let p = origin + cell(lane, TILE_X / PACK, TILE_Y) * vec3(PACK, 1u, 1u);
    if all(p < extents()) { emit(p); }
}
