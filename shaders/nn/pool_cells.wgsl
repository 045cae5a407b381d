// Loads and stores four adjacent cells, or two adjacent results.
#if HALVES
alias Cells = vec2<u32>;
alias Pair = u32;
fn decode4(c: Cells) -> vec4<f32> { return vec4(decode(c.x, 0u), decode(c.x, 1u), decode(c.y, 0u), decode(c.y, 1u)); }
fn decode2(c: Pair) -> vec2<f32> { return vec2(decode(c, 0u), decode(c, 1u)); }
fn encode4(x: vec4<f32>) -> Cells { return vec2(encode(x.x, x.y), encode(x.z, x.w)); }
fn encode2(a: f32, b: f32) -> Pair { return encode(a, b); }
#else
alias Cells = vec4<u32>;
alias Pair = vec2<u32>;
fn decode4(c: Cells) -> vec4<f32> { return bitcast<vec4<f32>>(c); }
fn decode2(c: Pair) -> vec2<f32> { return bitcast<vec2<f32>>(c); }
fn encode4(x: vec4<f32>) -> Cells { return bitcast<vec4<u32>>(x); }
fn encode2(a: f32, b: f32) -> Pair { return vec2(bitcast<u32>(a), bitcast<u32>(b)); }
#endif
