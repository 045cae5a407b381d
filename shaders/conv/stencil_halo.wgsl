// A tile with its halo in workgroup memory.
const IN_X: u32 = TILE_X + 2u * RADIUS_X;
const IN_Y: u32 = TILE_Y + 2u * RADIUS_Y;
const IN_Z: u32 = TILE_Z + 2u * RADIUS_Z;
const CELLS: u32 = IN_X * IN_Y * IN_Z;

var<workgroup> wg_cells: array<f32, CELLS>;

// Loads cell `i` of the tile whose outputs begin at `origin`.
fn load_cell(i: u32, origin: vec3<u32>) {
    wg_cells[i] = at(vec3<i32>(origin + cell(i, IN_X, IN_Y)) - vec3<i32>(RADIUS));
}

fn result(p: vec3<u32>) -> f32 {
    let local = p % vec3(TILE_X, TILE_Y, TILE_Z);
    var sum = 0.0;
    var tap = 0u;
    for (var z = local.z; z < local.z + FILTER_Z; z++) {
        for (var y = local.y; y < local.y + FILTER_Y; y++) {
            let first = (z * IN_Y + y) * IN_X + local.x;
            for (var x = 0u; x < FILTER_X; x++) {
                sum = fma(weight(tap), wg_cells[first + x], sum);
                tap++;
            }
        }
    }
    return sum;
}
