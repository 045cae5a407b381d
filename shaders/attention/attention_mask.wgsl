// The mask that is added to the scores.
#if MASKED
const MASK_BINDING: u32 = 1u;
@group(0) @binding(MASK_BINDING) var<storage, read> mask: array<f32>;
#endif

// Returns the index of the first mask element of a row of q.
fn mask_row(pair: u32, head: u32, query: u32) -> u32 {
    return pair / params.kv_heads * params.mask_batch + head * params.mask_head + query * params.keys;
}
