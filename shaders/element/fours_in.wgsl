// Four elements from any one on; without VECTORS those beyond the last are the last.
#import element/fours

@group(0) @binding(1) var<storage, read> input: array<Words>;

#if VECTORS
fn load4(at: u32) -> vec4<f32> { return decode4(input[at / 4u]); }
#else
fn element(at: u32) -> f32 {
    let near = min(at, params.len - 1u);
    return decode(input[near / PACK], near % PACK);
}
fn load4(at: u32) -> vec4<f32> { return vec4(element(at), element(at + 1u), element(at + 2u), element(at + 3u)); }
#endif
