// Tiles of an image, row after row.
const TILE_X: u32 = 16u;
const TILE_Y: u32 = 16u;
const TILE_Z: u32 = 1u;

fn tile_origin(tile: u32) -> vec3<u32> {
    return vec3(tile % params.tiles_x * TILE_X, tile / params.tiles_x * TILE_Y, 0u);
}
