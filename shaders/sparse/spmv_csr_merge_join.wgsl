// Adds what tiles of spmv_csr_merge carry, whose rows do not fall: LANES neighbouring invocations take a carry, and, if
// it is the first of its row, sum all those of the row and join their sums, as spmv_csr_vector does.
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

// The first carry behind number `first` that is of a later row.
fn end_of(row: u32, first: u32) -> u32 {
    var low = first + 1u;
    // Most rows have one carry.
    if low >= params.parts || carry_rows[low] != row {
        return low;
    }
    var high = params.parts;
    while low < high {
        let middle = low + (high - low) / 2u;
        if carry_rows[middle] <= row {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}

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
    // Of no row, unless it is the first of one.
    var row = params.rows;
    var sum = 0.0;
    if carry < params.parts && (carry == 0u || carry_rows[carry - 1u] != carry_rows[carry]) {
        row = carry_rows[carry];
        let end = end_of(row, carry);
        for (var i = carry + member; i < end; i += LANES) {
            sum += carry_sums[i];
        }
    }
    let total = join_lanes(sum, invocation, LANES);
    if member == 0u && row < params.rows {
        y[row] += params.alpha * total;
    }
}
