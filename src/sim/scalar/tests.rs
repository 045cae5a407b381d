use super::*;

fn one(row: Row1, x: u32) -> u32 {
    let mut r = [x, 0];
    row(&mut r, 1, 1, 0);
    r[1]
}

fn two(row: Row2, x: u32, y: u32) -> u32 {
    let mut r = [x, y, 0];
    row(&mut r, 1, 2, 0, 1);
    r[2]
}

#[test]
fn integers_divide_and_shift_as_the_language_says() {
    let (divide, _, guard) = binary(BinaryOperator::Divide, ScalarKind::Sint).unwrap();
    assert_eq!((two(divide, 7, 0), two(divide, i32::MIN as u32, u32::MAX)), (7, i32::MIN as u32));
    assert!(guard.unwrap().wrong(7, 0).is_some() && guard.unwrap().wrong(7, 2).is_none());
    let (modulo, ..) = binary(BinaryOperator::Modulo, ScalarKind::Sint).unwrap();
    assert_eq!((two(modulo, -7i32 as u32, 4) as i32, two(modulo, 7, 0)), (-3, 0));
    let (shift, _, guard) = binary(BinaryOperator::ShiftRight, ScalarKind::Sint).unwrap();
    assert_eq!((two(shift, -8i32 as u32, 1) as i32, two(shift, 8, 33)), (-4, 4));
    assert!(guard.unwrap().wrong(1, 32).is_some());
}

#[test]
fn bits() {
    let leading = unary(MathFunction::FirstLeadingBit, ScalarKind::Sint).unwrap().0;
    assert_eq!([0, 1, u32::MAX, -2i32 as u32].map(|x| one(leading, x) as i32), [-1, 0, -1, 0]);
    let mut r = [0xdead_beef, 8, 8, 0];
    EXTRACT_SIGNED(&mut r, 1, 3, 0, 1, 2);
    assert_eq!(r[3] as i32, -66);
    assert_eq!((two(INSERT_MASK, 4, 8), two(INSERT_MASK, 0, 32), two(INSERT_MASK, 32, 1)), (0xff0, u32::MAX, 0));
    assert_eq!((one(FRACTION, 8f32.to_bits()), one(EXPONENT, 8f32.to_bits())), (0.5f32.to_bits(), 4));
}

#[test]
fn packed_words() {
    let word = 0x80ff_7f01;
    let unpacked = [0, 1, 2, 3].map(|c| one(unpack(MathFunction::Unpack4xI8, c).unwrap(), word) as i32);
    assert_eq!(unpacked, [1, 127, -1, -128]);
    assert_eq!(two(dot_packed(MathFunction::Dot4I8Packed).unwrap(), word, 0x0101_0101) as i32, -1);
    assert_eq!(one(HIGH_HALF, 0x3c00_0000), 1f32.to_bits());
    assert_eq!(two(JOIN_HALVES, 1f32.to_bits(), (-2f32).to_bits()), 0xc000_3c00);
    // 1 + 2^-11 is halfway between two f16 values and rounds to even.
    assert_eq!(one(ROUND_F16, 1.000_488_3f32.to_bits()), 1f32.to_bits());
}
