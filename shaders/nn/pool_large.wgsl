// Pools windows of many cells. A workgroup walks over one window and reduces the partial results in a tree; windows
// whose results share a word are pooled one after the other.
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

var<workgroup> wg_partials: array<vec2<f32>, WORKGROUP_SIZE>; // total, cells

fn joined(a: f32, b: f32) -> f32 {
#if MAX
    return join(a, b);
#else
    return a + b;
#endif
}

fn pooled(at: u32, lane: u32) -> f32 {
    let j = at % params.q;
    let i = at / params.q % params.p;
    let plane = at / params.q / params.p;
    let base = params.wide + plane * params.h * params.w;
    // Coordinates before the image wrap around, which puts them outside too.
    let y0 = i * params.stride_h - params.top;
    let x0 = j * params.stride_w - params.left;
    var total = begin();
    var cells = 0.0;
    let all = params.r * params.s;
    for (var k = lane; k < all; k += WORKGROUP_SIZE) {
        let y = y0 + k / params.s * params.dilation_h;
        let x = x0 + k % params.s * params.dilation_w;
        if y < params.h && x < params.w {
            let at_cell = base + y * params.w + x;
            let cell = decode(input[at_cell / PACK], at_cell % PACK);
#if WEIGHTED
            total += cell * weights[k];
#else
            total = join(total, cell);
#endif
            cells += 1.0;
        }
    }
    workgroupBarrier(); // The previous window may still be read.
    wg_partials[lane] = vec2(total, cells);
    for (var stride = WORKGROUP_SIZE / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane < stride {
            let a = wg_partials[lane];
            let b = wg_partials[lane + stride];
            wg_partials[lane] = vec2(joined(a.x, b.x), a.y + b.y);
        }
    }
    workgroupBarrier();
    var partial = wg_partials[0];
#if PADDING_COUNTS
    partial.y = f32(all);
#endif
    return finished(partial.x, partial.y, plane);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn pool_large(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = params.narrow;
    let end = first + params.planes * params.p * params.q;
    let word = first / PACK + workgroup_index(group);
    if word > (end - 1u) / PACK {
        return;
    }
#if HALVES
    let a = pooled(max(2u * word, first) - first, lane);
    let b = pooled(min(2u * word + 1u, end - 1u) - first, lane);
    if lane == 0u {
        store_word(word, first, end, a, b);
    }
#else
    let y = pooled(word - first, lane);
    if lane == 0u {
        output[word] = encode(y, 0.0);
    }
#endif
}
