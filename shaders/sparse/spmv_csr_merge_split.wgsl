// Where the tiles of spmv_csr_merge begin: how many rows have ended before each, and before the end.
// One invocation searches for one of them.
#import sparse/spmv_params

// Steps of the merge in a tile.
const TILE: u32 = 2048u;

@group(0) @binding(1) var<storage, read> row_ptrs: array<u32>;
@group(0) @binding(2) var<storage, read_write> bounds: array<u32>;

// How many rows end within the first `steps` of the merge.
fn rows_before(steps: u32) -> u32 {
    var low = max(steps, params.entries) - params.entries;
    var high = min(steps, params.rows);
    while low < high {
        let middle = low + (high - low) / 2u;
        if row_ptrs[middle + 1u] <= steps - 1u - middle {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_csr_merge_split(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if tile <= params.parts {
        bounds[tile] = rows_before(min(tile * TILE, params.rows + params.entries));
    }
}
