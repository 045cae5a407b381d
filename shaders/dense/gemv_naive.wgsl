// y = alpha op(A) x + beta y. The definition.
// One thread sums a row of A (a column with TRANS), or the part of it that a dispatch may walk; the
// loads of neighbouring threads along rows do not coalesce. Requires f16 where T is f16.
#import dense/gemv_result

@group(0) @binding(1) var<storage, read> a: array<T>;
@group(0) @binding(2) var<storage, read> x: array<T>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn gemv_naive(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
#if TRANS
    let outputs = params.cols;
    let terms = params.rows;
#else
    let outputs = params.rows;
    let terms = params.cols;
#endif
    let index = workgroup_index(group);
    let groups = (outputs - 1u) / WORKGROUP_SIZE + 1u;
    let part = index / groups;
    let at = (index % groups) * WORKGROUP_SIZE + lane;
    if part >= params.parts || at >= outputs { return; }
    let begin = part * params.part_len;
    let end = min(begin + params.part_len, terms);
    var sum = 0.0;
#if TRANS
    for (var i = begin; i < end; i++) {
        sum += f32(a[params.origin + i * params.ld + at]) * f32(x[params.first_row + i]);
    }
    put(at, part, sum);
#else
    let row = params.origin + at * params.ld;
    for (var i = begin; i < end; i++) { sum += f32(a[row + i]) * f32(x[i]); }
    put(params.first_row + at, part, sum);
#endif
}
