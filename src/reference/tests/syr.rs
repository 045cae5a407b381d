use super::*;

#[test]
fn triangles_by_hand() {
    assert_eq!(syr(&Syr::new(2), &[1.0, 2.0], &[0.0, 7.0, 0.0, 1.0]), [1.0, 7.0, 2.0, 5.0]);
    assert_eq!(syr(&Syr::new(2).upper().packed().alpha(2.0), &[1.0, 2.0], &[0.0; 3]), [2.0, 4.0, 8.0]);
}
