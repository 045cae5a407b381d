// The codes of kernels that encode and decode bytes, and their largest number.
#import quantize/fp8

const LARGEST: f32 = 448.0;

fn pack(x: vec4<f32>) -> u32 { return pack_fp8(x); }
fn unpack(word: u32) -> vec4<f32> { return unpack_fp8(word); }
