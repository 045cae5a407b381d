use super::*;

#[test]
fn runs_give_their_first_element_and_length() {
    assert_eq!(run_length(&[7, 7, 3, 3, 3, 7]), (vec![7, 3, 7], vec![2, 3, 1]));
    assert_eq!(run_length::<u32>(&[]), (vec![], vec![]));
    assert_eq!(run_length(&[f32::NAN, f32::NAN]).1, [1, 1]);
}
