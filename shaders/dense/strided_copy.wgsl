// Copies an array of up to six axes, whose elements lie at any distances, to one without gaps, or with SCATTERED the
// other way round. A thread makes an item.
#import dense/make_item
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const PACK: u32 = 1u;
const BITS: u32 = 32u / PACK;

// Extents, and how far apart neighbours along each axis are in the array with gaps, modulo 2^32.
struct Params {
    n: u32,
    origin: u32,
#for k in 6
    extent_{k}: u32,
    stride_{k}: u32,
#end
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

fn source(i: u32) -> u32 {
    var rest = i;
    var at = params.origin;
#for k in 5
    at += rest % params.extent_{5 - k} * params.stride_{5 - k};
    rest /= params.extent_{5 - k};
#end
    return at + rest * params.stride_0;
}

fn element(i: u32) -> u32 {
    let at = source(i);
#if PACKED
    return extractBits(input[at / PACK], at % PACK * BITS, BITS);
#else
    return input[at];
#endif
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn strided_copy(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
#if SCATTERED
    if i < params.n { output[source(i)] = input[i]; }
#else
    make_item(i);
#endif
}
