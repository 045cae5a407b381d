// Joins up to four arrays along an axis: row after row of `along` times `inner` elements, of which each array gives its
// part. A thread makes an element of 4 bytes, or the PACK elements of a word; a word that the output fills only in part
// keeps the rest.
#import dense/make_item
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const INPUTS: u32 = 2u;
const OUTPUT_BINDING: u32 = 3u;
const PACK: u32 = 1u;
const BITS: u32 = 32u / PACK;

struct Params {
    n: u32,
    along: u32, // elements of the output along the axis
    inner: u32, // elements of the axes behind it
#for k in 4
    extent_{k}: u32, // of each array along the axis
#end
    unused: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
#for k in INPUTS
@group(0) @binding({k + 1}) var<storage, read> input_{k}: array<u32>;
#end
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<u32>;

fn element(i: u32) -> u32 {
    let behind = i % params.inner;
    let outer = i / params.inner / params.along;
    var at = i / params.inner % params.along;
#for k in INPUTS
    if at < params.extent_{k} {
        let held = (outer * params.extent_{k} + at) * params.inner + behind;
#if PACKED
        return extractBits(input_{k}[held / PACK], held % PACK * BITS, BITS);
#else
        return input_{k}[held];
#endif
    }
    at -= params.extent_{k};
#end
    return 0u;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn concatenate(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    make_item(workgroup_index(group) * WORKGROUP_SIZE + lane);
}
