use super::*;

#[test]
fn integers_by_hand() {
    assert_eq!(sort_positions(&[3u32, 1, 2, 1], false, 0..32), [1, 3, 2, 0]);
    assert_eq!(sort_positions(&[3u32, 1, 2, 1], true, 0..32), [0, 2, 1, 3]);
    assert_eq!(sort_positions(&[5, -7, 0, i32::MIN], false, 0..32), [3, 1, 2, 0]);
    assert_eq!(sort_positions(&[5, -7, 0, i32::MAX], true, 0..32), [3, 0, 2, 1]);
    assert_eq!(sort_positions(&[1u64 << 40, 7, u64::MAX, 7], false, 0..64), [1, 3, 0, 2]);
    assert_eq!(sort_positions(&[1u64 << 40, 7, u64::MAX, 7], true, 0..64), [2, 0, 1, 3]);
}

#[test]
fn floats_have_a_total_order_with_nan_last() {
    let nan = f32::NAN;
    let keys = [1.0, -nan, 0.0, -0.0, nan, -1.0, f32::NEG_INFINITY, f32::INFINITY, 1e-45, -1e-45];
    assert_eq!(sort_positions(&keys, false, 0..32), [6, 5, 9, 3, 2, 8, 0, 7, 1, 4]);
    assert_eq!(sort_positions(&keys, true, 0..32), [7, 0, 8, 2, 3, 9, 5, 6, 1, 4]);
}

#[test]
fn narrow_keys_by_hand() {
    assert_eq!(sort_positions(&[200u8, 3, 7, 3], false, 0..8), [1, 3, 2, 0]);
    assert_eq!(sort_positions(&[-1i8, 5, -128, 127], false, 0..8), [2, 0, 1, 3]);
    assert_eq!(sort_positions(&[-1i8, 5, -128, 127], true, 0..8), [3, 1, 0, 2]);
    let halves = [1.0, f32::NAN, -0.0, 0.0, -2.0].map(f16::from_f32);
    assert_eq!(sort_positions(&halves, false, 0..16), [4, 2, 3, 0, 1]);
    assert_eq!(sort_positions(&halves, true, 0..16), [0, 3, 2, 4, 1]);
}

#[test]
fn only_the_bits_asked_for_count() {
    assert_eq!(sort_positions(&[0x31u32, 0x12, 0x21, 0x10], false, 4..8), [1, 3, 2, 0]);
    assert_eq!(sort_positions(&[0x31u32, 0x12, 0x21, 0x10], true, 0..4), [1, 0, 2, 3]);
    assert_eq!(sort_positions(&[2u32, 1, 0], false, 7..7), [0, 1, 2]);
    assert_eq!(sort_positions(&[2u32, 1, 0], false, 32..32), [0, 1, 2]);
}
