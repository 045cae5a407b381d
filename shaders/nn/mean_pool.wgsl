// Averages the first `length` tokens of each sequence; with NORMALIZED divides the mean by its Euclidean norm. A
// workgroup averages one sequence: COLUMNS threads cover the width, each of LINES rows of threads adds every LINES-th
// token, and their sums are added in order.
#import workgroup/index
#import element/fours
#import workgroup/reduce_rows
#import element/is_nan

const WORKGROUP_SIZE: u32 = 256u;
const LANES: u32 = 256u;
const COLUMNS: u32 = 64u;
const LINES: u32 = WORKGROUP_SIZE / COLUMNS;

struct Params {
    count: u32, // sequences
    tokens: u32,
    width: u32,
    input_origin: u32, // offsets of the first sequence in the bindings, in elements
    length_origin: u32,
    output_origin: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<Words>;
@group(0) @binding(2) var<storage, read> lengths: array<u32>;
#if VECTORS
const WIDTH: u32 = 4u;
alias Item = vec4<f32>;
fn load(at: u32) -> Item { return decode4(input[at / 4u]); }
fn four(x: Item) -> vec4<f32> { return x; }
#else
const WIDTH: u32 = 1u;
alias Item = f32;
fn load(at: u32) -> Item { return decode(input[at / PACK], at % PACK); }
fn four(x: Item) -> vec4<f32> { return vec4(x, 0.0, 0.0, 0.0); }
#endif
@group(0) @binding(3) var<storage, read_write> output: array<Item>;

var<workgroup> wg_sums: array<Item, WORKGROUP_SIZE>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn mean_pool(
#put row_builtins()
) {
    let sequence = workgroup_index(group);
    if sequence >= params.count {
        return;
    }
#put row_lane()
    let len = min(lengths[params.length_origin + sequence], params.tokens);
    // The mean of no tokens is 0.
    let share = 1.0 / f32(max(len, 1u));
    let line = lane / COLUMNS;
    let items = params.width / WIDTH;
    let begin = params.input_origin + sequence * params.tokens * params.width;
    let to = (params.output_origin + sequence * params.width) / WIDTH;
    var squares = vec4(0.0);
    for (var first = 0u; first < items; first += COLUMNS) {
        let column = first + lane % COLUMNS;
        var sum = Item();
        if column < items {
            for (var token = line; token < len; token += LINES) {
                sum += load(begin + token * params.width + column * WIDTH);
            }
        }
        wg_sums[lane] = sum;
        workgroupBarrier();
        if line == 0u && column < items {
            for (var i = 1u; i < LINES; i++) {
                sum += wg_sums[lane + i * COLUMNS];
            }
            let mean = sum * share;
            output[to + column] = mean;
            squares += four(mean * mean);
        }
        workgroupBarrier();
    }
#if NORMALIZED
    let total = row_total(squares, false, 0u, lane, sub_size);
    if line == 0u {
        // As PyTorch's normalize, zeros stay zeros; max alone would drop NaN. Each thread reads what it wrote itself.
        let norm = sqrt(total);
        let factor = 1.0 / select(max(norm, 1e-12), norm, is_nan(total));
        for (var column = lane; column < items; column += COLUMNS) {
            output[to + column] *= factor;
        }
    }
#endif
}
