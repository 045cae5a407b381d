// Decodes bytes with the scales of spans of n. A word has four bytes, which may belong to several spans unless
// SHARED. One thread takes ITEMS_PER_THREAD words.
#import workgroup/index
#import element/fours_out
#import quantize/codes_int8 as codes

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS_PER_THREAD: u32 = 4u;

struct Params {
    len: u32, // elements in the bindings
    first: u32, // the number of the first of them
    n: u32, // elements of a span
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read> scale: array<f32>;

fn dequantize_word(at: u32) {
    if at >= params.len {
        return;
    }
    let x = unpack(input[at / 4u]);
#if SHARED
    let y = x * scale[(params.first + at) / params.n];
#else
    let span = (params.first + min(vec4(at) + vec4(0u, 1u, 2u, 3u), vec4(params.len - 1u))) / params.n;
    let y = x * vec4(scale[span.x], scale[span.y], scale[span.z], scale[span.w]);
#endif
    store4(at, y);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn dequantize_words(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup_index(group) * WORKGROUP_SIZE * ITEMS_PER_THREAD + lane;
#for i in ITEMS_PER_THREAD
    dequantize_word(4u * (first + {i}u * WORKGROUP_SIZE));
#end
}
