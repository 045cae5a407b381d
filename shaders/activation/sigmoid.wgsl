// 1 / (1 + exp(-x)). The exponential is taken of -|x|, so it cannot overflow.
fn activate(x: f32) -> f32 {
    let e = exp(-abs(x));
    return select(e, 1.0, x >= 0.0) / (1.0 + e);
}
