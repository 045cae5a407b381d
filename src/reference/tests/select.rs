use super::*;

#[test]
fn any_flag_but_0_keeps() {
    assert_eq!(select(&[1, 2, 3, 4], &[0, 1, 0, u32::MAX]), [2, 4]);
    assert_eq!(select::<f32>(&[], &[]), [0.0; 0]);
}
