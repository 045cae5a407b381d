// What is added to scores.
#if MASKED
const MASK_BINDING: u32 = 1u;
@group(0) @binding(MASK_BINDING) var<storage, read> mask: array<f32>;
#endif

// Of this row of q, in its first element.
fn mask_row(pair: u32, head: u32, query: u32) -> u32 {
    return pair / params.kv_heads * params.mask_batch + head * params.mask_head + query * params.keys;
}
