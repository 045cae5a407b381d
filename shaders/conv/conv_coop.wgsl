// A convolution layer or one of its gradients on cooperative matrices, with factors of f16 and sums of f32: implicit
// GEMM (cuDNN, Chetlur et al., 2014). One factor is a matrix, the other is gathered from the windows of x by pieces of
// PIECE channels of a cell. Both were packed so that channels lie next to each other, in whole pieces.
// A workgroup computes TILE_M x TILE_N of the product of a group, TILE_K steps of k at a time; each of its subgroups
// PART_M x PART_N. Requires f16 and cooperative matrices of f16 with sums of f32.

// Of a layer k counts the cells of a window, and the channels of each; the matrix has the weights. With WINDOWS_FIRST
// rows are the outputs of all images and columns filters, otherwise the other way round. With GRADIENTS k counts the
// outputs of all images, rows are filters, and columns the cells of a window and the channels of each; the matrix is
// dy. As in gemm_coop, each block of C is a variable of its own, and the loads of the next step are in flight while
// this one is multiplied. STRIDED: the outputs are not neighbours in the result. Places advance along k by additions,
// without a division. Beyond k both factors are 0.
#import workgroup/index
#import conv/conv_end
#import dense/coop_blocks
enable f16;
enable wgpu_cooperative_matrix;

const TILE_M: u32 = 16u;
const TILE_N: u32 = 16u;

// Which factor of the product is gathered. Lines of a tile in workgroup memory run along k, of gradients across it.
#if WINDOWS_FIRST
const gathered_a: u32 = 1u;
const gathered_b: u32 = 0u;
#else
const gathered_a: u32 = 0u;
const gathered_b: u32 = 1u;
#endif
#if GRADIENTS
const lines_a: u32 = TILE_K;
const across_a: u32 = TILE_M;
const lines_b: u32 = TILE_K;
const across_b: u32 = TILE_N;
#else
const lines_a: u32 = TILE_M;
const across_a: u32 = TILE_K;
const lines_b: u32 = TILE_N;
const across_b: u32 = TILE_K;
#endif
// Elements from line to line in workgroup memory, pieces of a line, lines from one load of a thread to the next, and
// loads of a thread.
#for x in a, b
const pitch_{x}: u32 = across_{x} + PAD;
const pieces_{x}: u32 = across_{x} / PIECE;
const apart_{x}: u32 = INVOCATIONS / pieces_{x};
const loads_{x}: u32 = lines_{x} * pieces_{x} / INVOCATIONS;
#if WIDTH == 4
var<workgroup> wg_{x}: array<vec4<f16>, lines_{x} * pitch_{x} / 4u>;
#else
var<workgroup> wg_{x}: array<f16, lines_{x} * pitch_{x}>;
#endif
#end
// A block for each subgroup.
var<workgroup> wg_end: array<f32, TEAMS_M * TEAMS_N * BLOCK_SIDE * BLOCK_SIDE>;

// Cells of x are spread this far apart, with zeros between them.
const UP_H: u32 = 1u;
const UP_W: u32 = 1u;

