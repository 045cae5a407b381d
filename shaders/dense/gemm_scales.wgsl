// The largest magnitude in each row or (with COLUMNS) column of a stored matrix, by its bits; infinities and NaNs
// do not count. gemm_scales_clear sets them to zero, gemm_scales takes the maximum.
// A thread of the latter goes down or along at most CHUNK elements, neighbours side by side in a row. A workgroup
// joins its maxima and adds them to the result by atomicMax, since others may have the rest of the line.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
// Threads that lie side by side in a row.
const ACROSS: u32 = 32u;
const DOWN: u32 = WORKGROUP_SIZE / ACROSS;
// Elements of a line that a workgroup takes.
const CHUNK: u32 = 1024u;

struct Params {
    rows: u32, cols: u32, ld: u32,
    // The first line of this factor among all, and the number of all lines.
    first_magnitude: u32, magnitudes: u32,
    // Workgroups, and the number of them along a line.
    tiles: u32, chunks: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> magnitudes: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> input: array<f32>;

var<workgroup> wg_most: array<u32, WORKGROUP_SIZE>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn gemm_scales_clear(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + local;
    if at < params.magnitudes { atomicStore(&magnitudes[at], 0u); }
}

fn magnitude(row: u32, col: u32) -> u32 {
    let bits = bitcast<u32>(input[row * params.ld + col]) & 0x7fffffffu;
    return select(0u, bits, bits < 0x7f800000u);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn gemm_scales(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let x = local % ACROSS;
    let y = local / ACROSS;
    let begin = index % params.chunks * CHUNK;
    var most = 0u;
#if COLUMNS
    let line = index / params.chunks * ACROSS + x;
    if line < params.cols {
        let end = min(begin + CHUNK, params.rows);
        for (var row = begin + y; row < end; row += DOWN) { most = max(most, magnitude(row, line)); }
    }
    let lines = params.cols;
    let last = y == 0u;
#else
    let line = index / params.chunks * DOWN + y;
    if line < params.rows {
        let end = min(begin + CHUNK, params.cols);
        for (var col = begin + x; col < end; col += ACROSS) { most = max(most, magnitude(line, col)); }
    }
    let lines = params.rows;
    let last = x == 0u;
#endif
    wg_most[local] = most;
    workgroupBarrier();
#if COLUMNS
    // Columns stay apart: the smallest stride is a row of threads.
    for (var stride = WORKGROUP_SIZE / 2u; stride >= ACROSS; stride /= 2u) {
        if local < stride { wg_most[local] = max(wg_most[local], wg_most[local + stride]); }
        workgroupBarrier();
    }
#else
    for (var stride = ACROSS / 2u; stride > 0u; stride /= 2u) {
        if x < stride { wg_most[local] = max(wg_most[local], wg_most[local + stride]); }
        workgroupBarrier();
    }
#endif
    if last && line < lines { atomicMax(&magnitudes[params.first_magnitude + line], wg_most[local]); }
}
