// Copies the rows of a column at the positions of those that are kept, as many as there are. A thread makes a word, of
// the PACK elements that it holds; a word that the rows fill only in part keeps the rest.
#import dispatch/extent
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const PACK: u32 = 1u;
const BITS: u32 = 32u / PACK;

struct Params { rows: u32, width: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> column: array<u32>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read_write> output: array<u32>;

#put extent(params.rows, 0u)

fn source(i: u32) -> u32 { return positions[i / params.width] * params.width + i % params.width; }

@compute @workgroup_size(WORKGROUP_SIZE)
fn select_columns(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let word = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let first = word * PACK;
    let end = extent() * params.width;
    if first >= end { return; }
#if PACKED
    let count = min(PACK, end - first);
    var made = 0u;
    if count < PACK { made = output[word]; }
    for (var k = 0u; k < count; k++) {
        let at = source(first + k);
        made = insertBits(made, extractBits(column[at / PACK], at % PACK * BITS, BITS), k * BITS, BITS);
    }
    output[word] = made;
#else
    output[word] = column[source(first)];
#endif
}
