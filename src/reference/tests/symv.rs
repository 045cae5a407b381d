use super::*;

/// (1 2 0; 2 3 4; 0 4 5) times (1 10 100).
#[test]
fn each_packing_gives_the_same_product() {
    let (x, y, n) = ([1.0, 10.0, 100.0], [0.0; 3], f32::NAN);
    let of = |op: Symv, a: &[f32]| symv(&op, a, &x, &y).unwrap();
    let want = [21.0, 432.0, 540.0];
    assert_eq!(of(Symv::new(3), &[1.0, n, n, 2.0, 3.0, n, 0.0, 4.0, 5.0]), want);
    assert_eq!(of(Symv::new(3).upper(), &[1.0, 2.0, 0.0, n, 3.0, 4.0, n, n, 5.0]), want);
    assert_eq!(of(Symv::new(3).packed(), &[1.0, 2.0, 3.0, 0.0, 4.0, 5.0]), want);
    assert_eq!(of(Symv::new(3).packed().upper(), &[1.0, 2.0, 0.0, 3.0, 4.0, 5.0]), want);
    assert_eq!(of(Symv::new(3).banded(1), &[n, 1.0, 2.0, 3.0, 4.0, 5.0]), want);
    assert_eq!(of(Symv::new(3).banded(1).upper(), &[1.0, 2.0, 3.0, 4.0, 5.0, n]), want);
}
