// Elements as they are loaded: VECTORS, four that lie together and aligned; else a word of them (halves: two).
#import element/f32 as element

#if VECTORS
#if HALVES
alias Words = vec2<u32>;
fn decode4(words: Words) -> vec4<f32> {
    return vec4(decode(words.x, 0u), decode(words.x, 1u), decode(words.y, 0u), decode(words.y, 1u));
}
#else
alias Words = vec4<u32>;
fn decode4(words: Words) -> vec4<f32> { return bitcast<vec4<f32>>(words); }
#endif
#else
alias Words = u32;
#endif
