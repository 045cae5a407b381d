// The codes of kernels that encode and decode bytes, and their largest number.
#import quantize/int8

const LARGEST: f32 = 127.0;

fn pack(x: vec4<f32>) -> u32 { return pack_int8(x); }
fn unpack(word: u32) -> vec4<f32> { return unpack_int8(word); }
