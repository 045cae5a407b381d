use super::*;

const A: [f32; 4] = [2.0, 99.0, 1.0, 4.0];

#[test]
fn systems_of_two_unknowns_are_solved() {
    // (2 0; 1 4) (2; 2) = (4; 10); (2 1; 0 4) (1; 2) = (4; 8).
    assert_eq!(trsm(&Trsm::new(2, 1), &A, &[4.0, 10.0]), [2.0, 2.0]);
    assert_eq!(trsm(&Trsm::new(2, 1).trans(), &A, &[4.0, 8.0]), [1.0, 2.0]);
    // (1 2) (2 0; 1 4) = (4 8).
    assert_eq!(trsm(&Trsm::new(1, 2).right().alpha(0.5), &A, &[8.0, 16.0]), [1.0, 2.0]);
    assert_eq!(trsm(&Trsm::new(2, 1).unit(), &A, &[4.0, 10.0]), [4.0, 6.0]);
    assert_eq!(trsm(&Trsm::new(2, 1).upper(), &[2.0, 1.0, 99.0, 4.0], &[4.0, 8.0]), [1.0, 2.0]);
}

#[test]
fn singular_systems_give_infinities_and_no_bound() {
    let a = [1.0, 0.0, 1.0, 0.0];
    let op = Trsm::new(2, 1);
    assert_eq!(trsm(&op, &a, &[1.0, 3.0]), [1.0, f64::INFINITY]);
    let bound = trsm_bound(&op, &a, &[1.0, 3.0]);
    assert!(bound[0] < 1e-5 && bound[1] == f64::INFINITY);
    assert_eq!(trsm(&op.alpha(0.0), &[f32::NAN; 4], &[f32::NAN, 3.0]), [0.0, 0.0]);
}
