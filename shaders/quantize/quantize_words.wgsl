// Encodes elements as bytes with the scales of spans of n: four to a word, which may belong to several spans unless
// SHARED. One thread writes ITEMS_PER_THREAD words. Without GIVEN the scales are computed from the largest
// magnitudes, and written too.
#import workgroup/index
#import element/fours_in
#import quantize/scale

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS_PER_THREAD: u32 = 4u;

struct Params {
    len: u32, // elements in the bindings
    first: u32, // the number of the first of them
    n: u32, // elements of a span
    spans: u32, // whose scales are to be written
    lanes: u32, // threads that write them
}
@group(0) @binding(0) var<uniform> params: Params;
#if GIVEN
@group(0) @binding(2) var<storage, read> scale: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<u32>;

fn scale_at(span: u32) -> f32 { return scale[span]; }
#else
@group(0) @binding(2) var<storage, read> largest: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<u32>;
@group(0) @binding(4) var<storage, read_write> scale: array<f32>;

fn scale_at(span: u32) -> f32 { return scale_of(largest[span]); }
#endif

fn quantize_word(at: u32) {
    if at >= params.len {
        return;
    }
    let x = load4(at);
#if SHARED
    var word = codes_of(x, vec4(scale_at((params.first + at) / params.n)));
#else
    let span = (params.first + min(vec4(at) + vec4(0u, 1u, 2u, 3u), vec4(params.len - 1u))) / params.n;
    var word = codes_of(x, vec4(scale_at(span.x), scale_at(span.y), scale_at(span.z), scale_at(span.w)));
#endif
#if !VECTORS
    // Bytes after the last element keep their bits.
    let behind = params.len - at;
    if behind < 4u {
        let mask = 0xffffffffu << (8u * behind);
        word = (word & ~mask) | (output[at / 4u] & mask);
    }
#endif
    output[at / 4u] = word;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn quantize_words(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = workgroup_index(group);
    let first = index * WORKGROUP_SIZE * ITEMS_PER_THREAD + lane;
#for i in ITEMS_PER_THREAD
    quantize_word(4u * (first + {i}u * WORKGROUP_SIZE));
#end
#if !GIVEN
    // Spans may be shorter than a word: up to four scales for each.
    for (var span = index * WORKGROUP_SIZE + lane; span < params.spans; span += params.lanes) {
        scale[span] = scale_at(span);
    }
#endif
}
