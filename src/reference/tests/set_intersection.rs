use super::*;
use crate::reference::{set_difference, set_union};

#[test]
fn sets_by_hand() {
    let (a, b) = (&[1u32, 4, 4, 4, 9][..], &[0u32, 4, 4, 5, 9, 9][..]);
    assert_eq!(set_intersection(a, b), [4, 4, 9]);
    assert_eq!(set_difference(a, b), [1, 4]);
    assert_eq!(set_difference(b, a), [0, 5, 9]);
    assert_eq!(set_union(a, b), [0, 1, 4, 4, 4, 5, 9, 9]);
    assert_eq!((set_union(a, &[]), set_union(&[], b)), (a.to_vec(), b.to_vec()));
    assert_eq!((set_intersection(a, &[]), set_difference(&[], b)), (vec![], vec![]));
}

#[test]
fn floats_are_compared_by_value() {
    let (a, b) = ([0.0f32, f32::NAN], [-0.0f32, 0.0, -f32::NAN]);
    let bits = |x: Vec<f32>| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(set_intersection(&b, &a)), bits(vec![-0.0, -f32::NAN]));
    assert_eq!(bits(set_union(&a, &b)), bits(vec![0.0, 0.0, f32::NAN]));
}
