// Sums each column of dy (PLAIN), or of its products with normalised rows (NORMED). A workgroup sums COLUMNS items of a
// block of rows, LINES rows at a time; a thread adds every LINES-th row of the block, in order. The sums of the blocks
// form a matrix, which the same kernel sums again.
#import workgroup/index
#import nn/items

const WORKGROUP_SIZE: u32 = 256u;
const COLUMNS: u32 = 64u;
const LINES: u32 = WORKGROUP_SIZE / COLUMNS;
const PLANES: u32 = 1u; // sums for each column

struct Params {
    rows: u32,
    n: u32,
    stride: u32, // elements from one row to the next
    origin: u32, // offset of the first row in its binding
    block: u32, // rows of a block
    first: u32, // index of the first row among all
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
    // An empty sum is written too.
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
            let statistics = joined[params.first + row];
            sums[PLANES - 1u] += g * ((input[at] - Item(statistics.x)) * statistics.y);
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
