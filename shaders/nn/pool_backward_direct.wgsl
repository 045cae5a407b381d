// Gathers the gradient of each cell from the windows that contain it, so that each word has one writer. MAX: the first
// largest cell of a window, found again here, gets the gradient; NaN counts as largest.
// A thread computes one gradient, or the PACK gradients of a word.
#import nn/pool_params
#import element/f32 as element
#import nn/pool_kinds
#import nn/pool_words

const GRADIENTS_BINDING: u32 = 2u;
@group(0) @binding(GRADIENTS_BINDING) var<storage, read> gradients: array<u32>;

#if WEIGHTED
const WEIGHTS_BINDING: u32 = 3u;
@group(0) @binding(WEIGHTS_BINDING) var<storage, read> weights: array<f32>;
#endif
#if CELLS
@group(0) @binding(1) var<storage, read> input: array<u32>;

fn cell_at(k: u32) -> f32 { return decode(input[k / PACK], k % PACK); }
#endif

// Returns the share of the gradient of window (i, j) for cell (y, x), at `place` in the window.
#if WEIGHTED
fn share(base: u32, i: u32, j: u32, y: u32, x: u32, place: u32, gradient: f32) -> f32 {
    return gradient * weights[place];
}
#else
fn share(base: u32, i: u32, j: u32, y: u32, x: u32, of_window: u32, gradient: f32) -> f32 {
    let y0 = i * params.stride_h - params.top;
    let x0 = j * params.stride_w - params.left;
    var total = begin();
    var cells = 0u;
    var place = 0u;
    for (var a = 0u; a < params.r; a++) {
        let row = y0 + a * params.dilation_h;
        if row >= params.h {
            continue;
        }
        for (var b = 0u; b < params.s; b++) {
            let column = x0 + b * params.dilation_w;
            if column < params.w {
                let at = row * params.w + column;
#if MAX
                let cell = cell_at(base + at);
                if cells == 0u || cell > total || is_nan(cell) {
                    total = cell;
                    place = at;
                }
#else
#if L2
                total = join(total, cell_at(base + at));
#endif
#endif
                cells++;
            }
        }
    }
#if MAX
    return select(0.0, gradient, place == y * params.w + x);
#else
#if L2
    let size = finish(total, 1.0);
    return select(gradient * cell_at(base + y * params.w + x) / size, 0.0, total == 0.0);
#else
#if PADDING_COUNTS
    cells = params.r * params.s;
#endif
    return gradient / f32(max(cells, 1u));
#endif
#endif
}
#endif

// Returns the gradient of cell `at`, counted over all planes of this chunk.
fn gathered(at: u32) -> f32 {
    let x = at % params.w;
    let y = at / params.w % params.h;
    let plane = at / params.w / params.h;
    let base = params.wide + plane * params.h * params.w;
    let windows = params.narrow + plane * params.p * params.q;
    var total = 0.0;
    for (var a = 0u; a < params.r; a++) {
        // Windows that have this cell in row a.
        let y1 = y + params.top - a * params.dilation_h;
        let i = y1 / params.stride_h;
        if y1 >= params.h + params.top || y1 % params.stride_h != 0u || i >= params.p {
            continue;
        }
        for (var b = 0u; b < params.s; b++) {
            let x1 = x + params.left - b * params.dilation_w;
            let j = x1 / params.stride_w;
            if x1 < params.w + params.left && x1 % params.stride_w == 0u && j < params.q {
                let k = windows + i * params.q + j;
                let gradient = decode(gradients[k / PACK], k % PACK);
                total += share(base, i, j, y, x, a * params.s + b, gradient);
            }
        }
    }
    return total;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn pool_backward_direct(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
#put write_words(gathered, wide, h, w)
}
