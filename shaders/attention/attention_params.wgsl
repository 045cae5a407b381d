// The parameters of every kernel of attention. A pair is a (sequence, kv head); pairs are numbered over all sequences,
// rows of q over all heads. A dispatch computes `pairs` pairs from first_pair on. Its bindings of q and k begin base_q
// and base_kv vec4s after the start of the operand. GENERAL: those of v and the output begin elsewhere, and scores may
// be capped.
#import workgroup/index

// Elements of a row of q and k, and of a row of v and the output.
const DIMS: u32 = 64u;
const VALUE_DIMS: u32 = 64u;
// Vec4s of each; the last may be partial.
const VEC4S: u32 = (DIMS + 3u) / 4u;
const VALUE_VEC4S: u32 = (VALUE_DIMS + 3u) / 4u;

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
#if GENERAL
    base_v: u32,
    base_output: u32,
    // 0 if scores are not capped.
    cap: f32,
#endif
}
@group(0) @binding(0) var<uniform> params: Params;
