// Computes the statistics of queries from what the forward pass saved: the logarithm of the sum of their exponentials,
// and the product of dy and the output, which is the mean of dy v^T by their weights.
// LANES threads share a query. With VECTORS each reads four words at a time. BINARY: logarithms get the base 2.
#import workgroup/index
#import element/f32 as element

const HEAD: u32 = 64u;
const WORKGROUP_SIZE: u32 = 256u;
const LANES: u32 = 8u;
#if BINARY
const UNIT: f32 = 1.4426950408889634; // of logarithms
#else
const UNIT: f32 = 1.0;
#endif

#if VECTORS
const WORDS: u32 = HEAD / (4u * PACK);
alias Words = vec4<u32>;
#else
const WORDS: u32 = HEAD / PACK;
alias Words = u32;
#endif

struct Params {
    rows: u32,
    // Elements before the first row of dy and output, and of logsumexp.
    base_q: u32,
    base_rows: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<Words>;
@group(0) @binding(2) var<storage, read> output: array<Words>;
@group(0) @binding(3) var<storage, read> logsumexp: array<f32>;
@group(0) @binding(4) var<storage, read_write> statistics: array<vec2<f32>>;

var<workgroup> wg_sums: array<f32, WORKGROUP_SIZE>;

fn product(a: Words, b: Words) -> f32 {
    var sum = 0.0;
#if VECTORS
#for c in .x, .y, .z, .w
#for i in PACK
    sum += decode(a{c}, {i}u) * decode(b{c}, {i}u);
#end
#end
#else
#for i in PACK
    sum += decode(a, {i}u) * decode(b, {i}u);
#end
#endif
    return sum;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_backward_statistics(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = workgroup_index(id) * (WORKGROUP_SIZE / LANES) + local / LANES;
    var sum = 0.0;
    if row < params.rows {
        let first = params.base_q / (HEAD / WORDS) + row * WORDS;
        for (var word = local % LANES; word < WORDS; word += LANES) {
            sum += product(dy[first + word], output[first + word]);
        }
    }
    wg_sums[local] = sum;
    workgroupBarrier();
    if local % LANES == 0u && row < params.rows {
        for (var lane = 1u; lane < LANES; lane++) {
            sum += wg_sums[local + lane];
        }
        // A query that saw nothing gets an infinite logarithm, so that later weights are 0.
        let logarithm = logsumexp[params.base_rows + row];
        let is_empty = bitcast<u32>(logarithm) == 0xff800000u;
        statistics[row] = vec2(select(UNIT * logarithm, -logarithm, is_empty), select(sum, 0.0, is_empty));
    }
}
