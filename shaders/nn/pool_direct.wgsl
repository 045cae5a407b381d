// Pools any windows, with any stride, dilation and padding. A thread computes one result, or the PACK results of a
// word.
#import nn/pool_params
#import element/f32 as element
#import nn/pool_kinds
#import nn/pool_bias
#import nn/pool_words

@group(0) @binding(1) var<storage, read> input: array<u32>;
#if WEIGHTED
const WEIGHTS_BINDING: u32 = 3u;
@group(0) @binding(WEIGHTS_BINDING) var<storage, read> weights: array<f32>;
#endif

// Returns the result of window `at`, counted over all planes of this chunk.
fn pooled(at: u32) -> f32 {
    let j = at % params.q;
    let i = at / params.q % params.p;
    let plane = at / params.q / params.p;
    let base = params.wide + plane * params.h * params.w;
    // Coordinates before the image wrap around, which puts them outside too.
    let y0 = i * params.stride_h - params.top;
    let x0 = j * params.stride_w - params.left;
    var total = begin();
    var cells = 0u;
    for (var a = 0u; a < params.r; a++) {
        let y = y0 + a * params.dilation_h;
        if y >= params.h {
            continue;
        }
        for (var b = 0u; b < params.s; b++) {
            let x = x0 + b * params.dilation_w;
            if x < params.w {
                let k = base + y * params.w + x;
                let cell = decode(input[k / PACK], k % PACK);
#if WEIGHTED
                total += cell * weights[a * params.s + b];
#else
                total = join(total, cell);
#endif
                cells++;
            }
        }
    }
#if PADDING_COUNTS
    cells = params.r * params.s;
#endif
    return finished(total, f32(cells), plane);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn pool_direct(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
#put write_words(pooled, narrow, p, q)
}
