// Elements of f32, read one by one; with GROUPS, where rows are multiples of 4 long, by vec4s.
#if GROUPS
@group(0) @binding(1) var<storage, read> input: array<vec4<f32>>;

// Elements 4 i ... 4 i + 3.
fn load_group(i: u32) -> vec4<f32> { return input[i]; }
#else
@group(0) @binding(1) var<storage, read> input: array<f32>;

fn load(i: u32) -> f32 { return input[i]; }

// The four elements from `i` on, all inside the input.
fn load_four(i: u32) -> vec4<f32> { return vec4(input[i], input[i + 1u], input[i + 2u], input[i + 3u]); }
#endif
