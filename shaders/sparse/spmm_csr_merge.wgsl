// C = alpha A B + beta C, A in CSR, shared evenly whatever the row lengths: row ends and entries are merged (D.
// Merrill, M. Garland 2016), and a team takes ITEMS steps of the merge, each lane a chunk of columns. Its unfinished
// row is a carry (row, sums), which spmm_coo adds.
#import sparse/spmm_params
#import sparse/spmv_rows
#import sparse/spmm_dense
#import sparse/spmv_walk
#import sparse/spmm_result

const PADDED: bool = false;
const ITEMS: u32 = 64u;

@group(0) @binding(6) var<storage, read_write> carry_rows: array<u32>;
@group(0) @binding(7) var<storage, read_write> carry_sums: array<Chunk>;
// Rows that have ended before each team's steps, and at the end.
@group(0) @binding(8) var<storage, read> bounds: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmm_csr_merge(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let team = join_team(group, lane);
    if team >= params.parts || chunk >= params.chunks {
        return;
    }
    let begin = team * ITEMS;
    let end = begin + min(ITEMS, params.rows + params.entries - begin);
    var row = bounds[team];
    let last_row = max(min(bounds[team + 1u], params.rows), row);
    var entry = begin - row;
    let last_entry = min(max(end, last_row) - last_row, params.entries);
    for (; row < last_row; row++) {
        let row_end = max(min(row_ptrs[row + 1u], last_entry), entry);
        put(row, walk(entry, row_end, 1u));
        entry = row_end;
    }
    carry_sums[team * params.chunks + chunk] = walk(entry, last_entry, 1u);
    if chunk == 0u {
        carry_rows[team] = last_row;
    }
}
