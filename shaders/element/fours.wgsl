// Four elements of f32 or, with HALVES, f16, as f32. With VECTORS they lie together and aligned, bound as such;
// otherwise words are bound one by one.
#import element/f32 as element

#if VECTORS
#if HALVES
alias Words = vec2<u32>;
fn decode4(words: Words) -> vec4<f32> {
    return vec4(decode(words.x, 0u), decode(words.x, 1u), decode(words.y, 0u), decode(words.y, 1u));
}
fn encode4(x: vec4<f32>) -> Words { return vec2(encode(x.x, x.y), encode(x.z, x.w)); }
#else
alias Words = vec4<u32>;
fn decode4(words: Words) -> vec4<f32> { return bitcast<vec4<f32>>(words); }
fn encode4(x: vec4<f32>) -> Words { return bitcast<vec4<u32>>(x); }
#endif
#else
alias Words = u32;
#endif
