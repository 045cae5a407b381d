use super::*;

#[test]
fn bands_by_hand() {
    // (1 2 0; 0 3 4): the main diagonal and one above.
    let (op, a) = (Gbmv::new(2, 3, 0, 1), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(gbmv(&op, &a, &[1.0, 10.0, 100.0], &[0.0; 2]).unwrap(), [21.0, 430.0]);
    assert_eq!(gbmv(&op.trans(), &a, &[1.0, 10.0], &[0.0; 3]).unwrap(), [1.0, 32.0, 40.0]);
}
