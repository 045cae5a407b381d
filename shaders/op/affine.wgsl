// Affine maps x -> scale x + shift, applied in order: first `a`, then `b`. VALUES: a result is what becomes of 0.
struct State { scale: f32, shift: f32 }

fn state_identity() -> State { return State(1.0, 0.0); }
fn state_of(scale: T, shift: T) -> State { return State(scale, shift); }
fn state_combine(a: State, b: State) -> State {
    return State(b.scale * a.scale, fma(b.scale, a.shift, b.shift));
}
#if VALUES
fn state_result(s: State) -> T { return s.shift; }
#else
fn state_result(s: State) -> vec2<T> { return vec2<T>(s.scale, s.shift); }
#endif
