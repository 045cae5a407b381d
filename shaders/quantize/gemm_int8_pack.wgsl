// Packs the bytes of a factor, four along k to a word, zeros beyond the end of k. One thread writes a word; with
// COLUMNS and VEC4S the four words of four columns, whose 4 x 4 bytes it transposes.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    k: u32,
    n: u32, // stored rows' length with COLUMNS, where k counts them; else how many rows
    ld: u32, // words from a row of the result to the next
    words: u32, // results of all threads: words, with VEC4S times four
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> bytes: array<u32>;
#if VEC4S
@group(0) @binding(2) var<storage, read_write> packed: array<vec4<u32>>;
#else
@group(0) @binding(2) var<storage, read_write> packed: array<u32>;
#endif

#if VEC4S
// Puts byte i of row k0 + i of four columns into byte i of each.
fn spread(k: u32, column: u32, i: u32) -> vec4<u32> {
    if k + i >= params.k {
        return vec4(0u);
    }
    let four = bytes[((k + i) * params.n + column) / 4u];
    return ((vec4(four) >> vec4(0u, 8u, 16u, 24u)) & vec4(0xffu)) << vec4(8u * i);
}
#else
fn byte(at: u32) -> u32 { return (bytes[at / 4u] >> (8u * (at % 4u))) & 0xffu; }

// Byte i of the word at `row` of the stored bytes, from `k` on.
fn element(line: u32, k: u32, i: u32) -> u32 {
    if k + i >= params.k {
        return 0u;
    }
#if COLUMNS
    return byte((k + i) * params.n + line) << (8u * i);
#else
    return byte(line * params.k + k + i) << (8u * i);
#endif
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn gemm_int8_pack(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= params.words {
        return;
    }
#if VEC4S
    let across = params.ld / 4u;
    let k = at / across * 4u;
    let column = at % across * 4u;
    packed[at] = spread(k, column, 0u) | spread(k, column, 1u) | spread(k, column, 2u) | spread(k, column, 3u);
#else
#if COLUMNS
    let line = at % params.ld;
    let k = at / params.ld * 4u;
#else
    let line = at / params.ld;
    let k = at % params.ld * 4u;
#endif
    packed[at] = element(line, k, 0u) | element(line, k, 1u) | element(line, k, 2u) | element(line, k, 3u);
#endif
}
