// Adds elements before and behind each of up to six axes: a constant, the nearest element (EDGE), or those of the array
// repeated (WRAP) or mirrored without its end (REFLECT). A thread makes an element of 4 bytes, or the PACK elements of
// a word; a word that the output fills only in part keeps the rest.
#import dense/make_item
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const PACK: u32 = 1u;
const BITS: u32 = 32u / PACK;

// Extents of the output and of the input, and the elements before the first.
struct Params {
    n: u32,
    constant: u32, // the bits of an element
#for k in 6
    extent_{k}: u32,
    inner_{k}: u32,
    before_{k}: u32,
#end
}
@group(0) @binding(0) var<uniform> params: Params;
#if EMPTY
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
#else
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;
#endif

// The place of element `at` along an axis of the output in an axis of `inner` elements; `inner` or more if outside.
fn place(at: u32, before: u32, inner: u32) -> u32 {
    let near = bitcast<i32>(at - before);
#if EDGE
    return u32(clamp(near, 0, i32(inner) - 1));
#else
#if WRAP
    // Behind a multiple of the extent, so that the remainder is that of a number of at least 0.
    let ahead = (before + inner - 1u) / inner * inner;
    return (at + ahead - before) % inner;
#else
#if REFLECT
    let period = max(2u * inner - 2u, 1u);
    let ahead = (before + period - 1u) / period * period;
    let turned = (at + ahead - before) % period;
    return min(turned, period - turned);
#else
    return bitcast<u32>(near);
#endif
#endif
#endif
}

fn element(i: u32) -> u32 {
#if EMPTY
    return params.constant;
#else
    var rest = i;
    var at = 0u;
    var stride = 1u;
    var inside = true;
#for k in 6
    {
        let here = place(rest % params.extent_{5 - k}, params.before_{5 - k}, params.inner_{5 - k});
        inside = inside && here < params.inner_{5 - k};
        at += here * stride;
        stride *= params.inner_{5 - k};
        rest /= params.extent_{5 - k};
    }
#end
    if !inside { return params.constant; }
#if PACKED
    return extractBits(input[at / PACK], at % PACK * BITS, BITS);
#else
    return input[at];
#endif
#endif
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn pad_axes(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    make_item(workgroup_index(group) * WORKGROUP_SIZE + lane);
}
