//! `SampleLogits` against the reference.

use super::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::nn::SampleLogits;
use tilework::program::Op;
use tilework::reference::sample_logits;
use tilework::{ErrorKind, Plannable};

fn check<T: Sample>(device: &Device, op: &SampleLogits, logits: &[T], rows: usize)
where
    SampleLogits: Op<T>,
{
    let gpu = &device.gpu;
    let (given, tokens) = (gpu.upload(logits).unwrap(), gpu.upload(&vec![7u32; rows + 2]).unwrap());
    let mut rec = gpu.recorder();
    op.plan::<T>(gpu).unwrap().record(&mut rec, &given, tokens.slice(..rows).unwrap()).unwrap();
    rec.submit().unwrap();
    let got = tokens.read().unwrap();
    let want = sample_logits(op, logits);
    // Borders between tokens are narrow, so most rows have one right answer.
    let open = want.iter().filter(|tokens| tokens.len() > 1).count();
    assert!(open <= 1 + rows / 4, "{open} of {rows} rows are open");
    for (row, (got, want)) in got.iter().zip(&want).enumerate() {
        assert!(want.contains(got), "{}: {op:?} row {row}: {got}, wanted {want:?}", device.label);
    }
    assert_eq!(got[rows..], [7; 2]);
}

#[test]
fn tokens_match_the_reference() {
    for device in devices() {
        for (rows, classes) in [(0, 5), (3, 1), (40, 2), (9, 255), (7, 257), (3, 5003)] {
            let mut random = Random::new(classes as u64);
            let x: Vec<f32> = random.elements::<f32>(rows * classes).iter().map(|x| 6.0 * x).collect();
            let halves: Vec<f16> = x.iter().map(|x| f16::from_f32(*x)).collect();
            let op = SampleLogits::new([rows, classes]).seed(3).stream(5).offset((1 << 34) - 2);
            for op in [
                op.clone(),
                op.clone().temperature(0.0),
                op.clone().temperature(2.5).top_k(1),
                op.clone().top_k(17),
                op.clone().top_p(0.35),
                op.clone().temperature(0.7).top_k(40).top_p(0.9),
            ] {
                check(device, &op, &x, rows);
                check(device, &op, &halves, rows);
            }
        }
    }
}

/// Rows of equal logits, of nothing, of infinities and NaN.
#[test]
fn unusual_rows_follow_the_rules() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows: [[f32; 4]; 6] = [
        [nan, -inf, nan, -inf],
        [nan, 1.0, -inf, nan],
        [2.0; 4],
        [0.0, inf, 3.0, -inf],
        [-0.0, 0.0, -1e30, nan],
        [-inf, -inf, -inf, -3e38],
    ];
    let x = rows.concat();
    for device in devices() {
        for seed in 0..8 {
            let op = SampleLogits::new([6, 4]).seed(seed);
            for op in [op.clone(), op.clone().top_k(1), op.clone().top_p(1e-9), op.clone().temperature(0.0)] {
                check(device, &op, &x, 6);
            }
        }
        let want = sample_logits(&SampleLogits::new([6, 4]).temperature(0.0), &x);
        assert_eq!(want, [[0], [1], [0], [1], [0], [3]]);
    }
}

#[test]
fn sample_logits_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = || SampleLogits::new([2, 4]);
    let kind = |op: SampleLogits| refusal::<f32>(gpu, &op);
    for t in [-1.0, f32::NAN, f32::INFINITY, 1e-40] {
        assert_eq!(kind(op().temperature(t)), ErrorKind::InvalidArgument, "{t}");
    }
    for p in [0.0, -0.5, 1.5, f64::NAN] {
        assert_eq!(kind(op().top_p(p)), ErrorKind::InvalidArgument, "{p}");
    }
    assert_eq!(kind(op().top_k(0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(op().variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(SampleLogits::new([2, 0])), ErrorKind::Shape);
    assert_eq!(kind(SampleLogits::new([1, (1 << 19) + 1])), ErrorKind::TooLarge);
    assert_eq!(kind(SampleLogits::new([usize::MAX, 4])), ErrorKind::TooLarge);
}
