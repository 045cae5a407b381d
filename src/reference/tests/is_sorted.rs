use super::*;

#[test]
fn order_by_hand() {
    let nan = f32::NAN;
    assert!(is_sorted(&[-1.0, 0.0, -0.0, 2.0, nan, -nan], false) && !is_sorted(&[nan, 1.0], false));
    assert!(is_sorted(&[2.0, -0.0, 0.0, -1.0, nan, -nan], true) && !is_sorted(&[nan, 1.0], true));
    assert!(is_sorted::<u32>(&[], false) && is_sorted(&[3u32], true) && !is_sorted(&[1, 2, 1], false));
}
