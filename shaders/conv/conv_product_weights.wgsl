// A as a matrix in memory.
#if VEC_A
@group(0) @binding(1) var<storage, read> a: array<vec4<T>>;
#else
@group(0) @binding(1) var<storage, read> a: array<T>;
#endif
