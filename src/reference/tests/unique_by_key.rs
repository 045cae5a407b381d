use super::*;

#[test]
fn heads_keep_their_values() {
    assert_eq!(unique_by_key(&[7, 7, 3, 7], &[1, 2, 3, 4]), (vec![7, 3, 7], vec![1, 3, 4]));
    assert_eq!(unique_by_key(&[0.0, -0.0, f32::NAN, f32::NAN], &[1, 2, 3, 4]).1, [1, 3, 4]);
    assert_eq!(unique_by_key::<u32, u32>(&[], &[]), (vec![], vec![]));
}
