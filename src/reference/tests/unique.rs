use super::*;

#[test]
fn runs_give_their_first_element() {
    assert_eq!(unique(&[7, 7, 3, 3, 3, 7]), [7, 3, 7]);
    assert_eq!(unique::<u32>(&[]), [0; 0]);
    let bits: Vec<u32> = unique(&[-0.0f32, 0.0, 1.0]).iter().map(|x| x.to_bits()).collect();
    assert_eq!(bits, [(-0.0f32).to_bits(), 1f32.to_bits()]);
    assert_eq!(unique(&[f32::NAN, f32::NAN]).len(), 2);
}
