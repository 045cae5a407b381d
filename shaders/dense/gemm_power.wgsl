// Powers of two that bring the elements of a row or a column into the range of f16. Only exponents change.

// The power for a row or column whose largest magnitude has these bits: it moves to [2^14, 2^15).
fn power_of(magnitude: u32) -> i32 {
    let field = i32(magnitude >> 23u);
    // A subnormal number begins with the first of its bits.
    let exponent = select(field - 127, 31 - i32(countLeadingZeros(magnitude)) - 149, field == 0);
    return select(14 - exponent, 0, magnitude == 0u);
}

fn two_to(power: i32) -> f32 { return bitcast<f32>(u32(clamp(power, -126, 127) + 127) << 23u); }

// x 2^power in two steps, since the power itself may be beyond f32.
fn times_power(x: f32, power: i32) -> f32 {
    let half = power >> 1u;
    return x * two_to(half) * two_to(power - half);
}
