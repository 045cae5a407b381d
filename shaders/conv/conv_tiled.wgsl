// A convolution layer with tiles of x, with their halo, and of the weights in workgroup memory, and sums in
// registers. One thread computes 8 outputs of a row for CHANNELS channels. A workgroup has GROUPS groups of
// channels, and DOWN x ACROSS threads for each.
// A thread reads each row of cells once and shifts the cells from weight to weight. That takes fewer reads of
// workgroup memory for each multiply-add than a matrix product, and one index computation for each cell and tile.
// VECTORS: workgroup memory is made of vec4s. STORES: rows of outputs are whole vec4s. SLICED: a dispatch adds a slice
// of the channels, whole steps of STAGED, to the sums in the output; the last one finishes them.
#import conv/conv_input
#import conv/conv_weight as weight
#import conv/conv_end

const WINDOW_H: u32 = 3u;
const WINDOW_W: u32 = 3u;
const CHANNELS: u32 = 4u;
const GROUPS: u32 = 4u;
const DOWN: u32 = 8u;
const ACROSS: u32 = 2u;
// Channels of x that are staged at once.
const STAGED: u32 = 1u;
const LANES: u32 = GROUPS * DOWN * ACROSS;
const WIDE: u32 = 8u;

// Outputs of a workgroup: channels and columns. Its rows are DOWN.
const TILE_M: u32 = GROUPS * CHANNELS;
const TILE_Q: u32 = ACROSS * WIDE;

// Rows of x of a tile, and cells from one to the next: an odd number of vec4s, which spreads a column over the banks.
const X_ROWS: u32 = DOWN + WINDOW_H - 1u;
const X_PITCH: u32 = ((TILE_Q + WINDOW_W + 2u) / 4u / 2u * 2u + 1u) * 4u;
const X_CELLS: u32 = STAGED * X_ROWS * X_PITCH;

// Weights of a cell of the window: four more than channels, which spreads them over the banks.
const W_PITCH: u32 = TILE_M + 4u;
const TAPS: u32 = WINDOW_H * WINDOW_W;
const W_CELLS: u32 = STAGED * TAPS * W_PITCH;

const OUTPUT_BINDING: u32 = 3u;
#if STORES
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<vec4<f32>>;
#else
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<f32>;
#endif

#if VECTORS
var<workgroup> wg_x: array<vec4<f32>, X_CELLS / 4u>;
var<workgroup> wg_w: array<vec4<f32>, W_CELLS / 4u>;
#else
var<workgroup> wg_x: array<f32, X_CELLS>;
var<workgroup> wg_w: array<f32, W_CELLS>;
#endif

#if SLICED
fn ended(at: u32, sum: f32, channel: u32) -> f32 {
    var total = sum;
    if params.first_channel > 0u {
#if STORES
        total += output[at / 4u][at % 4u];
#else
        total += output[at];
#endif
    }
    if params.end_channel < params.channels_in {
        return total;
    }
    return finished(total, channel);
}
#else
fn ended(at: u32, sum: f32, channel: u32) -> f32 { return finished(sum, channel); }
#endif

