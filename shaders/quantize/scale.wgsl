// Computes the scale of elements from the largest magnitude among them, and their codes from a scale.
#import quantize/codes_int8 as codes

// Infinities and NaNs become 0, so that they do not count.
fn magnitudes_of(x: vec4<f32>) -> vec4<f32> {
    let bits = bitcast<vec4<u32>>(x) & vec4(0x7fffffffu);
    return bitcast<vec4<f32>>(select(bits, vec4(0u), bits >= vec4(0x7f800000u)));
}

// A scale below the normal numbers, which a device may flush to 0, is 0 on every device.
fn scale_of(largest: f32) -> f32 { return select(largest / LARGEST, 0.0, largest < LARGEST * 0x1p-126); }

fn codes_of(x: vec4<f32>, scale: vec4<f32>) -> u32 { return pack(x / select(scale, vec4(1.0), scale == vec4(0.0))); }
