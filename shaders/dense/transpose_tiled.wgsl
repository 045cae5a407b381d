// output[b, j, i] = input[b, i, j] through tiles in workgroup memory, so that loads and stores coalesce (G. Ruetsch,
// P. Micikevicius, "Optimizing Matrix Transpose in CUDA", 2009). One workgroup moves a tile of 32 x 32 elements of 4
// or 8 bytes, one thread four of them, eight rows apart. A pitch of 33 spreads the columns of the tile over the banks.
#import dense/transpose_params
#import dense/transpose_walk

const TILE: u32 = 32u;
const PITCH: u32 = TILE + 1u;
const STEP: u32 = 8u;

@group(0) @binding(1) var<storage, read> input: array<Word>;
@group(0) @binding(2) var<storage, read_write> output: array<Word>;

var<workgroup> wg_tile: array<Word, TILE * PITCH>;

@compute @workgroup_size(256)
fn transpose_tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = tile_of(workgroup_index(group));
    if tile.matrix >= params.batch { return; }
    let base = tile.matrix * params.m * params.n;
    let origin = vec2(tile.row, tile.col) * TILE;
    let x = lane % TILE;
    let y = lane / TILE;
    let whole = origin.x + TILE <= params.m && origin.y + TILE <= params.n;

    // x along a row of the input.
    let row = origin.x + y;
    let col = origin.y + x;
    let source = base + row * params.n + col;
    if whole {
        let a = input[source];
        let b = input[source + STEP * params.n];
        let c = input[source + 2u * STEP * params.n];
        let d = input[source + 3u * STEP * params.n];
        wg_tile[y * PITCH + x] = a;
        wg_tile[(y + STEP) * PITCH + x] = b;
        wg_tile[(y + 2u * STEP) * PITCH + x] = c;
        wg_tile[(y + 3u * STEP) * PITCH + x] = d;
    } else if col < params.n {
        for (var i = 0u; i < TILE && row + i < params.m; i += STEP) {
            wg_tile[(y + i) * PITCH + x] = input[source + i * params.n];
        }
    }
    workgroupBarrier();

    // x along a row of the output.
    let out_row = origin.y + y;
    let out_col = origin.x + x;
    let to = base + out_row * params.m + out_col;
    if whole {
        output[to] = wg_tile[x * PITCH + y];
        output[to + STEP * params.m] = wg_tile[x * PITCH + y + STEP];
        output[to + 2u * STEP * params.m] = wg_tile[x * PITCH + y + 2u * STEP];
        output[to + 3u * STEP * params.m] = wg_tile[x * PITCH + y + 3u * STEP];
    } else if out_col < params.m {
        for (var i = 0u; i < TILE && out_row + i < params.n; i += STEP) {
            output[to + i * params.m] = wg_tile[x * PITCH + y + i];
        }
    }
}
