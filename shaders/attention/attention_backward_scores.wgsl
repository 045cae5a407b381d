// Turns rows of products of q and k, and of dy and v, into weights and slopes, in place.
//
// A workgroup owns the row of a query. Each thread keeps ITEMS vec4s of both products in registers, so that memory is
// read once. The largest score, the sum of exponentials and the sum of their products with dy v^T are reduced together,
// as an online softmax joins its parts (Milakov and Gimelshein, 2018). Hidden keys get the weight and the slope 0.
#import workgroup/index
#import workgroup/reduce
#import attention/attention_backward_visible
#import element/exp4

const WORKGROUP_SIZE: u32 = 256u;
// Vec4s of a thread: WORKGROUP_SIZE * ITEMS vec4s hold a row.
const ITEMS: u32 = 4u;

struct Params {
    // Queries of a head, and the first of them.
    rows: u32,
    first_query: u32,
    queries: u32,
    // Keys of a row, and the first of them.
    len: u32,
    first_key: u32,
    keys: u32,
    window: u32,
    // Vec4s of a row, and from one row to the next.
    columns: u32,
    pitch: u32,
    workgroups: u32,
    scale: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> weights: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> slopes: array<vec4<f32>>;

// The largest score, the sum of exponentials, and the sum of their products with dy v^T.
alias Acc = vec3<f32>;

fn op_combine(a: Acc, b: Acc) -> Acc {
    let largest = max(a.x, b.x);
    let fades = exp4(vec4(a.x, b.x, 0.0, 0.0) - anchor(largest));
    return vec3(largest, a.yz * fades.x + b.yz * fades.y);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_backward_scores(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(id);
    if index >= params.workgroups {
        return;
    }
    let base = index * params.pitch;
    let visible = visible_to(index % params.rows, params.len);
    var infinity_bits = 0xff800000u;
    let minus_infinity = bitcast<f32>(infinity_bits);
    var largest = minus_infinity;
#for n in ITEMS
    let at_{n} = local + {n}u * WORKGROUP_SIZE;
    var score_{n} = vec4(minus_infinity);
    var slope_{n} = vec4<f32>();
    // Memory holds nothing of hidden keys that is read.
    if i32(4u * at_{n}) < visible.y && i32(4u * at_{n}) + 3 >= visible.x {
        let column = vec4(i32(4u * at_{n})) + vec4(0, 1, 2, 3);
        let hidden = (column < vec4(visible.x)) | (column >= vec4(visible.y));
        score_{n} = select(params.scale * weights[base + at_{n}], vec4(minus_infinity), hidden);
        slope_{n} = select(slopes[base + at_{n}], vec4<f32>(), hidden);
    }
    largest = max(largest, max(max(score_{n}.x, score_{n}.y), max(score_{n}.z, score_{n}.w)));
#end
    var sums = vec2<f32>();
#for n in ITEMS
    {
        let weight = exp4(score_{n} - anchor(largest));
        sums += vec2(dot(weight, vec4(1.0)), dot(weight, slope_{n}));
    }
#end
    let row = workgroup_reduce(vec3(largest, sums), local);
    // A query that sees nothing has no weights.
    let is_empty = row.y == 0.0;
    let by = select(1.0 / row.y, 0.0, is_empty);
    let mean = row.z * by;
    let center = anchor(row.x);
#for n in ITEMS
    if at_{n} < params.columns {
        let weight = by * exp4(score_{n} - center);
        weights[base + at_{n}] = weight;
        slopes[base + at_{n}] = params.scale * weight * (slope_{n} - mean);
    }
#end
}
