// Moves axes: item i of the output comes from the place that its indices have in the input. An item is an element of 4
// bytes, or where the last axis stays, four or one words of it (VECTORS); with PACKED a thread makes the PACK elements
// of a word.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const PACK: u32 = 1u;
const BITS: u32 = 32u / PACK;

// Extents of the output, and how far apart neighbours along each axis are in the input.
struct Params {
    n: u32,
#for k in 6
    extent_{k}: u32,
    stride_{k}: u32,
#end
}
@group(0) @binding(0) var<uniform> params: Params;
#if VECTORS
alias Item = vec4<u32>;
#else
alias Item = u32;
#endif
@group(0) @binding(1) var<storage, read> input: array<Item>;
@group(0) @binding(2) var<storage, read_write> output: array<Item>;

fn source(i: u32) -> u32 {
    var rest = i;
    var at = 0u;
#for k in 5
    at += rest % params.extent_{5 - k} * params.stride_{5 - k};
    rest /= params.extent_{5 - k};
#end
    return at + rest * params.stride_0;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn permute_axes(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= (params.n - 1u) / PACK + 1u { return; }
#if PACKED
    let first = i * PACK;
    let count = min(PACK, params.n - first);
    var word = 0u;
    if count < PACK { word = output[i]; }
    for (var k = 0u; k < count; k++) {
        let at = source(first + k);
        word = insertBits(word, extractBits(input[at / PACK], at % PACK * BITS, BITS), k * BITS, BITS);
    }
    output[i] = word;
#else
    output[i] = input[source(i)];
#endif
}
