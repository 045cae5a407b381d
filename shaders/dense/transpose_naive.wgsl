// output[b, j, i] = input[b, i, j]. The definition.
// One thread moves one word of the output: an element, or PACK of them. Stores coalesce, loads walk down
// columns and do not.
#import dense/transpose_params
#if PACKED
#import dense/transpose_elements
#else
@group(0) @binding(1) var<storage, read> input: array<Word>;
@group(0) @binding(2) var<storage, read_write> output: array<Word>;
#endif

const WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn transpose_naive(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let word = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let size = params.m * params.n;
    let total = params.batch * size;
    if word >= (total - 1u) / PACK + 1u { return; }
#if PACKED
    let first = word * PACK;
    let count = min(PACK, total - first);
    var packed = 0u;
    for (var i = 0u; i < count; i++) { packed |= moved(first + i) << (i * BITS); }
    store_word(first, packed);
#else
    let place = word % size;
    output[word] = input[word - place + place % params.m * params.n + place / params.m];
#endif
}
