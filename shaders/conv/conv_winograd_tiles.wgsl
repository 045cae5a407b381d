// Tiles of 4 x 4 outputs of all images, padded to whole vectors: what number `at` among channels and tiles is.
#import conv/conv_params

struct Tile {
    channel: u32,
    column: u32, // number of the tile
    image: u32,
    y: u32, // its first output
    x: u32,
}

fn tiles_across() -> u32 { return (params.q + 3u) / 4u; }
fn tiles_down() -> u32 { return (params.p + 3u) / 4u; }
fn columns() -> u32 { return (params.images * tiles_down() * tiles_across() + 3u) / 4u * 4u; }

fn tile_of(at: u32) -> Tile {
    var tile: Tile;
    tile.channel = at / columns();
    tile.column = at % columns();
    tile.image = tile.column / tiles_across() / tiles_down();
    tile.y = tile.column / tiles_across() % tiles_down() * 4u;
    tile.x = tile.column % tiles_across() * 4u;
    return tile;
}
