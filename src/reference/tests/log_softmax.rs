use super::*;

#[test]
fn logarithms_of_probabilities() {
    let half = -std::f32::consts::LN_2;
    assert_eq!(log_softmax(2, &[7.0f32, 7.0]), [half, half]);
    // Logarithms of probabilities that round to 0 stay finite.
    assert_eq!(log_softmax(2, &[0.0f32, -1000.0]), [0.0, -1000.0]);
    assert_eq!(log_softmax(2, &[0.0f32, -f32::INFINITY]), [0.0, -f32::INFINITY]);
    assert!(log_softmax(2, &[-f32::INFINITY; 2]).iter().all(|x| x.is_nan()));
}

#[test]
fn bound_is_small() {
    assert!(log_softmax_bound(3, &[0.0f32, 1.0, 2.0]).iter().all(|b| *b > 0.0 && *b < 1e-5));
}
