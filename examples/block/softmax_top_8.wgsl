// The 8 most likely columns of each row and their softmax: one kernel that reads each score once. One workgroup per
// row.
#import workgroup/reduce
#import workgroup/top_k_small

const WORKGROUP_SIZE: u32 = 256u;
const TOP_K: u32 = 8u;
const LOWEST: f32 = -3.4e38;

@group(0) @binding(0) var<uniform> width: u32;
@group(0) @binding(1) var<storage, read> scores: array<f32>;
@group(0) @binding(2) var<storage, read_write> likely: array<u32>;
@group(0) @binding(3) var<storage, read_write> probabilities: array<f32>;

// The maximum, and the sum of exponentials relative to it.
alias Acc = vec2<f32>;
fn op_combine(a: Acc, b: Acc) -> Acc {
    let top = max(a.x, b.x);
    return vec2(top, a.y * exp(a.x - top) + b.y * exp(b.x - top));
}

struct Entry { score: f32, column: u32 }
fn goes_before(a: Entry, b: Entry) -> bool {
    return a.score > b.score || a.score == b.score && a.column < b.column;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn softmax_top_8(@builtin(workgroup_id) row: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    var seen = vec2(LOWEST, 0.0);
    var list: array<Entry, TOP_K>;
    for (var i = 0u; i < TOP_K; i++) { list[i] = Entry(LOWEST, width + lane); }
    for (var column = lane; column < width; column += WORKGROUP_SIZE) {
        let score = scores[row.x * width + column];
        seen = op_combine(seen, vec2(score, 1.0));
        top_k_insert(&list, Entry(score, column));
    }
    let best = workgroup_top_k_of_lists(&list, lane);
    let all = workgroup_reduce(seen, lane);
    if lane < TOP_K {
        likely[row.x * TOP_K + lane] = best.column;
        probabilities[row.x * TOP_K + lane] = exp(best.score - all.x) / all.y;
    }
}
