// A as a matrix in memory.
#if VEC_A
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
#else
@group(0) @binding(1) var<storage, read> a: array<f32>;
#endif
