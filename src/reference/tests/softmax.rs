use super::*;

#[test]
fn rows_sum_to_one() {
    assert_eq!(softmax(2, &[0.0f32, 0.0, 1000.0, 1000.0]), [0.5; 4]);
    let two = 2f32.ln();
    let got = softmax(3, &[0.0, two, -f32::INFINITY]);
    assert!((got[0] - 1.0 / 3.0).abs() < 1e-7 && (got[1] - 2.0 / 3.0).abs() < 1e-7 && got[2] == 0.0);
    assert_eq!(softmax(1, &[5.0f32, -3.0]), [1.0, 1.0]);
    assert!(softmax::<f32>(0, &[]).is_empty());
}

#[test]
fn undefined_softmax_is_nan() {
    let inf = f32::INFINITY;
    for row in [[-inf, -inf], [inf, 0.0], [f32::NAN, 0.0]] {
        assert!(softmax(2, &row).iter().all(|x| x.is_nan()), "{row:?}");
    }
}

#[test]
fn bound_grows_with_distance_and_is_small() {
    let bound = softmax_bound(2, &[0.0f32, -10.0]);
    assert!(bound[0] > 0.0 && bound[0] < 1e-4 && bound[1] < bound[0], "{bound:?}");
}
