// Tiles of 4 x 4 outputs of some images: columns of one matrix for each of 36 places, with channels as rows. Columns
// are padded to whole vec4s. Images come in slices of `images`, all matrices of a slice before those of the next.
#import conv/conv_params

struct Tile {
    channel: u32,
    image: u32, // beyond the last for a column that stands for no tile
    y: u32, // its first output
    x: u32,
    to: u32, // where it lies in the matrix of the first place, and how far it is to the next
    apart: u32,
}

fn tile_of(at: u32, channels: u32) -> Tile {
    let across = (params.q + 3u) / 4u;
    let down = (params.p + 3u) / 4u;
    let all = params.images * down * across;
    let columns = (all + 3u) / 4u * 4u;
    let column = at % columns;
    let slice = at / columns / channels;
    var tile: Tile;
    tile.channel = at / columns % channels;
    tile.image = select(params.all_images, slice * params.images + column / across / down, column < all);
    tile.y = column / across % down * 4u;
    tile.x = column % across * 4u;
    tile.apart = channels * columns;
    tile.to = at + 35u * slice * tile.apart;
    return tile;
}

// Row i of the places of a tile, `place{i}`, to the importer's `transformed`.
#block store_places(i)
    let to{i} = tile.to + {i}u * 6u * tile.apart;
    transformed[to{i}] = place{i}[0];
    transformed[to{i} + tile.apart] = place{i}[1];
    transformed[to{i} + 2u * tile.apart] = place{i}[2];
    transformed[to{i} + 3u * tile.apart] = place{i}[3];
    transformed[to{i} + 4u * tile.apart] = place{i}[4];
    transformed[to{i} + 5u * tile.apart] = place{i}[5];
#end
