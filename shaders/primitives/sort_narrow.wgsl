// Keys of 8 or 16 bits as words for a sort, and back. A word has the key's number in the low 16 bits, by which it is
// sorted, and the key itself in the high 16. A thread takes the keys of a word of memory.
#import dispatch/extent
#import workgroup/index
#if MAPPED
#import element/halves
#import element/is_nan
#import elementwise/map_functions as function

// A function of two keys of 16 bits.
alias T = f32;
fn mapped(word: u32) -> u32 { return encode(map(decode(word, 0u)), map(decode(word, 1u))); }
#endif

const WORKGROUP_SIZE: u32 = 256u;
const PACK: u32 = 2u; // keys of a word of memory
const BITS: u32 = 32u / PACK;
const ALL: u32 = (1u << BITS) - 1u;
const FLIP: u32 = 0u; // bits in which a number differs from its key (of floats, once the sign is dealt with)

struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

#put extent(params.n, 0u)

fn order(key: u32) -> u32 {
#if FLOAT
    // Every NaN is the largest number, whichever way the rest is sorted.
    let number = key ^ select(0x8000u, 0xffffu, key >= 0x8000u) ^ FLIP;
    return select(number, 0xffffu, (key & 0x7fffu) > 0x7c00u);
#else
    return key ^ FLIP;
#endif
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn sort_narrow_widen(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if PACK * at >= params.n { return; }
#if MAPPED
    let word = mapped(input[at]);
#else
    let word = input[at];
#endif
    for (var i = 0u; i < PACK; i++) {
        let key = (word >> (i * BITS)) & ALL;
        if PACK * at + i < params.n { output[PACK * at + i] = order(key) | (key << 16u); }
    }
}

// A word of memory that is filled only in part keeps the rest.
@compute @workgroup_size(WORKGROUP_SIZE)
fn sort_narrow_pack(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let end = extent();
    if PACK * at >= end { return; }
    var word = 0u;
    if PACK * (at + 1u) > end { word = output[at]; }
    for (var i = 0u; i < PACK; i++) {
        if PACK * at + i < end { word = insertBits(word, input[PACK * at + i] >> 16u, i * BITS, BITS); }
    }
    output[at] = word;
}
