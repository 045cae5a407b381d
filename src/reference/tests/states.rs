use super::*;
use crate::primitives::{Affine, MeanVariance};

fn of(op: &Operator, row: &[f32]) -> Vec<f64> {
    state_prefixes(op, row).unwrap().values
}

#[test]
fn prefixes_by_hand() {
    let inf = f64::INFINITY;
    assert_eq!(of(&Operator::MinMax, &[3.0, -1.0]), [inf, -inf, 3.0, 3.0, -1.0, 3.0]);
    let wide = |row: &[u32]| state_prefixes(&Operator::Sum64, row).unwrap().values;
    assert_eq!(wide(&[u32::MAX, 3]), [0.0, 0.0, f64::from(u32::MAX), 0.0, 2.0, 1.0]);
    let signed = state_prefixes(&Operator::Sum64, &[-3i32, 2]).unwrap().values;
    assert_eq!(signed, [0.0, 0.0, -3.0, -1.0, -1.0, -1.0]);
    let mean = of(&Operator::MeanVariance(MeanVariance::population()), &[1.0, 3.0]);
    assert!(mean[0].is_nan() && mean[1].is_nan());
    assert_eq!(mean[2..], [1.0, 0.0, 2.0, 1.0]);
    let sample = of(&Operator::MeanVariance(MeanVariance::sample()), &[1.0, 3.0]);
    assert!(sample[3].is_nan());
    assert_eq!(sample[4..], [2.0, 2.0]);
    assert_eq!(of(&Operator::LogSumExp, &[-f32::INFINITY, 0.0, 0.0]), [-inf, -inf, 0.0, 2f64.ln()]);
    assert_eq!(of(&Operator::LogSumExp, &[0.0, f32::INFINITY]), [-inf, 0.0, inf]);
    let maps = [2.0, 1.0, 3.0, 0.0];
    assert_eq!(of(&Operator::Affine(Affine::maps()), &maps), [1.0, 0.0, 2.0, 1.0, 6.0, 3.0]);
    assert_eq!(of(&Operator::Affine(Affine::recurrence()), &maps), [0.0, 1.0, 3.0]);
    assert!(state_prefixes(&Operator::Sum, &[1.0f32]).is_none());
}

#[test]
fn nan_spreads_to_all_later_prefixes() {
    let both = of(&Operator::MinMax, &[1.0, f32::NAN, 2.0]);
    assert!(both[4..].iter().all(|x| x.is_nan()) && both[2] == 1.0);
    assert!(of(&Operator::LogSumExp, &[f32::NAN, 1.0])[1..].iter().all(|x| x.is_nan()));
}
