// Minimum and maximum in one pass, as keys whose unsigned order is that of the elements. NaN lies beyond all numbers on
// either side. The importer declares `T`, and the flags FLOAT and SIGNED say which type it is.
struct State { low: u32, high: u32 }

fn key_of(x: T) -> u32 {
#if FLOAT
    let bits = bitcast<u32>(x);
    return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
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
    let bits = select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u);
    return bitcast<T>(select(bits, 0x7fc00000u, key == 0u || key == 4294967295u));
#else
#if SIGNED
    return bitcast<T>(key ^ 0x80000000u);
#else
    return key;
#endif
#endif
}

fn state_identity() -> State {
#if FLOAT
    // Infinity, and minus infinity.
    return State(0xff800000u, 0x007fffffu);
#else
    return State(4294967295u, 0u);
#endif
}

fn state_of(x: T) -> State {
    let key = key_of(x);
#if FLOAT
    if is_nan(x) { return State(0u, 4294967295u); }
#endif
    return State(key, key);
}

fn state_combine(a: State, b: State) -> State { return State(min(a.low, b.low), max(a.high, b.high)); }
fn state_result(s: State) -> vec2<T> { return vec2<T>(of_key(s.low), of_key(s.high)); }
