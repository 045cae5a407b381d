// Dropout: y[i] = x[i] scale where word i of a Philox stream is at least the threshold, else 0. A thread takes the four
// elements of a block of the generator.
#import element/f32 as element
#import op/philox
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    seed: vec2<u32>,
    stream: vec2<u32>,
    first: vec2<u32>, // block of the first element: low word, high word
    n: u32,
    threshold: u32,
    scale: f32,
    pad: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

const WORDS: u32 = 4u / PACK;

@compute @workgroup_size(WORKGROUP_SIZE)
fn dropout(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let block = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if 4u * block >= params.n { return; }
    let low = params.first.x + block;
    let high = params.first.y + u32(low < block);
    let random = philox(vec4<u32>(low, high, params.stream), params.seed);
    for (var word = 0u; word < WORDS; word++) {
        let at = block * WORDS + word;
        let first = at * PACK;
        if first >= params.n { break; }
        let given = x[at];
        var kept: array<f32, 2>;
        for (var k = 0u; k < PACK; k++) {
            let keep = random[word * PACK + k] >= params.threshold;
            kept[k] = select(0.0, decode(given, k) * params.scale, keep);
        }
        var made = encode(kept[0], kept[1]);
#if HALVES
        // A word that is filled only in part keeps the rest.
        if first + 1u == params.n { made = (made & 0xffffu) | (y[at] & 0xffff0000u); }
#endif
        y[at] = made;
    }
}
