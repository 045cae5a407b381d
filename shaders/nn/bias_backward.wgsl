// Sums over the rows of a matrix, column by column, of dy or of products of it with normalised rows. A workgroup
// takes a block of rows and COLUMNS items of each, LINES rows at a time; the sums of blocks are rows of a matrix that
// the same kernel sums again. One invocation adds every LINES-th row of a block, in order.
#import workgroup/index
#import nn/items

const WORKGROUP_SIZE: u32 = 256u;
const COLUMNS: u32 = 64u;
const LINES: u32 = WORKGROUP_SIZE / COLUMNS;
const PLANES: u32 = 1u; // sums of each column: of dy, of products

struct Params {
    rows: u32,
    n: u32,
    stride: u32, // from a row to the next, in elements
    origin: u32, // where the first row begins in its binding
    block: u32, // rows of a workgroup
    first: u32, // number of the first row among all
    first_block: u32,
    factor: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gradients: array<Item>;
@group(0) @binding(2) var<storage, read_write> output: array<Item>;
#if NORMED
@group(0) @binding(3) var<storage, read> input: array<Item>;
@group(0) @binding(4) var<storage, read> joined: array<vec2<f32>>;
#endif

var<workgroup> wg_sums: array<Item, PLANES * WORKGROUP_SIZE>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn bias_backward(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let items = params.n / WIDTH;
    let tiles = (items + COLUMNS - 1u) / COLUMNS;
    let block = workgroup_index(group) / tiles;
    // The sum of no rows is written too.
    if block * params.block >= max(params.rows, 1u) {
        return;
    }
    let column = workgroup_index(group) % tiles * COLUMNS + lane % COLUMNS;
    let line = lane / COLUMNS;
    let end = min((block + 1u) * params.block, params.rows);
    var sums: array<Item, PLANES>;
    if column < items {
        for (var row = block * params.block + line; row < end; row += LINES) {
            let at = (params.origin + row * params.stride) / WIDTH + column;
            let g = gradients[at];
#if NORMED
            let known = joined[params.first + row];
            sums[PLANES - 1u] += g * ((input[at] - Item(known.x)) * known.y);
#endif
#if PLAIN
            sums[0] += g;
#endif
        }
    }
#for i in PLANES
    wg_sums[{i}u * WORKGROUP_SIZE + lane] = sums[{i}];
#end
    workgroupBarrier();
    if line == 0u && column < items {
#for i in PLANES
        for (var i = 1u; i < LINES; i++) {
            sums[{i}] += wg_sums[{i}u * WORKGROUP_SIZE + lane + i * COLUMNS];
        }
        output[((params.first_block + block) * PLANES + {i}u) * items + column] = params.factor * sums[{i}];
#end
    }
}
