// The parameters of every kernel of the matrix product. A dispatch computes `tiles` tiles of C from first_tile on,
// counted along rows of tiles, and the slice first_k to end_k of k.
#import workgroup/index
#if F16
enable f16;
#endif

alias T = f32;
// The types in which factors are multiplied and summed.
alias F = f32;
alias S = f32;

// Sides of the tile of C that one workgroup computes.
const TILE_M: u32 = 16u;
const TILE_N: u32 = 16u;

struct Params {
    m: u32, n: u32, k: u32, lda: u32, ldb: u32, ldc: u32, first_tile: u32, tiles: u32, tiles_n: u32,
    first_k: u32, end_k: u32,
    // Steps of k of a slice, if k is split over workgroups.
    slice_k: u32,
    // Slices of k whose sums are added.
    slices: u32, alpha: f32, beta: f32,
    // Products of a batch, and elements from one matrix to the next.
    batch: u32, stride_a: u32, stride_b: u32, stride_c: u32,
}
@group(0) @binding(0) var<uniform> params: Params;

// The first elements of A, B and C in their operands, and of the carried sums: with BATCHED, those of one product
// of a batch.
#if BATCHED
var<private> base_a: u32;
var<private> base_b: u32;
var<private> base_c: u32;
#if CARRY
var<private> base_partial: u32;
#endif

fn begin_matrix(matrix: u32) {
    base_a = matrix * params.stride_a;
    base_b = matrix * params.stride_b;
    base_c = matrix * params.stride_c;
#if CARRY
    base_partial = matrix * params.m * params.n;
#endif
}
#else
const base_a: u32 = 0u;
const base_b: u32 = 0u;
const base_c: u32 = 0u;
const base_partial: u32 = 0u;
#endif

// The first row and column in C of the tile of workgroup number `index` of this dispatch.
fn tile_origin(index: u32) -> vec2<u32> {
    let tile = params.first_tile + index;
    return vec2(tile / params.tiles_n * TILE_M, tile % params.tiles_n * TILE_N);
}
