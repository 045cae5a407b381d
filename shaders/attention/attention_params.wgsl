// The parameters of every kernel of attention. A pair is a (sequence, kv head); pairs are numbered over all sequences,
// rows of q over all heads. A dispatch computes `pairs` pairs from first_pair on. Its bindings of q and k begin base_q
// and base_kv vec4s after the start of the operand.
#import workgroup/index

// Vec4s in a head.
const VEC4S: u32 = 16u;

struct Params {
    heads: u32,
    kv_heads: u32,
    queries: u32,
    keys: u32,
    first_pair: u32,
    pairs: u32,
    base_q: u32,
    base_kv: u32,
    // All rows of k; the scales of v begin after that many.
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
