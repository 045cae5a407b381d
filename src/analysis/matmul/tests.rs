use super::*;

#[test]
fn known_answers() {
    assert_eq!(4 * Matmul { m: 40, n: 33, k: 31 }.elements_read(1, 1), 327_360);
    assert_eq!(4 * Matmul { m: 80, n: 69, k: 41 }.elements_read(16, 16), 122_180);
    assert_eq!(Matmul { m: 100, n: 92, k: 141 }.flop_executed(32).unwrap(), 3_932_160);
    let of_nothing = Matmul { m: 1, n: 1, k: 1 }.flop_executed(0).unwrap_err();
    assert_eq!(of_nothing.kind(), crate::ErrorKind::InvalidArgument);
    let cube = |n| Matmul { m: n, n, k: n };
    assert_eq!(cube(8192).flop(), 1_099_511_627_776);
    // 2 n operations for 2 n loads and a store.
    assert_eq!(cube(64).operations_per_access(1, 1), 128.0 / 129.0);
    assert_eq!(cube(64).elements_read(1, 1), 16 * cube(64).elements_read(16, 16));
}

#[test]
fn coarsening_over_columns() {
    let cube = Matmul { m: 1 << 10, n: 1 << 10, k: 1 << 10 };
    let one = cube.elements_read(16, 16) as f64;
    for c in [1u64, 2, 4, 8] {
        let share = cube.elements_read(16, 16 * c) as f64 / one;
        assert_eq!(share, (1 + c) as f64 / (2 * c) as f64);
    }
}
