// Packs results of one word each into elements of 16 or 8 bits: one thread makes one word. The rest of the last word
// stays unchanged.
#import element/f16 as element
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { elements: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> words: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn reduce_pack(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at * PACK >= params.elements { return; }
    let bits = 32u / PACK;
    let count = min(PACK, params.elements - at * PACK);
    var packed = output[at];
    for (var i = 0u; i < count; i++) {
        let word = words[at * PACK + i];
#if FLOAT
        let value = encode(bitcast<T>(word), 0.0);
#else
        let value = word;
#endif
        packed = insertBits(packed, value, i * bits, bits);
    }
    output[at] = packed;
}
