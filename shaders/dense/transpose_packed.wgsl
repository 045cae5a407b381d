// output[b, j, i] = input[b, i, j] for elements of 1 or 2 bytes, through tiles of 64 x 64 in workgroup memory. Rows
// of input and output may begin anywhere in a word: a thread assembles each word of the tile from two words. A word
// of the output belongs to the tile of its first element, whose workgroup fetches elements beyond the tile's edge
// one by one. So every word has one writer.
#import dense/transpose_params
#import dense/transpose_elements
#import dense/transpose_walk

const TILE: u32 = 64u;
const WORDS: u32 = TILE / PACK; // of a row of the tile
const PITCH: u32 = WORDS + 1u;
const WORKGROUP_SIZE: u32 = 256u;
const STEP: u32 = WORKGROUP_SIZE / WORDS;

// Rows of the input.
var<workgroup> wg_tile: array<u32, TILE * PITCH>;

// PACK elements from element `at` on; arbitrary ones beyond the input.
fn load_word(at: u32, last: u32) -> u32 {
    let shift = at % PACK * BITS;
    let low = input[min(at / PACK, last)];
    if shift == 0u { return low; }
    return (low >> shift) | (input[min(at / PACK + 1u, last)] << (32u - shift));
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn transpose_packed(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = tile_of(workgroup_index(group));
    if tile.matrix >= params.batch { return; }
    let base = tile.matrix * params.m * params.n;
    let total = params.batch * params.m * params.n;
    let origin = vec2(tile.row, tile.col) * TILE;
    let x = lane % WORDS;
    let y = lane / WORDS;

    // Words of the input; those of rows and columns beyond it are never used, and loaded from its end.
    let last = (total - 1u) / PACK;
    for (var i = y; i < TILE; i += 4u * STEP) {
        let row = min(origin.x + i, params.m - 1u);
        let source = base + origin.y + x * PACK;
        let a = load_word(source + row * params.n, last);
        let b = load_word(source + min(row + STEP, params.m - 1u) * params.n, last);
        let c = load_word(source + min(row + 2u * STEP, params.m - 1u) * params.n, last);
        let d = load_word(source + min(row + 3u * STEP, params.m - 1u) * params.n, last);
        wg_tile[i * PITCH + x] = a;
        wg_tile[(i + STEP) * PITCH + x] = b;
        wg_tile[(i + 2u * STEP) * PITCH + x] = c;
        wg_tile[(i + 3u * STEP) * PITCH + x] = d;
    }
    workgroupBarrier();

    // Word x of those that begin in row i of the output's tile.
    for (var i = y; i < TILE && origin.y + i < params.n; i += STEP) {
        let begin = base + (origin.y + i) * params.m + origin.x;
        let end = begin + min(TILE, params.m - origin.x);
        let first = ((begin + PACK - 1u) / PACK + x) * PACK;
        if first >= end { continue; }
        let row = first - begin;
        let column = i / PACK;
        let shift = i % PACK * BITS;
        var word = 0u;
        if first + PACK <= end {
            for (var e = 0u; e < PACK; e++) {
                word |= ((wg_tile[(row + e) * PITCH + column] >> shift) & MASK) << (e * BITS);
            }
        } else {
            let count = min(PACK, total - first);
            for (var e = 0u; e < count; e++) { word |= moved(first + e) << (e * BITS); }
        }
        store_word(first, word);
    }
}
