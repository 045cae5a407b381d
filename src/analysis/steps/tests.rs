use super::*;

#[test]
fn known_answers() {
    assert_eq!((reduction_operations(1024), reduction_operations(0)), (1023, 0));
    assert_eq!((kogge_stone_operations(16), kogge_stone_operations(1)), (16 * 4 - 15, 0));
    assert_eq!((brent_kung_steps(2048), brent_kung_operations(1)), (21, 0));
    assert_eq!((coarsened_steps(1024, 4), uncoarsened_steps(1024, 4)), ((16, 10), (40, 40)));
}

#[test]
fn formulas_count_the_operations_of_the_trees() {
    for n in [2u64, 16, 256] {
        let strides = || (0..log2(n)).map(|i| 1 << i);
        let kogge_stone: u64 = strides().map(|s| n - s).sum();
        assert_eq!(kogge_stone, kogge_stone_operations(n));
        let up: u64 = strides().map(|s| n / (2 * s)).sum();
        let down: u64 = strides().map(|s| (n / (2 * s)).saturating_sub(1)).sum();
        assert_eq!(up + down, brent_kung_operations(n));
    }
}
