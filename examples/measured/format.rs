//! Numbers and times for people.

/// Three digits, or all of a greater whole number.
pub(crate) fn digits(x: f64) -> String {
    let decimals = if x > 0.0 && x < 0.9995 {
        // So many zeros stand before the first digit that counts.
        2 + (-(x * 1.0005).log10().floor()).min(6.0) as usize
    } else if x < 9.995 {
        2
    } else if x < 99.95 {
        1
    } else {
        0
    };
    format!("{x:.decimals$}")
}

pub(crate) fn time(seconds: f64) -> String {
    if seconds < 999.5e-6 {
        digits(seconds * 1e6) + " us"
    } else if seconds < 999.5e-3 {
        digits(seconds * 1e3) + " ms"
    } else {
        digits(seconds) + " s"
    }
}
