// Mean and variance in one pass: B. P. Welford (1962); parts are joined as T. F. Chan, G. H. Golub and R. J. LeVeque
// have it (1979). `squares` is the sum of squared differences from the mean. SAMPLE divides it by count - 1.
struct State { count: u32, mean: f32, squares: f32 }

fn state_identity() -> State { return State(0u, 0.0, 0.0); }
fn state_of(x: T) -> State { return State(1u, x, 0.0); }

fn state_combine(a: State, b: State) -> State {
    // If either is empty, the other one comes out unchanged.
    let count = a.count + b.count;
    let share = select(f32(b.count) / f32(count), 1.0, a.count == 0u);
    let difference = b.mean - a.mean;
    let between = f32(a.count) * share * difference * difference;
    return State(count, a.mean + difference * share, a.squares + b.squares + between);
}

fn state_result(s: State) -> vec2<T> {
#if SAMPLE
    let least = 2u;
    let freedom = f32(s.count - 1u);
#else
    let least = 1u;
    let freedom = f32(s.count);
#endif
    let variance = bitcast<u32>(s.squares / select(freedom, 1.0, s.count < least));
    // NaN where it is not defined.
    let words = vec2<u32>(
        select(bitcast<u32>(s.mean), 0x7fc00000u, s.count == 0u), select(variance, 0x7fc00000u, s.count < least),
    );
    return bitcast<vec2<T>>(words);
}
