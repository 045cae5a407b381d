// Marks the element at each offset as the head of a segment: bit i % 32 of word i / 32. Offsets outside are
// skipped. The words begin as 0. One thread marks EACH neighbours, those of a word at once.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const EACH: u32 = 4u;

struct Params { count: u32, n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> offsets: array<u32>;
@group(0) @binding(2) var<storage, read_write> heads: array<atomic<u32>>;

fn mark(word: u32, bits: u32) {
    if bits != 0u { atomicOr(&heads[word], bits); }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn scan_offsets_heads(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = (workgroup_index(group) * WORKGROUP_SIZE + lane) * EACH;
    if first >= params.count { return; }
#for i in EACH
    let offset_{i} = offsets[min(first + {i}u, params.count - 1u)];
#end
    var word = offset_0 / 32u;
    var bits = 0u;
#for i in EACH
    if offset_{i} / 32u != word {
        mark(word, bits);
        word = offset_{i} / 32u;
        bits = 0u;
    }
    if offset_{i} < params.n { bits |= 1u << (offset_{i} % 32u); }
#end
    mark(word, bits);
}
