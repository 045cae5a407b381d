use super::*;

#[test]
fn only_tokens_within_the_length_count() {
    let x = [1.0f32, 2.0, 5.0, 6.0, f32::NAN, f32::NAN];
    assert_eq!(mean_pool(&MeanPool::new([1, 3, 2]), &x, &[2]), [3.0, 4.0]);
    assert_eq!(mean_pool(&MeanPool::new([1, 3, 2]).normalized(), &x, &[2]), [0.6, 0.8]);
    assert_eq!(mean_pool(&MeanPool::new([1, 3, 2]).normalized(), &x, &[0]), [0.0, 0.0]);
    assert_eq!(mean_pool(&MeanPool::new([2, 1, 2]), &x[..4], &[9, 1]), [1.0, 2.0, 5.0, 6.0]);
    // Half of the smallest number rounds to 0.
    let tiny = [f32::from_bits(1), 0.0];
    let op = MeanPool::new([1, 2, 1]).normalized();
    assert!(mean_pool(&op, &tiny, &[2])[0] > 0.0);
    assert!(mean_pool_bound(&op, &tiny, &[2])[0] >= f64::from(mean_pool(&op, &tiny, &[2])[0]));
    let bound = mean_pool_bound(&MeanPool::new([1, 3, 2]).normalized(), &x, &[2]);
    assert!(bound.iter().all(|b| *b > 0.0 && *b < 1e-5));
}
