// Minimum and maximum in one pass, as keys whose unsigned order is that of the elements. Those of floats are shifted,
// so that every NaN is below all numbers in `low`, and above them in `high`.
// The importer declares `T`, and the flags FLOAT and SIGNED say which type it is.
struct State { low: u32, high: u32 }

#if FLOAT
const SHIFT: u32 = 0x007fffffu;
#else
const SHIFT: u32 = 0u;
#endif

fn key_of(x: T) -> u32 {
#if FLOAT
    let bits = bitcast<u32>(x);
    return bits ^ (bitcast<u32>(bitcast<i32>(bits) >> 31u) | 0x80000000u);
#else
#if SIGNED
    return bitcast<u32>(x) ^ 0x80000000u;
#else
    return x;
#endif
#endif
}

fn of_key(key: u32) -> T {
#if FLOAT
    return bitcast<T>(key ^ (~bitcast<u32>(bitcast<i32>(key) >> 31u) | 0x80000000u));
#else
#if SIGNED
    return bitcast<T>(key ^ 0x80000000u);
#else
    return key;
#endif
#endif
}

fn state_identity() -> State { return State(4294967295u, 0u); }

fn state_of(x: T) -> State {
    let key = key_of(x);
    return State(key + SHIFT, key - SHIFT);
}

fn state_combine(a: State, b: State) -> State { return State(min(a.low, b.low), max(a.high, b.high)); }
fn state_result(s: State) -> vec2<T> { return vec2<T>(of_key(s.low - SHIFT), of_key(s.high + SHIFT)); }
