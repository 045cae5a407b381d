// The tiles of spmv_csr_merge: the number of rows that have ended before each, and at the end. One thread per tile
// searches for it.
#import sparse/spmv_params

// Merge steps of a tile.
const TILE: u32 = 2048u;

@group(0) @binding(1) var<storage, read> row_ptrs: array<u32>;
@group(0) @binding(2) var<storage, read_write> bounds: array<u32>;

// The number of rows that end within the first `steps` of the merge.
fn rows_before(steps: u32) -> u32 {
    var low = max(steps, params.entries) - params.entries;
    var high = min(steps, params.rows);
    while low < high {
        // Four probes at once halve the number of rounds.
        let stride = (high - low + 3u) / 4u;
        let at = low + stride * vec4<u32>(0u, 1u, 2u, 3u);
        let next = min(at, vec4<u32>(high - 1u)) + 1u;
        let ends = vec4<u32>(row_ptrs[next.x], row_ptrs[next.y], row_ptrs[next.z], row_ptrs[next.w]);
        let ended = (at < vec4<u32>(high)) & (ends < vec4<u32>(steps) - min(at, vec4<u32>(steps)));
        let found = dot(vec4<u32>(ended), vec4<u32>(1u));
        if found == 0u {
            break;
        }
        high = min(low + found * stride, high);
        low += (found - 1u) * stride + 1u;
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
