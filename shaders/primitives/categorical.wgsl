// Categories by an alias table: a pair of random words gives a column of the table and a share of it. The share below
// the column's threshold belongs to the column itself, the rest to its alias. A thread makes two numbers from a block.
#import op/philox
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    seed: vec2<u32>,
    stream: vec2<u32>,
    first: vec2<u32>, // block of the first number: low word, high word
    n: u32,
    categories: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
// Threshold and alias of each column.
@group(0) @binding(2) var<storage, read> columns: array<vec2<u32>>;

fn category(column_word: u32, share: u32) -> u32 {
    let at = wide_product(column_word, params.categories).y;
    let column = columns[at];
    return select(column.y, at, share < column.x);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn categorical(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let block = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let first = 2u * block;
    if first >= params.n { return; }
    let low = params.first.x + block;
    let high = params.first.y + u32(low < block);
    let random = philox(vec4<u32>(low, high, params.stream), params.seed);
    output[first] = category(random.x, random.y);
    if first + 1u < params.n { output[first + 1u] = category(random.z, random.w); }
}
