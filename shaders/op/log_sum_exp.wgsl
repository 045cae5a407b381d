// log(sum of exp(x)), without overflow: the largest element, and the sum of exp(x - largest). Infinity and NaN are in
// the sum, with the largest finite number beside them.
struct State { largest: f32, sum: f32 }

const LEAST: f32 = -3.4028234e38;

fn state_identity() -> State { return State(LEAST, 0.0); }

fn state_of(x: T) -> State {
    let bits = bitcast<u32>(x);
    // Minus infinity adds nothing.
    if bits == 0xff800000u { return State(LEAST, 0.0); }
    if (bits & 0x7f800000u) == 0x7f800000u { return State(-LEAST, x); }
    return State(x, 1.0);
}

fn state_combine(a: State, b: State) -> State {
    let largest = max(a.largest, b.largest);
    // exp(-200) is 0, and exp need not take minus infinity.
    let factor = exp(max(min(a.largest, b.largest) - largest, -200.0));
    let second = a.largest < b.largest;
    return State(largest, fma(select(b.sum, a.sum, second), factor, select(a.sum, b.sum, second)));
}

fn state_result(s: State) -> T {
    let bits = bitcast<u32>(s.sum);
    if (bits & 0x7f800000u) == 0x7f800000u { return s.sum; }
    let minus_infinity = 0xff800000u;
    return bitcast<T>(select(bitcast<u32>(s.largest + log(s.sum)), minus_infinity, s.sum == 0.0));
}
