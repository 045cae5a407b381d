// Philox 4x32-10: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (2011). Word i of a stream is component i % 4 of philox(vec4(i / 4 as low and high word, stream as low and high
// word), seed as low and high word): the order of cuRAND's Philox4_32_10. Each number is computed by itself, so threads
// share nothing. You declare nothing. INT64: products are of 64-bit integers, where the device has them.

// The product of a and b: low word, high word.
fn wide_product(a: u32, b: u32) -> vec2<u32> {
#if INT64
    let product = u64(a) * u64(b);
    return vec2<u32>(u32(product), u32(product >> 32u));
#else
    let low = (a & 0xffffu) * (b & 0xffffu);
    let one = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let two = (a & 0xffffu) * (b >> 16u) + (one & 0xffffu);
    return vec2<u32>(a * b, (a >> 16u) * (b >> 16u) + (one >> 16u) + (two >> 16u));
#endif
}

// Four random words.
fn philox(counter: vec4<u32>, seed: vec2<u32>) -> vec4<u32> {
    var x = counter;
    var key = seed;
#for round in 10
    let a_{round} = wide_product(x.x, 0xd2511f53u);
    let b_{round} = wide_product(x.z, 0xcd9e8d57u);
    x = vec4<u32>(b_{round}.y ^ x.y ^ key.x, b_{round}.x, a_{round}.y ^ x.w ^ key.y, a_{round}.x);
    key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
#end
    return x;
}

// Uniform in (0, 1]: 2^-32 x + 2^-33, as `curand_uniform`. Devices may round f32(x) either way, so it is a sum of two
// exact halves, which all round to nearest.
fn random_uniform(x: u32) -> f32 { return (f32(x & 0xffff0000u) + f32(x & 0xffffu)) * 0x1p-32 + 0x1p-33; }

// -log(u) for u in (0, 1], also next to 1 with a small relative error: u = 2^e (1 + f) between the roots of 1/2 and 2,
// and log(1 + f) by a polynomial through Chebyshev's nodes.
fn random_exponential(x: u32) -> f32 {
    let u = bitcast<u32>(random_uniform(x));
    let e = (u - 0x3f3504f3u) & 0xff800000u;
    let f = bitcast<f32>(u - e) - 1.0;
    let high = 0.19984223 + f * (-0.16602719 + f * (0.147039 + f * (-0.14030892 + f * 0.09048785)));
    let rest = 0.33333415 + f * (-0.25000703 + f * high);
    let log_f = f + f * f * (f * rest - 0.5);
    return abs(f32(bitcast<i32>(e)) * (0.6931471805599453 * 0x1p-23) + log_f);
}

// Two normal numbers by G. E. P. Box and M. E. Muller (1958), the sine first, as `curand_normal2`: the angle is
// 2 pi (y + 1/2) / 2^32, here as quarters of a turn (the upper two bits of `turns`) and a rest of at most an eighth.
fn random_normal(x: u32, y: u32) -> vec2<f32> {
    let turns = y + 0x20000000u;
    let angle = (f32(bitcast<i32>(y << 2u)) + 2.0) * (6.283185307179586 * 0x1p-34);
    let z = angle * angle;
    let sine = angle + angle * z * (-0.16666664 + z * (0.008332748 - z * 0.00019587891));
    let cosine = 1.0 + z * (z * (0.041666664 + z * (-0.0013888302 + z * 2.4547942e-5)) - 0.5);
    let point = select(vec2<f32>(sine, cosine), vec2<f32>(cosine, -sine), (turns & 0x40000000u) != 0u);
    let square = 2.0 * random_exponential(x);
    let radius = square * inverseSqrt(max(square, 0x1p-120));
    return bitcast<f32>(bitcast<u32>(radius) | (turns & 0x80000000u)) * point;
}
