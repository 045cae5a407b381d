use super::*;

#[test]
fn ranks_by_hand() {
    let x = [3.0f32, -0.0, f32::NAN, 0.0];
    assert_eq!(nth_element(&x, 0, false).map(f32::to_bits), Some(0x8000_0000));
    assert_eq!(nth_element(&x, 0, true), Some(3.0));
    assert_eq!(nth_element(&[-f32::NAN], 0, true).map(f32::to_bits), Some(0x7fc0_0000));
    assert_eq!(nth_element(&[5u32, 1, 5], 1, false), Some(5));
    assert_eq!(nth_element(&[5u32], 1, false), None);
}