@compute @workgroup_size(LANES)
fn conv_tiled(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = params.first + workgroup_index(workgroup);
    if index >= params.count { return; }
    let tiles_m = (params.channels_out + TILE_M - 1u) / TILE_M;
    let across = (params.q + TILE_Q - 1u) / TILE_Q;
    let down = (params.p + DOWN - 1u) / DOWN;
    let m0 = index % tiles_m * TILE_M;
    let q0 = index / tiles_m % across * TILE_Q;
    let p0 = index / tiles_m / across % down * DOWN;
    let matrix = index / tiles_m / across / down;
    let group = matrix % params.groups;
    let size = params.h * params.w;
    let planes = params.x_at + matrix * params.channels_in * size;
    let y0 = p0 - params.pad_h;
    let x0 = q0 - params.pad_w;
    let lane_q = lane % ACROSS;
    let lane_p = lane / ACROSS % DOWN;
    let lane_m = lane / (ACROSS * DOWN);
#for m in CHANNELS
    var sum{m}_0 = vec4<f32>();
    var sum{m}_1 = vec4<f32>();
#end

#if SLICED
    for (var first = params.first_channel; first < params.end_channel; first += STAGED) {
#else
    for (var first = 0u; first < params.channels_in; first += STAGED) {
#endif
        // Other threads may still read the tiles before.
        workgroupBarrier();
        for (var to = lane; to < X_CELLS; to += LANES) {
            let channel = first + to / (X_ROWS * X_PITCH);
            var value = 0.0;
            if channel < params.channels_in {
                value = cell(planes + channel * size, y0 + to / X_PITCH % X_ROWS, x0 + to % X_PITCH);
            }
#if VECTORS
            wg_x[to / 4u][to % 4u] = value;
#else
            wg_x[to] = value;
#endif
        }
        for (var i = lane; i < STAGED * TAPS * TILE_M; i += LANES) {
            let tap = i % TAPS;
            let m = i / TAPS % TILE_M;
            let channel = first + i / (TAPS * TILE_M);
            var value = 0.0;
            if channel < params.channels_in && m0 + m < params.channels_out {
                value = weight(group, m0 + m, channel, tap);
            }
            let to = (i / (TAPS * TILE_M) * TAPS + tap) * W_PITCH + m;
#if VECTORS
            wg_w[to / 4u][to % 4u] = value;
#else
            wg_w[to] = value;
#endif
        }
        workgroupBarrier();

        // Rows of the windows of all staged channels; places of vec4s.
        for (var row = 0u; row < STAGED * WINDOW_H; row++) {
            let x_at = ((row / WINDOW_H * X_ROWS + row % WINDOW_H + lane_p) * X_PITCH + lane_q * WIDE) / 4u;
            let w_at = (row * (WINDOW_W * W_PITCH) + lane_m * CHANNELS) / 4u;
#for i in (WIDE + WINDOW_W + 2) / 4
#if VECTORS
            let v{i} = wg_x[x_at + {i}u];
#else
            let v{i} = vec4(
#for part in 4
                wg_x[4u * (x_at + {i}u) + {part}u],
#end
            );
#endif
#end
#for tap in WINDOW_W
            {
#for half in 2
                let x{half} = vec4(
#for i in tap + 4 * half..tap + 4 * half + 4
                    v{i / 4}[{i % 4}u],
#end
                );
#end
#for four in CHANNELS / 4
#if VECTORS
                let w{four} = wg_w[w_at + {tap * W_PITCH / 4 + four}u];
#else
                let w{four} = vec4(
#for part in 4
                    wg_w[4u * (w_at + {tap * W_PITCH / 4 + four}u) + {part}u],
#end
                );
#endif
#for part in 4
#for half in 2
                sum{4 * four + part}_{half} = fma(vec4(w{four}[{part}u]), x{half}, sum{4 * four + part}_{half});
#end
#end
#end
            }
#end
        }
    }

    let p = p0 + lane_p;
    let q = q0 + lane_q * WIDE;
    if p >= params.p || q >= params.q { return; }
    let m = m0 + lane_m * CHANNELS;
    let channel = group * params.channels_out + m;
    let to = params.y_at + ((matrix * params.channels_out + m) * params.p + p) * params.q + q;
    let plane = params.p * params.q;
#for m in CHANNELS
    if m + {m}u < params.channels_out {
#for half in 2
#if STORES
        if q + {4 * half}u < params.q {
            output[(to + {m}u * plane + {4 * half}u) / 4u] = vec4(
#for part in 4
                ended(to + {m}u * plane + {4 * half + part}u, sum{m}_{half}[{part}u], channel + {m}u),
#end
            );
        }
#else
#for part in 4
        if q + {4 * half + part}u < params.q {
            let at = to + {m}u * plane + {4 * half + part}u;
            output[at] = ended(at, sum{m}_{half}[{part}u], channel + {m}u);
        }
#end
#endif
#end
    }
#end
}
