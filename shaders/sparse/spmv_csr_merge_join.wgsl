// Adds the carries of spmv_csr_merge, sorted by row. LANES neighbouring threads take a carry; if it is the first of its
// row, they sum all carries of the row, as spmv_csr_vector does.
#import sparse/spmv_params
#import sparse/spmv_result
#if SUBGROUPS
#import sparse/spmv_join_shuffle
#else
#import sparse/spmv_join_tree
#endif

const LANES: u32 = 32u;

@group(0) @binding(1) var<storage, read> carry_rows: array<u32>;
@group(0) @binding(2) var<storage, read> carry_sums: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_csr_merge_join(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
#if SUBGROUPS
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(subgroup_size) sub_size: u32,
    @builtin(subgroup_id) sub_id: u32,
#endif
) {
#if SUBGROUPS
    let invocation = sub_id * sub_size + sub_lane;
#else
    let invocation = index;
#endif
    let carry = workgroup_index(group) * (WORKGROUP_SIZE / LANES) + invocation / LANES;
    let member = invocation % LANES;
    // No row, unless it is the first carry of one.
    var row = params.rows;
    var sum = 0.0;
    if carry < params.parts && (carry == 0u || carry_rows[carry - 1u] != carry_rows[carry]) {
        row = carry_rows[carry];
        // Four loads in flight: long rows have many carries. Beyond the end, the last is loaded again and ignored.
        for (var i = carry + member; i < params.parts; i += 4u * LANES) {
            let places = i + LANES * vec4<u32>(0u, 1u, 2u, 3u);
            let at = min(places, vec4<u32>(params.parts - 1u));
            let rows = vec4<u32>(carry_rows[at.x], carry_rows[at.y], carry_rows[at.z], carry_rows[at.w]);
            let sums = vec4<f32>(carry_sums[at.x], carry_sums[at.y], carry_sums[at.z], carry_sums[at.w]);
            let same = (rows == vec4<u32>(row)) & (places < vec4<u32>(params.parts));
            let terms = select(vec4<f32>(), sums, same);
            sum += (terms.x + terms.y) + (terms.z + terms.w);
            if !same.w {
                break;
            }
        }
    }
    let total = join_lanes(sum, invocation, LANES);
    if member == 0u && row < params.rows {
        y[row] += params.alpha * total;
    }
}
