// Copies the rows of a column at the positions of those that are kept, as many as there are. A thread makes a word, of
// the PACK elements that it holds; a word that the rows fill only in part keeps the rest. With BOTH,
// positions from `firsts` on are those of a second column; with PADDED their rows are zeros. With OF_ROWS each `best`
// positions count from a row of the column on, `apart` behind the last.
#import dispatch/extent
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const PACK: u32 = 1u;
const BITS: u32 = 32u / PACK;

struct Params { rows: u32, width: u32, firsts: u32, best: u32, apart: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> column: array<u32>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read_write> output: array<u32>;

// The length counts groups of `best` rows.
#put extent(params.rows / params.best, 0u)

#if BOTH
@group(0) @binding(5) var<storage, read> second: array<u32>;
#endif

fn source(i: u32) -> u32 {
    var row = positions[i / params.width];
    let k = i % params.width;
#if OF_ROWS
    row += i / params.width / params.best * params.apart;
#endif
#if PADDED
    if row >= params.firsts { return 0u; }
#endif
#if BOTH
    if row >= params.firsts {
        let at = (row - params.firsts) * params.width + k;
        return extractBits(second[at / PACK], at % PACK * BITS, BITS);
    }
#endif
    let at = row * params.width + k;
    return extractBits(column[at / PACK], at % PACK * BITS, BITS);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn select_columns(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let word = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let first = word * PACK;
    let end = extent() * params.best * params.width;
    if first >= end { return; }
#if PACKED
    let count = min(PACK, end - first);
    var made = 0u;
    if count < PACK { made = output[word]; }
    for (var k = 0u; k < count; k++) {
        made = insertBits(made, source(first + k), k * BITS, BITS);
    }
    output[word] = made;
#else
    output[word] = source(first);
#endif
}
