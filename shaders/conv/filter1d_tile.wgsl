// Tiles of a line.
const TILE_X: u32 = 256u;
const TILE_Y: u32 = 1u;
const TILE_Z: u32 = 1u;

fn tile_origin(tile: u32) -> vec3<u32> { return vec3(tile * TILE_X, 0u, 0u); }
