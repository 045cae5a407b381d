use super::*;

#[test]
fn codes_are_those_of_the_paper() {
    // Table 1 of "FP8 formats for deep learning", 2022.
    for (code, value) in [(0x7e, 448.0), (0x08, 2f32.powi(-6)), (0x07, 0.875 * 2f32.powi(-6))] {
        assert_eq!((fp8_value(code), fp8_value(code | 0x80)), (value, -value));
    }
    assert_eq!((fp8_value(1), fp8_value(0x38)), (2f32.powi(-9), 1.0));
    assert!(fp8_value(0x7f).is_nan() && fp8_value(0xff).is_nan());
    for code in (0..=0xff).filter(|code| code & 0x7f != 0x7f) {
        assert_eq!(fp8_code(fp8_value(code)), code);
    }
}

#[test]
fn numbers_are_rounded_to_even_and_saturated() {
    // 1 has steps of 1/8 above it and of 1/16 below.
    for (x, code) in [(1.0625, 0x38), (1.1875, 0x3a), (0.96875, 0x38), (0.97, 0x38), (0.96, 0x37)] {
        assert_eq!((fp8_code(x), fp8_code(-x)), (code, code | 0x80), "{x}");
    }
    for (x, code) in [(464.0, 0x7e), (1e30, 0x7e), (f32::INFINITY, 0x7e), (400.0, 0x7c), (432.0, 0x7e)] {
        assert_eq!((fp8_code(x), fp8_code(-x)), (code, code | 0x80), "{x}");
    }
    let step = 2f32.powi(-9);
    for (steps, code) in [(0.5, 0), (0.500_001, 1), (1.5, 2), (2.5, 2), (7.5, 8), (0.0, 0), (1e-38, 0)] {
        assert_eq!(fp8_code(steps * step), code, "{steps}");
    }
    assert_eq!((fp8_code(f32::NAN), fp8_code(-f32::NAN), fp8_code(-0.0)), (0x7f, 0x7f, 0x80));
}
