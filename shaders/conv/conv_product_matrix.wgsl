// A product of a matrix of weights with one of columns, both in memory.
#import conv/conv_product
#import conv/conv_product_weights

alias T = f32;
#if VEC_B
@group(0) @binding(2) var<storage, read> b: array<vec4<T>>;
#else
@group(0) @binding(2) var<storage, read> b: array<T>;
#endif
