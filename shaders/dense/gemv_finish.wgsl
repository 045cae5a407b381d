// y = alpha * sum of the parts + beta y: the end of a matrix-vector product with split sums, or (without PARTS)
// with an empty sum. SHARE threads add every SHARE-th part of an output, then a tree in workgroup memory, always in
// the same order. A workgroup finishes WORKGROUP_SIZE / SHARE neighbouring outputs, so that its loads coalesce.
// Requires f16 where T is f16.
#import dense/gemv_result

const SHARE: u32 = 1u;
const OUTPUTS: u32 = WORKGROUP_SIZE / SHARE;

#if PARTS
@group(0) @binding(1) var<storage, read> parts: array<f32>;
#endif

var<workgroup> wg_sums: array<f32, WORKGROUP_SIZE>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn gemv_finish(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) invocation: u32) {
    let first = workgroup_index(group) * OUTPUTS;
    if first >= params.outputs { return; }
    let share = invocation / OUTPUTS;
    let at = first + invocation % OUTPUTS;
    var sum = 0.0;
#if PARTS
    if at < params.outputs {
        for (var part = share; part < params.parts; part += SHARE) { sum += parts[part * params.outputs + at]; }
    }
#endif
    wg_sums[invocation] = sum;
    for (var shares = SHARE / 2u; shares > 0u; shares /= 2u) {
        workgroupBarrier();
        if share < shares { wg_sums[invocation] += wg_sums[invocation + shares * OUTPUTS]; }
    }
    if share == 0u && at < params.outputs { put(at, 0u, wg_sums[invocation]); }
}
