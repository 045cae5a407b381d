use super::*;

#[test]
fn seeds_give_permutations() {
    let x: Vec<u32> = (0..200).collect();
    let [a, b] = [1, 2].map(|seed| shuffle(&Shuffle::new(200).seed(seed), &x));
    let sorted = |mut x: Vec<u32>| {
        x.sort();
        x
    };
    assert!(a != b && a != x);
    assert_eq!((sorted(a), sorted(b)), (x.clone(), x));
}
