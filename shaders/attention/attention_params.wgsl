// What every kernel of attention knows of the work: heads of keys and values are counted over all sequences ("pairs"),
// rows of q over all heads. A dispatch computes `pairs` of them from first_pair on; bindings may begin later than
// their operands, base_q and base_kv fours of elements.
#import workgroup/index

// Fours of elements of a vector.
const FOURS: u32 = 16u;

struct Params {
    heads: u32,
    kv_heads: u32,
    queries: u32,
    keys: u32,
    first_pair: u32,
    pairs: u32,
    base_q: u32,
    base_kv: u32,
    // Rows of k in all: the factors of v lie behind as many.
    kv_rows: u32,
    window: u32,
    mask_batch: u32,
    mask_head: u32,
    pages: u32,
    pages_each: u32,
    first_row: u32,
    rows: u32,
    parts: u32,
    part_keys: u32,
    row_tiles: u32,
    scale: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
