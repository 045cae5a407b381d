// A layer whose groups have one input channel, with its sums in registers. One thread computes 4 x ROWS outputs of a
// channel. It loads each row of cells once and adds it to every sum that it is part of. Neighbours in a row are
// neighbours in the workgroup, so that loads coalesce.
// Every product is written out: no compiler here unrolls on request, and sums that a loop indexes live in slow memory.
// VECTORS: rows of x are whole vec4s, and load as such. STORES: rows of outputs are whole vec4s.
#import conv/conv_params
#import conv/conv_weight as weight
#import conv/conv_end

const WINDOW_H: u32 = 3u;
const WINDOW_W: u32 = 3u;
const STRIDE_H: u32 = 1u;
const STRIDE_W: u32 = 1u;
const DILATION_H: u32 = 1u;
const DILATION_W: u32 = 1u;
const WIDE: u32 = 4u;
const ROWS: u32 = 4u;

// Loads of a row are counted from the one with the first cell of all windows, which is its cell number LEAD. FIRST
// is that load, relative to the place of the first output; negative values wrap.
const FIRST: u32 = 0u;
const LEAD: u32 = 0u;
#if VECTORS
const PACK: u32 = 4u;
#else
const PACK: u32 = 1u;
#endif

// From the first cell of a window to the last.
const REACH_H: u32 = (WINDOW_H - 1u) * DILATION_H;
const REACH_W: u32 = (WINDOW_W - 1u) * DILATION_W;
const LOADS: u32 = (LEAD + (WIDE - 1u) * STRIDE_W + REACH_W) / PACK + 1u;
const CELL_ROWS: u32 = (ROWS - 1u) * STRIDE_H + REACH_H + 1u;

// Strides and dilations skip loads and rows of cells. LOADED_k_t: an output before number t of a row needs load k,
// since its window has more columns up to the last cell of that load than before the first.
#for k in LOADS
const LOADED_{k}_0: bool = false;
#for t in WIDE
const UP_TO_{k}_{t}: i32 = {(min(PACK * k + PACK - 1 - LEAD - t * STRIDE_W, REACH_W) + DILATION_W) / DILATION_W};
const BEFORE_{k}_{t}: i32 = {(max(PACK * k - LEAD - t * STRIDE_W, 0) + DILATION_W - 1) / DILATION_W};
const LOADED_{k}_{t + 1}: bool = LOADED_{k}_{t} || UP_TO_{k}_{t} > BEFORE_{k}_{t};
#end
#end
// USED_y_row: row `row` of outputs needs row y of cells. NEEDED_y_row: a row before it does.
#for y in CELL_ROWS
const NEEDED_{y}_0: bool = false;
#for row in ROWS
const FROM_{y}_{row}: i32 = {y - row * STRIDE_H};
const USED_{y}_{row}: bool = FROM_{y}_{row} >= 0 && FROM_{y}_{row} <= {REACH_H} && FROM_{y}_{row} % {DILATION_H} == 0;
const NEEDED_{y}_{row + 1}: bool = NEEDED_{y}_{row} || USED_{y}_{row};
#end
#end

#if VECTORS
@group(0) @binding(1) var<storage, read> x: array<vec4<T>>;
#else
@group(0) @binding(1) var<storage, read> x: array<T>;
#endif
const OUTPUT_BINDING: u32 = 3u;
#if STORES
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<vec4<R>>;
#else
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<R>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_depthwise(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let across = (params.q + (WIDE - 1u)) / WIDE;
    let down = (params.p + (ROWS - 1u)) / ROWS;
    let q0 = at % across * WIDE;
    let p0 = at / across % down * ROWS;
    let plane = at / across / down;
    let channels = params.groups * params.channels_out;
    let channel = plane % channels;
    let group = channel / params.channels_out;
    let cells = params.x_at + (plane / channels * params.groups + group) * params.h * params.w;
    let column = q0 * STRIDE_W;
    let y0 = p0 * STRIDE_H - params.pad_h;
#for tap in WINDOW_H * WINDOW_W
    let w{tap} = weight(group, channel % params.channels_out, 0u, {tap}u);
#end
#for row in ROWS
    var sum{row} = vec4<f32>();
#end

    // The places of the loads of a row, and if they lie inside: those before the first wrap.
#for k in LOADS
#if LOADED_{k}_{WIDE}
#if VECTORS
    let x{k} = column / 4u + {(FIRST + k) % (1 << 32)}u;
    let in_x{k} = x{k} < params.w / 4u;
#else
    let x{k} = column + {(FIRST + k) % (1 << 32)}u;
    let in_x{k} = x{k} < params.w;
#endif
#endif
#end

#for y in CELL_ROWS
#if NEEDED_{y}_{ROWS}
    {
        let y = y0 + {y}u;
        let inside = y < params.h;
#if VECTORS
        let begin = (cells + y * params.w) / 4u;
#else
        let begin = cells + y * params.w;
#endif
#for k in LOADS
#if LOADED_{k}_{WIDE}
#if VECTORS
        var v{k} = vec4<f32>();
#else
        var v{k} = 0.0;
#endif
        if inside && in_x{k} {
#if VECTORS
            v{k} = vec4<f32>(x[begin + x{k}]);
#else
            v{k} = f32(x[begin + x{k}]);
#endif
        }
#endif
#end
#for b in WINDOW_W
        let c{b} = vec4(
#for t in WIDE
#if VECTORS
            v{(LEAD + b * DILATION_W + t * STRIDE_W) / 4}[{(LEAD + b * DILATION_W + t * STRIDE_W) % 4}u],
#else
            v{b * DILATION_W + t * STRIDE_W},
#endif
#end
        );
#for row in ROWS
#if USED_{y}_{row}
        sum{row} = fma(vec4(w{(y - row * STRIDE_H) / DILATION_H * WINDOW_W + b}), c{b}, sum{row});
#endif
#end
#end
    }
#endif
#end

#for row in ROWS
    if p0 + {row}u < params.p {
        let to = params.y_at + (plane * params.p + p0 + {row}u) * params.q + q0;
#if STORES
        output[to / 4u] = vec4<R>(vec4(
#for t in WIDE
            finished(sum{row}[{t}u], channel),
#end
        ));
#else
        output[to] = R(finished(sum{row}.x, channel));
#for t in 1..WIDE
        if q0 + {t}u < params.q {
            output[to + {t}u] = R(finished(sum{row}[{t}u], channel));
        }
#end
#endif
    }
#end
}
