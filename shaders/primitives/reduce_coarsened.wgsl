// Reduction at the speed of memory: LANES_PER_ROW threads walk a part of a row in steps of four vec4, with four loads
// in flight, then a tree joins them. Several short rows share a workgroup. Rows may begin and end anywhere: in the vec4
// at either end only the row's own elements count.
// ORDERED keeps the order of operands, for operators that do not commute: each thread walks its own range.
#import primitives/reduce_params
#if TWO_STAGE
#import workgroup/reduce_two_stage
#endif

const LANES_PER_ROW: u32 = 256u;
const ROWS: u32 = WORKGROUP_SIZE / LANES_PER_ROW;

#if VECTORS
// The input again, as vec4 words.
@group(0) @binding(3) var<storage, read> vectors: array<vec4<u32>>;
const VECTOR: u32 = 4u * PACK;
const UNROLL: u32 = 4u;

fn word(acc: Acc, bits: u32, column: u32) -> Acc {
    var total = acc;
    for (var i = 0u; i < PACK; i++) { total = accumulate(total, lift(decode(bits, i), column + i)); }
    return total;
}

// Those elements of the vec4 at element `at` that lie in `begin .. end`.
fn vector(acc: Acc, v: vec4<u32>, at: u32, begin: u32, end: u32, column: u32) -> Acc {
    if at >= begin && at + VECTOR <= end {
        let xy = word(word(acc, v.x, column + at), v.y, column + at + PACK);
        return word(word(xy, v.z, column + at + 2u * PACK), v.w, column + at + 3u * PACK);
    }
    var total = acc;
    var words = v;
    for (var i = 0u; i < VECTOR; i++) {
        if at + i >= begin && at + i < end {
            total = accumulate(total, lift(decode(words[i / PACK], i % PACK), column + at + i));
        }
    }
    return total;
}
#endif

// The elements `begin .. end` of the binding that fall to `lane`; `column` is that of element 0.
fn walk(begin: u32, end: u32, column: u32, part: u32, lane: u32) -> Acc {
    var acc = op_identity();
#if ORDERED
    let share = (end - begin + LANES_PER_ROW - 1u) / LANES_PER_ROW;
    let start = min(begin + lane * share, end);
    let stop = min(start + share, end);
    for (var at = start; at < stop; at++) { acc = op_combine(acc, load(at, column + at)); }
#else
#if VECTORS
    let stop = min((end + VECTOR - 1u) / VECTOR, arrayLength(&vectors));
    var b = op_identity();
    var c = op_identity();
    var d = op_identity();
    let step = LANES_PER_ROW * UNROLL;
    var v = begin / VECTOR + part * step + lane;
    while v + 3u * LANES_PER_ROW < stop {
        let v0 = vectors[v];
        let v1 = vectors[v + LANES_PER_ROW];
        let v2 = vectors[v + 2u * LANES_PER_ROW];
        let v3 = vectors[v + 3u * LANES_PER_ROW];
        acc = vector(acc, v0, v * VECTOR, begin, end, column);
        b = vector(b, v1, (v + LANES_PER_ROW) * VECTOR, begin, end, column);
        c = vector(c, v2, (v + 2u * LANES_PER_ROW) * VECTOR, begin, end, column);
        d = vector(d, v3, (v + 3u * LANES_PER_ROW) * VECTOR, begin, end, column);
        v += step * params.parts;
    }
    if v < stop {
        // The last step, with its loads in flight together: what lies beyond is loaded from the last vec4
        // and does not count.
        let last = stop - 1u;
        let v0 = vectors[v];
        let v1 = vectors[min(v + LANES_PER_ROW, last)];
        let v2 = vectors[min(v + 2u * LANES_PER_ROW, last)];
        acc = vector(acc, v0, v * VECTOR, begin, end, column);
        if v + LANES_PER_ROW < stop { b = vector(b, v1, (v + LANES_PER_ROW) * VECTOR, begin, end, column); }
        if v + 2u * LANES_PER_ROW < stop {
            c = vector(c, v2, (v + 2u * LANES_PER_ROW) * VECTOR, begin, end, column);
        }
    }
    acc = op_combine(op_combine(acc, b), op_combine(c, d));
    if part == 0u {
        // A binding that ends within a vec4 leaves up to VECTOR - 1 elements of its last row.
        for (var at = max(stop * VECTOR, begin) + lane; at < end; at += LANES_PER_ROW) {
            acc = op_combine(acc, load(at, column + at));
        }
    }
#else
    for (var at = begin + part * LANES_PER_ROW + lane; at < end; at += LANES_PER_ROW * params.parts) {
        acc = op_combine(acc, load(at, column + at));
    }
#endif
#endif
    return acc;
}

#if !TWO_STAGE
var<workgroup> wg_acc: array<Acc, WORKGROUP_SIZE>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn reduce_coarsened(
#put thread_builtins(invocation, TWO_STAGE)
) {
    let tile = workgroup_index(group);
    let first_row = (tile / params.parts) * ROWS;
    let part = tile % params.parts;
    if first_row >= params.rows { return; }
    let lane = invocation % LANES_PER_ROW;
    let row = first_row + invocation / LANES_PER_ROW;
    var acc = op_identity();
    if row < params.rows {
        let row_origin = params.origin + row * params.row_stride;
        let column = params.column - row_origin;
#if ORDERED
        let begin = row_origin + min(part * params.part_len, extent());
        let end = row_origin + min((part + 1u) * params.part_len, extent());
        acc = walk(begin, end, column, part, lane);
#else
        acc = walk(row_origin, row_origin + extent(), column, part, lane);
#endif
    }
#if TWO_STAGE
    let total = workgroup_reduce(acc, invocation, sub_lane, sub_size, sub_id, sub_count);
#else
    wg_acc[invocation] = acc;
#if ORDERED
    for (var stride = 1u; stride < LANES_PER_ROW; stride *= 2u) {
        workgroupBarrier();
        if lane % (2u * stride) == 0u {
            wg_acc[invocation] = op_combine(wg_acc[invocation], wg_acc[invocation + stride]);
        }
    }
#else
    for (var stride = LANES_PER_ROW / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane < stride { wg_acc[invocation] = op_combine(wg_acc[invocation], wg_acc[invocation + stride]); }
    }
#endif
    let total = wg_acc[invocation];
#endif
    if lane == 0u && row < params.rows { store(params.first + row * params.part_stride + part, total); }
}
