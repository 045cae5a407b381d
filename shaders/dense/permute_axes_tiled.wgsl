// Moves axes where another axis becomes the last: tiles of 32 x 32 elements of the input's and the output's last axis
// go through workgroup memory, so that loads and stores coalesce. A workgroup of 256 threads moves one tile, for one
// index of the other axes. A pitch of 33 spreads the columns of the tile over the banks.
#import workgroup/index

const TILE: u32 = 32u;
const PITCH: u32 = TILE + 1u;
const STEP: u32 = 8u;

// The extents of the other axes, and how far apart neighbours along each are in the input and the output.
struct Params {
    across: u32, // extent of the input's last axis
    down: u32, // extent of the axis that becomes the last
    stride_down: u32, // between neighbours along it in the input
    stride_across: u32, // between neighbours along the input's last axis in the output
    tiles_across: u32,
    tiles_down: u32,
    workgroups: u32,
#for k in 4
    extent_{k}: u32,
    from_{k}: u32,
    to_{k}: u32,
#end
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

var<workgroup> wg_tile: array<u32, TILE * PITCH>;

@compute @workgroup_size(256)
fn permute_axes_tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let number = workgroup_index(group);
    if number >= params.workgroups { return; }
    let column = number % params.tiles_across * TILE;
    var rest = number / params.tiles_across;
    let row = rest % params.tiles_down * TILE;
    rest /= params.tiles_down;
    var from_base = 0u;
    var to_base = 0u;
#for k in 4
    from_base += rest % params.extent_{k} * params.from_{k};
    to_base += rest % params.extent_{k} * params.to_{k};
    rest /= params.extent_{k};
#end
    let x = lane % TILE;
    let y = lane / TILE;
    if column + x < params.across {
        for (var i = y; i < TILE && row + i < params.down; i += STEP) {
            wg_tile[i * PITCH + x] = input[from_base + (row + i) * params.stride_down + column + x];
        }
    }
    workgroupBarrier();
    if row + x < params.down {
        for (var i = y; i < TILE && column + i < params.across; i += STEP) {
            output[to_base + (column + i) * params.stride_across + row + x] = wg_tile[x * PITCH + i];
        }
    }
}