struct Params {
    m: u32, n: u32, k: u32, first_tile: u32, tiles: u32, tiles_m: u32, tiles_n: u32, groups: u32, slice_k: u32,
    // The matrix: its first element, elements from line to line and from group to group, and those of a line that
    // pieces are taken of.
    matrix_at: u32, ld: u32, group_matrix: u32, line: u32,
    // x: elements of a pixel, from group to group, and of an image; its extents, spread.
    x_at: u32, apart: u32, group_x: u32, image_x: u32, w: u32, bound_h: u32, bound_w: u32, pad_h: u32, pad_w: u32,
    // Outputs across, outputs down, their number, and windows: distances, cells, and elements of a cell.
    q: u32, p: u32, pixels: u32, stride_h: u32, stride_w: u32, s: u32, channels: u32, dilation_h: u32,
    dilation_w: u32,
    // A step of TILE_K: channels, cells across and down; of gradients elements of images, outputs across and down.
    step_at: u32, step_across: u32, step_down: u32,
    // The result: its first element, elements of an image or a row, from group to group, and of a slab.
    c_at: u32, image_c: u32, group_c: u32, slab: u32,
    // With STRIDED: from channel to channel, from row to row, and from output to output.
    channel_c: u32, row_c: u32, column_c: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> matrix: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> x: array<vec4<f16>>;
const C_BINDING: u32 = 3u;
#if VEC_C
@group(0) @binding(C_BINDING) var<storage, read_write> c: array<vec4<R>>;
#else
@group(0) @binding(C_BINDING) var<storage, read_write> c: array<R>;
#endif

// Rows that no x has.
const BEYOND: u32 = 0x40000000u;

var<private> base_matrix: u32;
var<private> base_x: u32;
var<private> base_c: u32;
var<private> group_channel: u32;

struct Part {
    // The first row and column of the tile in C.
    origin: vec2<u32>,
    first_k: u32,
    end_k: u32,
}

// Tiles of filters first, which share the windows; then groups, then slices.
fn part_of(index: u32) -> Part {
    let tile = params.first_tile + index;
    let of_group = tile / (params.tiles_m * params.tiles_n);
    let inside = tile % (params.tiles_m * params.tiles_n);
    let group = of_group % params.groups;
    let slice = of_group / params.groups;
    base_matrix = params.matrix_at + group * params.group_matrix;
    base_x = params.x_at + group * params.group_x;
    base_c = params.c_at + group * params.group_c + slice * params.slab;
    var part: Part;
#if WINDOWS_FIRST
    group_channel = group * params.n;
    part.origin = vec2(inside / params.tiles_n * TILE_M, inside % params.tiles_n * TILE_N);
#else
    group_channel = group * params.m;
    part.origin = vec2(inside % params.tiles_m * TILE_M, inside / params.tiles_m * TILE_N);
#endif
    part.first_k = slice * params.slice_k;
    part.end_k = min(part.first_k + params.slice_k, params.k);
    return part;
}

#if !GRADIENTS
fn channel_of(row: u32, col: u32) -> u32 {
#if WINDOWS_FIRST
    return group_channel + col;
#else
    return group_channel + row;
#endif
}
#endif

fn place(row: u32, col: u32) -> u32 {
#if STRIDED
#if WINDOWS_FIRST
    let pixel = row;
    let channel = col;
#else
    let pixel = col;
    let channel = row;
#endif
    let image = pixel / params.pixels;
    let inside = pixel - image * params.pixels;
    return base_c + image * params.image_c + channel * params.channel_c + inside / params.q * params.row_c +
        inside % params.q * params.column_c;
#endif
#if !STRIDED && (WINDOWS_FIRST || GRADIENTS)
    return base_c + row * params.image_c + col;
#endif
#if !STRIDED && !WINDOWS_FIRST && !GRADIENTS
    let image = col / params.pixels;
    return base_c + image * params.image_c + row * params.pixels + col - image * params.pixels;
#endif
}

#if GRADIENTS
fn ended(sum: f32, row: u32, col: u32) -> R { return R(sum); }
#else
fn ended(sum: f32, row: u32, col: u32) -> R { return R(finished(sum, channel_of(row, col))); }
#endif

// Four elements of a row.
fn end_four(row: u32, col: u32, sums: vec4<f32>) {
    if row >= params.m || col >= params.n { return; }
#if VEC_C
    c[place(row, col) / 4u] = vec4(
        ended(sums.x, row, col),
        ended(sums.y, row, col + 1u),
        ended(sums.z, row, col + 2u),
        ended(sums.w, row, col + 3u),
    );
#else
    c[place(row, col)] = ended(sums.x, row, col);
    if col + 1u < params.n { c[place(row, col + 1u)] = ended(sums.y, row, col + 1u); }
    if col + 2u < params.n { c[place(row, col + 2u)] = ended(sums.z, row, col + 2u); }
    if col + 3u < params.n { c[place(row, col + 3u)] = ended(sums.w, row, col + 3u); }
#endif
}

// The block of C at `row` and `col`, whose sums begin at `begin`.
fn end_block(row: u32, col: u32, begin: u32, lane: u32) {
    for (var i = lane; i < BLOCK_SIDE * BLOCK_SIDE / 4u; i += LANES) {
        let at = begin + 4u * i;
        let sums = vec4(wg_end[at], wg_end[at + 1u], wg_end[at + 2u], wg_end[at + 3u]);
        end_four(row + i / (BLOCK_SIDE / 4u), col + i % (BLOCK_SIDE / 4u) * 4u, sums);
    }
}

@compute @workgroup_size(INVOCATIONS)
fn conv_coop(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    // The same as workgroup_index, written out: see gemm_coop.
    let index = workgroup.x + FOLD * (workgroup.y + FOLD * workgroup.z);
    if index >= params.tiles {
        return;
    }
    let part = part_of(index);
    let team = local / LANES;
    let team_row = team / TEAMS_N * PART_M;
    let team_col = team % TEAMS_N * PART_N;
#for r in BLOCKS_M
#for q in BLOCKS_N
    var c_{r}_{q} = coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f32, C>();
#end
#end

    // A thread loads one piece of several lines of each factor. All of them stand at one k of a layer; of gradients at
    // one place across.
#block places(x, axis, count)
    let {x}_line = local / pieces_{x};
    let {x}_across = local % pieces_{x} * PIECE;
    let {x}_to = ({x}_line * pitch_{x} + {x}_across) / WIDTH;
#for j in loads_{x}
    var {x}_next_{j}_0: vec4<f16>;
    var {x}_next_{j}_1: vec4<f16>;
#end
#if GRADIENTS
    var {x}_k = part.first_k + {x}_line;
#else
    var {x}_k = part.first_k + {x}_across;
#endif
#if !GRADIENTS && gathered_{x} == 0
    var {x}_from = (base_matrix + {x}_k) / 4u;
#for j in loads_{x}
    let {x}_row_{j} = min(part.origin.{axis} + {x}_line + {j}u * apart_{x}, params.{count} - 1u) * (params.ld / 4u);
#end
#endif
#if GRADIENTS && gathered_{x} == 0
    let {x}_column = min(part.origin.{axis} + {x}_across, params.line - PIECE);
    var {x}_from = (base_matrix + {x}_k * params.ld + {x}_column) / 4u;
#endif
#if !GRADIENTS && gathered_{x} == 1
    var at = {x}_k % params.channels;
    var across = {x}_k / params.channels % params.s * params.dilation_w;
    var down = {x}_k / params.channels / params.s * params.dilation_h;
    let width = params.s * params.dilation_w;
#for j in loads_{x}
    let pixel_{j} = part.origin.{axis} + {x}_line + {j}u * apart_{x};
    let inside_{j} = pixel_{j} % params.pixels;
    let y_{j} = select(BEYOND, inside_{j} / params.q * params.stride_h - params.pad_h, pixel_{j} < params.{count});
    let x_{j} = inside_{j} % params.q * params.stride_w - params.pad_w;
#if SPREAD
    let image_{j} = base_x + pixel_{j} / params.pixels * params.image_x;
#else
    let image_{j} = base_x + pixel_{j} / params.pixels * params.image_x + (y_{j} * params.w + x_{j}) * params.apart;
#endif
#end
#endif
#if GRADIENTS && gathered_{x} == 1
    let cell = min(part.origin.{axis} + {x}_across, params.{count} - PIECE);
    let at = base_x + cell % params.channels;
    let across = cell / params.channels % params.s * params.dilation_w - params.pad_w;
    let down = cell / params.channels / params.s * params.dilation_h - params.pad_h;
    let width = params.q * params.stride_w;
    let height = params.p * params.stride_h;
#for j in loads_{x}
    let pixel_{j} = {x}_k + {j}u * apart_{x};
    var y_{j} = pixel_{j} / params.q % params.p * params.stride_h;
    var x_{j} = pixel_{j} % params.q * params.stride_w;
    var image_{j} = pixel_{j} / params.pixels * params.image_x;
#end
#endif
#end
#put places(a, x, m)
#put places(b, y, n)

    // Loads the next tiles to registers, and steps on.
#block load(x)
#if !GRADIENTS && gathered_{x} == 0
    if {x}_k < part.end_k {
#for j in loads_{x}
        {x}_next_{j}_0 = matrix[{x}_from + {x}_row_{j}];
        {x}_next_{j}_1 = matrix[{x}_from + {x}_row_{j} + 1u];
#end
    } else {
#for j in loads_{x}
        {x}_next_{j}_0 = vec4<f16>();
        {x}_next_{j}_1 = vec4<f16>();
#end
    }
    {x}_from += TILE_K / 4u;
#endif
#if GRADIENTS && gathered_{x} == 0
#for j in loads_{x}
    if {x}_k + {j}u * apart_{x} < part.end_k {
        let from_ = {x}_from + {j}u * apart_{x} * (params.ld / 4u);
        {x}_next_{j}_0 = matrix[from_];
        {x}_next_{j}_1 = matrix[from_ + 1u];
    } else {
        {x}_next_{j}_0 = vec4<f16>();
        {x}_next_{j}_1 = vec4<f16>();
    }
#end
    {x}_from += TILE_K * (params.ld / 4u);
#endif
#if !GRADIENTS && gathered_{x} == 1
    // Beyond k no row is inside.
    let below = select(2u * BEYOND, down, {x}_k < part.end_k);
#if !SPREAD
    let offset = (down * params.w + across) * params.apart + at;
#endif
#for j in loads_{x}
    {
        let y = y_{j} + below;
        let x_column = x_{j} + across;
        {x}_next_{j}_0 = vec4<f16>();
        {x}_next_{j}_1 = vec4<f16>();
#if SPREAD
        if y < params.bound_h && x_column < params.bound_w && y % UP_H == 0u && x_column % UP_W == 0u {
            let from_ = (image_{j} + (y / UP_H * params.w + x_column / UP_W) * params.apart + at) / 4u;
#else
        if y < params.bound_h && x_column < params.bound_w {
            let from_ = (image_{j} + offset) / 4u;
#endif
            {x}_next_{j}_0 = x[from_];
            {x}_next_{j}_1 = x[from_ + 1u];
        }
    }
#end
    at += params.step_at;
    across += params.step_across;
    down += params.step_down;
    if at >= params.channels {
        at -= params.channels;
        across += params.dilation_w;
    }
    if across >= width {
        across -= width;
        down += params.dilation_h;
    }
#endif
#if GRADIENTS && gathered_{x} == 1
#for j in loads_{x}
    {
        let y = y_{j} + down;
        let x_column = x_{j} + across;
        {x}_next_{j}_0 = vec4<f16>();
        {x}_next_{j}_1 = vec4<f16>();
        if {x}_k + {j}u * apart_{x} < part.end_k && y < params.bound_h && x_column < params.bound_w {
            let from_ = (image_{j} + (y * params.w + x_column) * params.apart + at) / 4u;
            {x}_next_{j}_0 = x[from_];
            {x}_next_{j}_1 = x[from_ + 1u];
        }
        image_{j} += params.step_at;
        x_{j} += params.step_across;
        y_{j} += params.step_down;
        if x_{j} >= width {
            x_{j} -= width;
            y_{j} += params.stride_h;
        }
        if y_{j} >= height {
            y_{j} -= height;
            image_{j} += params.image_x;
        }
    }
#end
#endif
    {x}_k += TILE_K;
#end
    // Stores the loads to workgroup memory.
#block store()
#for x in b, a
#for j in loads_{x}
#for h in 2
#if WIDTH == 4
    wg_{x}[{x}_to + {j}u * apart_{x} * (pitch_{x} / 4u) + {h}u] = {x}_next_{j}_{h};
#else
#for e in 4
    wg_{x}[{x}_to + {j}u * apart_{x} * pitch_{x} + {4 * h + e}u] = {x}_next_{j}_{h}[{e}u];
#end
#endif
#end
#end
#end
#end
    {
#put load(a)
#put load(b)
    }
#put store()
    workgroupBarrier();

    for (var i = part.first_k; i < part.end_k; i += TILE_K) {
#put load(a)
#put load(b)
#for s in STEPS
        {
#for r in BLOCKS_M
#if GRADIENTS
            let at_a_{r} = ({s * BLOCK_SIDE}u * pitch_a + team_row + {r * BLOCK_SIDE}u) / WIDTH;
            let a_{r} = coopLoad<coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f16, A>>(&wg_a[at_a_{r}], pitch_a / WIDTH);
#else
            let at_a_{r} = ((team_row + {r * BLOCK_SIDE}u) * pitch_a + {s * BLOCK_SIDE}u) / WIDTH;
            let a_{r} = coopLoadT<coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f16, A>>(&wg_a[at_a_{r}], pitch_a / WIDTH);
#endif
#end
#for q in BLOCKS_N
#if GRADIENTS
            let at_b_{q} = ({s * BLOCK_SIDE}u * pitch_b + team_col + {q * BLOCK_SIDE}u) / WIDTH;
            let b_{q} = coopLoadT<coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f16, B>>(&wg_b[at_b_{q}], pitch_b / WIDTH);
#else
            let at_b_{q} = ((team_col + {q * BLOCK_SIDE}u) * pitch_b + {s * BLOCK_SIDE}u) / WIDTH;
            let b_{q} = coopLoad<coop_mat{BLOCK_SIDE}x{BLOCK_SIDE}<f16, B>>(&wg_b[at_b_{q}], pitch_b / WIDTH);
#endif
#for r in BLOCKS_M
            c_{r}_{q} = coopMultiplyAdd(a_{r}, b_{q}, c_{r}_{q});
#end
#end
        }
#end
        workgroupBarrier();
#put store()
        workgroupBarrier();
    }

    // Blocks go to C one after the other, through one block of workgroup memory, as in gemm_coop.
    let begin = team * (BLOCK_SIDE * BLOCK_SIDE);
    let lane = local % LANES;
    let stride = BLOCK_SIDE;
    let blocks = min(BLOCKS, params.tiles * BLOCKS);
    for (var block = 0u; block < blocks; block++) {
        if block > 0u {
            workgroupBarrier();
        }
        switch block {
#for n in BLOCKS
#if n + 1 < BLOCKS
            case {n}u: {
#else
            default: {
#endif
                let value = c_{n / BLOCKS_N}_{n % BLOCKS_N};
                coopStoreT(value, &wg_end[begin], stride);
            }
#end
        }
        workgroupBarrier();
        let row = part.origin.x + team_row + block / BLOCKS_N * BLOCK_SIDE;
        let col = part.origin.y + team_col + block % BLOCKS_N * BLOCK_SIDE;
        end_block(row, col, begin, lane);
    }
}
