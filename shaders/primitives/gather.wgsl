// Copies rows of a table by index: output[i] = table[indices[i]], or zeros if the table has no such row. A thread
// copies four adjacent words (VECTORS), ITEMS single words, or with SPLIT the elements of one word of the output, which
// may belong to two rows. A table above one binding comes in parts: each writes its rows, the first also the zeros.
#import dispatch/extent
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const PACK: u32 = 2u; // elements of a word, with SPLIT
const ITEMS: u32 = 4u; // of a thread, without

struct Params {
    count: u32, // rows of the output
    width: u32, // items of a row, or elements with SPLIT
    first: u32, // index of the first row of this part of the table
    rows: u32, // rows of this part
    total: u32, // rows of the whole table
    table_origin: u32, // offsets in the bindings, in the units of `width`
    index_origin: u32,
    output_origin: u32,
    before: u32, // rows of the output before the first
}
@group(0) @binding(0) var<uniform> params: Params;

#put extent(params.count, params.before)

#if VECTORS
alias Item = vec4<u32>;
#else
alias Item = u32;
#endif
@group(0) @binding(1) var<storage, read> table: array<Item>;
@group(0) @binding(2) var<storage, read> indices: array<u32>;
@group(0) @binding(3) var<storage, read_write> output: array<Item>;

#if SPLIT
const BITS: u32 = 32u / PACK;

// Returns the bits of element i of the output, or `held` if another part has its row.
fn element(i: u32, held: u32) -> u32 {
    let number = indices[params.index_origin + i / params.width];
    let part = number - params.first;
    if part < params.rows {
        let at = params.table_origin + part * params.width + i % params.width;
        return extractBits(table[at / PACK], at % PACK * BITS, BITS);
    }
    return select(held, 0u, params.first == 0u && number >= params.total);
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn gather(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let len = extent() * params.width;
#if SPLIT
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i * PACK >= params.output_origin + len {
        return;
    }
    let word = output[i];
    var result = 0u;
    for (var k = 0u; k < PACK; k++) {
        var bits = extractBits(word, k * BITS, BITS);
        // Elements before the first wrap around.
        let at = i * PACK + k - params.output_origin;
        if at < len {
            bits = element(at, bits);
        }
        result |= bits << (k * BITS);
    }
    output[i] = result;
#else
    let first = workgroup_index(group) * WORKGROUP_SIZE * ITEMS + lane;
    // All loads of indices are in flight together, then those of items.
#for k in ITEMS
    let i_{k} = first + {k}u * WORKGROUP_SIZE;
    var number_{k} = 0u;
    if i_{k} < len { number_{k} = indices[params.index_origin + i_{k} / params.width]; }
#end
#for k in ITEMS
    // Rows before this part wrap around.
    let part_{k} = number_{k} - params.first;
    var item_{k} = Item();
    if i_{k} < len && part_{k} < params.rows {
        item_{k} = table[params.table_origin + part_{k} * params.width + i_{k} % params.width];
    }
#end
#for k in ITEMS
    if i_{k} < len && (part_{k} < params.rows || (params.first == 0u && number_{k} >= params.total)) {
        output[params.output_origin + i_{k}] = item_{k};
    }
#end
#endif
}
