// Sobel gradients from the sums of three rows.
const STEP: u32 = 1u;

struct Row {
    difference: vec4<f32>, // right - left
    weighted: vec4<f32>,   // left + 2 here + right
}

// Of bytes every number here is whole and below 2^24, and so exact.
fn gradient(above: Row, here: Row, below: Row) -> vec4<f32> {
    let x = above.difference + 2.0 * here.difference + below.difference;
    let y = below.weighted - above.weighted;
#if ALONG_X
#if BYTES
    return abs(x);
#else
    return x;
#endif
#else
#if ALONG_Y
#if BYTES
    return abs(y);
#else
    return y;
#endif
#else
#if BYTES
    // The nearest whole root m: m^2 - m < n <= m^2 + m. A device's root may be off by a little.
    let n = vec4<u32>(x * x + y * y);
    var m = vec4<u32>(sqrt(vec4<f32>(n)) + 0.5);
    m = select(m, m - vec4(1u), (m > vec4(0u)) & (n <= m * m - m));
    m = select(m, m + vec4(1u), n > m * m + m);
    return vec4<f32>(m);
#else
    return sqrt(x * x + y * y);
#endif
#endif
#endif
}
