// Copies the found elements of 16 bits of each row, by their places in the row. A thread makes a word; a word that the
// values fill only in part keeps the rest.
#import dispatch/extent
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, k: u32, count: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read> indices: array<u32>;
@group(0) @binding(3) var<storage, read_write> values: array<u32>;

#put extent(params.count / params.k, 0u)

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_rows_halves(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = 2u * (workgroup_index(group) * WORKGROUP_SIZE + lane);
    let count = extent() * params.k;
    if at >= count { return; }
    var word = 0u;
    if at + 1u == count { word = values[at / 2u] & 0xffff0000u; }
    for (var i = 0u; i < min(2u, count - at); i++) {
#if OFFSETS
        let held = indices[at + i];
        if held == 0xffffffffu { continue; }
#else
        let held = (at + i) / params.k * params.n + indices[at + i];
#endif
        word = insertBits(word, extractBits(input[held / 2u], held % 2u * 16u, 16u), i * 16u, 16u);
    }
    values[at / 2u] = word;
}
