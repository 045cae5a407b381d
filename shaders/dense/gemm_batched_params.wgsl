// What every kernel of the batched matrix product knows of the work, and the end of an element:
// C[b] = alpha * sum + beta * C[b]. Matrices are row-major without gaps; strides go from one to the next.
#import workgroup/index
#if F16
enable f16;
#endif

alias T = f32;

struct Params {
    m: u32,
    n: u32,
    k: u32,
    stride_a: u32,
    stride_b: u32,
    stride_c: u32,
    batch: u32,
    // Workgroups of earlier dispatches, and of this one.
    first: u32,
    workgroups: u32,
    // Tiles along a row of C, and of all of C.
    tiles_n: u32,
    tiles: u32,
    // Whether C is read; false for beta = 0, so that a NaN in C does not reach the result.
    read_c: u32,
    alpha: f32,
    beta: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
