// Sum of integers of 32 bits in 64, low word and high word. The importer declares `T`; the flag SIGNED says which type
// it is.
struct State { low: u32, high: u32 }

fn state_identity() -> State { return State(0u, 0u); }

fn state_of(x: T) -> State {
#if SIGNED
    return State(bitcast<u32>(x), bitcast<u32>(x >> 31u));
#else
    return State(x, 0u);
#endif
}

fn state_combine(a: State, b: State) -> State {
    let low = a.low + b.low;
    return State(low, a.high + b.high + u32(low < a.low));
}

fn state_result(s: State) -> vec2<T> { return vec2<T>(bitcast<T>(s.low), bitcast<T>(s.high)); }
