// Finishes the lengths of runs that end in another tile than they began in: the end of the run minus its start, which
// is stored as its length. One thread handles the run before the first head of one tile.
#import dispatch/extent
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, tiles: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> edges: array<u32>;
@group(0) @binding(2) var<storage, read> total: array<u32>;
@group(0) @binding(3) var<storage, read_write> lengths: array<u32>;

#put extent(params.n, 0u)

@compute @workgroup_size(WORKGROUP_SIZE)
fn run_length_close(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if tile >= params.tiles { return; }
    if tile == 0u && extent() > 0u {
        // Nothing but the end is behind the last run.
        let last = total[0] - 1u;
        lengths[last] = extent() - lengths[last];
    }
    let runs = edges[2u * tile];
    if runs > 0u { lengths[runs - 1u] = edges[2u * tile + 1u] - lengths[runs - 1u]; }
}
