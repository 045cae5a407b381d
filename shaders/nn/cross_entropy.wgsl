// Computes the cross-entropy of rows of logits: log(sum of exp(x)) - x[label]. With GRADIENT also the gradient of the
// mean: (softmax(x) - (1 at the label)) / rows. A label that is not a class gives NaN.
// LANES threads share a row and read it for the maximum, the sum, and the gradient.
#import rows/params
#import workgroup/reduce_rows
#import element/exp4

const SPANS: u32 = WORKGROUP_SIZE / LANES;

@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read> labels: array<u32>;
@group(0) @binding(3) var<storage, read_write> losses: array<f32>;
#if GRADIENT
@group(0) @binding(4) var<storage, read_write> output: array<f32>;
#endif

fn exp1(x: f32) -> f32 { return exp4(vec4(x)).x; }

@compute @workgroup_size(WORKGROUP_SIZE)
fn cross_entropy(
#put row_builtins()
) {
    let first = workgroup_index(group) * SPANS;
    if first >= params.rows {
        return;
    }
#put row_lane()
    let row = first + lane / LANES;
    let exists = row < params.rows;
    let column = lane % LANES;
    let count = select(0u, params.n, exists);
    let base = params.origin + select(0u, row * params.n, exists);
    var largest = vec4(params.pad);
    for (var i = column; i < count; i += LANES) {
        largest.x = max(largest.x, logits[base + i]);
    }
    let top = row_total(largest, true, 0u, lane, sub_size);
    let center = anchor(top);
    var sum = vec4(0.0);
    for (var i = column; i < count; i += LANES) {
        sum.x += exp1(logits[base + i] - center);
    }
    let total = row_total(sum, false, 1u, lane, sub_size);
    if !exists {
        return;
    }
    let number = params.first + row;
    let label = labels[number];
    let known = label < params.n;
    // A constant NaN does not compile.
    let nan = bitcast<f32>(bitcast<u32>(total) | 0x7fc00000u);
    // A row of -infinity only: drivers differ in the logarithm of 0.
    let bad = !known || is_nan4(vec4(total)).x || bitcast<u32>(top) == 0xff800000u;
    if column == 0u {
        let right = logits[base + select(0u, label, known)];
        losses[number] = select(log(total) + (center - right), nan, bad);
    }
#if GRADIENT
    let factor = 1.0 / total;
    for (var i = column; i < count; i += LANES) {
        let hot = select(0.0, 1.0, i == label);
        let slope = exp1(logits[base + i] - center) * factor - hot;
        // eps is 1 / rows, over all chunks.
        output[base + i] = select(slope * params.eps, nan, bad);
    }
#endif
}
