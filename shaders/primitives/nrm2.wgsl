// The root of a sum of squares without overflow or underflow: three sums, of squares of small, middle and large
// numbers, the outer two scaled (J. L. Blue, 1978). The importer declares `T`, f32.
struct State { small: f32, middle: f32, large: f32 }

fn state_identity() -> State { return State(0.0, 0.0, 0.0); }

fn state_of(x: T) -> State {
    // By bits, so that NaN is large: 2^-40 and 2^40 are the borders.
    let size = bitcast<u32>(x) & 0x7fffffffu;
    if size < 0x2b800000u {
        let y = x * 0x1p75;
        return State(y * y, 0.0, 0.0);
    }
    if size < 0x53800000u { return State(0.0, x * x, 0.0); }
    let y = x * 0x1p-90;
    return State(0.0, 0.0, y * y);
}

fn state_combine(a: State, b: State) -> State {
    return State(a.small + b.small, a.middle + b.middle, a.large + b.large);
}

// sqrt(a^2 + b^2) for a and b of at least 0.
fn joined(a: f32, b: f32) -> f32 {
    let larger = max(a, b);
    let ratio = min(a, b) / select(larger, 1.0, larger == 0.0);
    return larger * sqrt(1.0 + ratio * ratio);
}

fn state_result(s: State) -> T {
    // Infinity and NaN are the norm themselves.
    if bitcast<u32>(s.large) >= 0x7f800000u { return s.large; }
    let middle = sqrt(s.middle);
    if s.large > 0.0 { return joined(sqrt(s.large) * 0x1p90, middle); }
    return joined(middle, sqrt(s.small) * 0x1p-75);
}
