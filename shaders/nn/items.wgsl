// The item that a thread loads and stores at once: with VECTORS an aligned vec4, else one element.
#if VECTORS
const WIDTH: u32 = 4u;
alias Item = vec4<f32>;
fn four(x: Item) -> vec4<f32> { return x; }
fn item(x: vec4<f32>) -> Item { return x; }
#else
const WIDTH: u32 = 1u;
alias Item = f32;
fn four(x: Item) -> vec4<f32> { return vec4(x, 0.0, 0.0, 0.0); }
fn item(x: vec4<f32>) -> Item { return x.x; }
#endif
