// The order in which workgroups take tiles: BAND columns of tiles together, row after row of them, so that
// those that run at the same time read and write neighbouring memory.
const BAND: u32 = 16u;

struct Tile {
    matrix: u32,
    row: u32, // row and column among the tiles of the input
    col: u32,
}

fn tile_of(index: u32) -> Tile {
    let tiles = params.tiles_m * params.tiles_n;
    let place = index % tiles;
    let band = place / (BAND * params.tiles_m);
    let width = min(BAND, params.tiles_n - band * BAND);
    let inside = place - band * BAND * params.tiles_m;
    return Tile(index / tiles, inside / width, band * BAND + inside % width);
}
