//! Floats of 8 bits, E4M3 without infinities.

/// Decodes E4M3: a sign, 4 bits of exponent biased by 7, 3 bits of fraction; 0x7f and 0xff are NaN.
pub fn fp8_value(code: u8) -> f32 {
    let (exponent, fraction) = (i32::from(code >> 3 & 15), f32::from(code & 7));
    let magnitude = match (exponent, code & 7) {
        (15, 7) => f32::NAN,
        (0, _) => fraction / 8.0 * 2f32.powi(-6),
        _ => (1.0 + fraction / 8.0) * 2f32.powi(exponent - 7),
    };
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

/// Rounds `x` to the nearest E4M3 code, ties to even. Magnitudes above 448 become 448, NaN becomes 0x7f.
pub fn fp8_code(x: f32) -> u8 {
    if x.is_nan() {
        return 0x7f;
    }
    let distance = |code: u8| (f64::from(fp8_value(code)) - f64::from(x.abs()).min(448.0)).abs();
    // Codes of numbers from 0 on have their order.
    let above = (0..0x7e).find(|code| fp8_value(*code) >= x.abs()).unwrap_or(0x7e);
    let below = above.saturating_sub(1);
    let nearest = match distance(below).total_cmp(&distance(above)) {
        std::cmp::Ordering::Less => below,
        std::cmp::Ordering::Greater => above,
        std::cmp::Ordering::Equal => below + below % 2,
    };
    nearest | if x.is_sign_negative() { 0x80 } else { 0 }
}

#[cfg(test)]
mod tests;
