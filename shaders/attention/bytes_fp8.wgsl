// Decodes four bytes of a cache: fp8 (E4M3).
#import quantize/fp8

fn unpack_bytes(word: u32) -> vec4<f32> {
    return unpack_fp8(word);
}
