use super::*;
use crate::dense::Gemm;
use crate::primitives::{Reduce, Sum};
use crate::program::{DeviceProfile, Op};

fn words(values: &[f32]) -> Vec<Vec<u32>> {
    vec![values.iter().map(|x| x.to_bits()).collect()]
}

#[test]
fn sums_may_differ_by_rounding_only() {
    let program = Op::<f32>::lower(&Gemm::new(16, 16, 100), &DeviceProfile::mesa()).unwrap();
    let want: Vec<f32> = (0..256).map(|i| (i as f32).sin() * 10.0).collect();
    let differs = |at: usize, by: f32| {
        let mut got = want.clone();
        got[at] += by;
        difference(&program, 0.0, &words(&want), &words(&got))
    };
    assert_eq!(differs(3, 0.0), None);
    assert_eq!(differs(3, 1e-5), None);
    let shifted: Vec<f32> = want.iter().map(|x| x + 1e-2).collect();
    assert_eq!(difference(&program, 1e3, &words(&want), &words(&shifted)), None);
    assert!(differs(255, 1e-2).unwrap().starts_with("element 255 of c is"));
    assert!(differs(0, f32::NAN).unwrap().contains("NaN"));
    assert!(differs(0, f32::INFINITY).is_some());
}

#[test]
fn integers_must_be_equal() {
    let program = Op::<u32>::lower(&Reduce::new(Sum, 1000), &DeviceProfile::mesa()).unwrap();
    assert_eq!(difference(&program, 0.0, &[vec![7]], &[vec![7]]), None);
    let text = difference(&program, 0.0, &[vec![7]], &[vec![8]]).unwrap();
    assert!(text.ends_with("is 8, not 7"), "{text}");
}

#[test]
fn a_sum_may_be_small_by_chance() {
    let program = Op::<f32>::lower(&Reduce::new(Sum, 1 << 20), &DeviceProfile::mesa()).unwrap();
    assert_eq!(difference(&program, 0.0, &words(&[1e-3]), &words(&[1.1e-3])), None);
    assert!(difference(&program, 0.0, &words(&[1e-3]), &words(&[-30.0])).is_some());
}

#[test]
fn halves_and_bytes_are_unpacked_from_words() {
    let half = |x: f32| u32::from(f16::from_f32(x).to_bits());
    assert_eq!(value(DType::F16, &[0, half(1.5) | half(-2.0) << 16], 3), -2.0);
    assert_eq!(value(DType::I8, &[0, 0xfe00], 5), -2.0);
    assert_eq!(value(DType::U8, &[0xff00_0000], 3), 255.0);
    assert_eq!(value(DType::U64, &[0, 0, 5, 1], 1), (1u64 << 32 | 5) as f64);
}
