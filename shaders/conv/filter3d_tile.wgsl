// Tiles of a volume, plane after plane.
const TILE_X: u32 = 8u;
const TILE_Y: u32 = 8u;
const TILE_Z: u32 = 4u;

fn tile_origin(tile: u32) -> vec3<u32> {
    let row = tile / params.tiles_x;
    return vec3(tile % params.tiles_x, row % params.tiles_y, row / params.tiles_y) * vec3(TILE_X, TILE_Y, TILE_Z);
}
