// The part of a matrix product that a workgroup of a register-tiled kernel computes. Tiles of C are taken in groups
// of GROUP_M rows of tiles, down the rows first, so that workgroups that run together share both factors in the
// cache. With SPLIT a workgroup computes one slice of k of its tile, all tiles of a slice before those of the next;
// with BATCHED all tiles of a product before those of the next.
#import dense/gemm_params

const GROUP_M: u32 = 8u;

struct Part {
    // The first row and column of the tile in C.
    origin: vec2<u32>,
    first_k: u32,
    end_k: u32,
    slice: u32,
}

fn part_of(index: u32) -> Part {
    let tiles_m = (params.m - 1u) / TILE_M + 1u;
    var tile = params.first_tile + index;
    var part: Part;
#if SPLIT
    let tiles = tiles_m * params.tiles_n;
    part.slice = tile / tiles;
    tile = tile % tiles;
    part.first_k = part.slice * params.slice_k;
    part.end_k = min(part.first_k + params.slice_k, params.k);
#else
#if BATCHED
    let tiles = tiles_m * params.tiles_n;
    begin_matrix(tile / tiles);
    tile = tile % tiles;
#endif
    part.slice = 0u;
    part.first_k = params.first_k;
    part.end_k = params.end_k;
#endif
    let group_tiles = GROUP_M * params.tiles_n;
    let first_m = tile / group_tiles * GROUP_M;
    let rows = min(GROUP_M, tiles_m - first_m);
    let inside = tile % group_tiles;
    part.origin = vec2((first_m + inside % rows) * TILE_M, inside / rows * TILE_N);
    return part;
}
