use super::*;

#[test]
fn categories_come_as_often_as_their_weight() {
    let drawn = categorical(&Categorical::new(&[2.0, 0.0, 1.0, 5.0], 40_000).seed(8));
    let count = |k: u32| drawn.iter().filter(|x| **x == k).count();
    assert!((9_500..10_500).contains(&count(0)) && count(1) == 0 && (4_600..5_400).contains(&count(2)));
}
