// Decodes four bytes of a cache: signed integers.
#import quantize/int8

fn unpack_bytes(word: u32) -> vec4<f32> {
    return unpack_int8(word);
}
