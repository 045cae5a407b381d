// A convolution layer as a product C = A B of each group: the part of a workgroup, and the places of results. Where
// k is split, as always in the gradient with respect to weights, each slice has a slab of its own. IMAGES: columns
// are the outputs of all images, from first_n on, and rows channels; SLICED: k is split there, too.
#import workgroup/index

// Elements of the factors in memory, and the type in which they are multiplied.
alias T = f32;
alias F = f32;

const TILE_M: u32 = 16u;
const TILE_N: u32 = 16u;

struct Params {
    m: u32, n: u32, k: u32, lda: u32, ldb: u32, first_tile: u32, tiles: u32, tiles_m: u32,
    tiles_n: u32, groups: u32, slice_k: u32,
    // Columns of this dispatch: the first among all, and their number.
    first_n: u32, all_n: u32,
    // The first elements of A, B and C, and the distance from group to group.
    a_at: u32, b_at: u32, c_at: u32, group_a: u32, group_b: u32, group_c: u32,
    // For C: outputs of a channel, elements of an image, and of a slab.
    pixels: u32, image_c: u32, slab: u32,
    // For a walked A: from the end of a channel to the same channel of the next image, and a step of TILE_K.
    jump_a: u32, step_pixels: u32, step_a: u32,
    // For a walked B, the plane: its width, and its extents when spread.
    w: u32, bound_h: u32, bound_w: u32, pad_h: u32, pad_w: u32,
    // Columns and k count places in a plane and planes: the numbers across and down, and the distances.
    n_across: u32, n_down: u32, n_plane: u32, n_step_h: u32, n_step_w: u32, k_across: u32,
    k_down: u32, k_plane: u32, k_step_h: u32, k_step_w: u32,
    // A step of TILE_K: across, down, and between planes.
    step_across: u32, step_down: u32, step_plane: u32,
}
@group(0) @binding(0) var<uniform> params: Params;

var<private> base_a: u32;
var<private> base_b: u32;
var<private> base_c: u32;
var<private> group_row: u32;

struct Part {
    // The first row and column of the tile in C.
    origin: vec2<u32>,
    first_k: u32,
    end_k: u32,
    slice: u32,
}

// Rows of tiles first, which share the columns; then groups, then slices.
fn part_of(index: u32) -> Part {
    let tile = params.first_tile + index;
    let column = tile / params.tiles_m;
    let matrix = column / params.tiles_n;
    let group = matrix % params.groups;
    base_a = params.a_at + group * params.group_a;
    base_b = params.b_at + group * params.group_b;
    base_c = params.c_at + group * params.group_c;
    group_row = group * params.m;
    var part: Part;
    part.origin = vec2(tile % params.tiles_m * TILE_M, column % params.tiles_n * TILE_N);
    part.slice = matrix / params.groups;
    part.first_k = part.slice * params.slice_k;
    part.end_k = min(part.first_k + params.slice_k, params.k);
    return part;
}

#import conv/conv_end
const C_BINDING: u32 = 3u;
#if VEC_C
@group(0) @binding(C_BINDING) var<storage, read_write> c: array<vec4<f32>>;
#else
@group(0) @binding(C_BINDING) var<storage, read_write> c: array<f32>;
#endif

fn begin_four(row: u32, column: u32) -> vec4<f32> { return vec4<f32>(); }

fn place(slice: u32, row: u32, column: u32) -> u32 {
#if IMAGES
    let image = (params.first_n + column) / params.pixels;
    let place = base_c + image * params.image_c + row * params.pixels + params.first_n + column - image * params.pixels;
#if SLICED
    return place + slice * params.slab;
#else
    return place;
#endif
#else
    return base_c + slice * params.slab + row * params.n + column;
#endif
}

#if !VEC_C
fn put(slice: u32, row: u32, column: u32, sum: f32) {
    if params.first_n + column < params.all_n { c[place(slice, row, column)] = finished(sum, group_row + row); }
}
#endif

fn end_four(slice: u32, row: u32, column: u32, sums: vec4<f32>) {
    if row >= params.m || column >= params.n { return; }
#if VEC_C
    let channel = group_row + row;
    c[place(slice, row, column) / 4u] =
        vec4(finished(sums.x, channel), finished(sums.y, channel), finished(sums.z, channel), finished(sums.w, channel));
#else
    put(slice, row, column, sums.x);
    put(slice, row, column + 1u, sums.y);
    put(slice, row, column + 2u, sums.z);
    put(slice, row, column + 3u, sums.w);
#endif
}
