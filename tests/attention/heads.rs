//! `Attention` of any head size, with values of another size, without keys or queries, with a cap and with scores.

use super::attention::Case;
use crate::support::coverage::{all, sample};
use crate::support::{Random, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::attention::{Attention, ScoreStage};
use tilework::prelude::*;
use tilework::reference::{AttentionInputs, attention_scores, attention_scores_bound};

#[test]
fn any_head_size_matches_reference() {
    for device in devices() {
        Case::new([1, 2, 1, 5, 37, 33], |op| op.causal()).check::<f16, f16>(device);
        if all() {
            Case::new([2, 2, 2, 18, 40, 100], |op| op.window(9)).lengths(&[40, 21]).check::<f32, f32>(device);
        }
        if device.main {
            for &d in sample(&[7, 1, 2, 90, 36], 1) {
                Case::new([1, 2, 1, 18, 37, d], |op| op.causal()).masked([1, 1]).check::<f32, f16>(device);
                if all() {
                    Case::new([1, 2, 1, 3, 45, d], |op| op.window(7)).check::<f16, f32>(device);
                }
            }
            if all() {
                Case::new([2, 2, 1, 9, 40, 99], |op| op).paged(16).lengths(&[40, 33]).check::<f16, f16>(device);
            }
            // Only `naive`; before it, in the complete run, `naive` and `flash`.
            if all() {
                Case::new([1, 1, 1, 5, 20, 320], |op| op).values_of(60).check::<f32, f32>(device);
            }
            Case::new([1, 1, 1, 2, 20, 576], |op| op).values_of(512).check::<f16, f16>(device);
        }
    }
}

#[test]
fn values_of_another_size_match_reference() {
    for device in devices() {
        Case::new([2, 4, 2, 5, 37, 24], |op| op.causal()).values_of(40).check::<f32, f32>(device);
        if device.main {
            let sizes = [(5, 16), (192, 128), (16, 5), (33, 1), (64, 128), (33, 5), (100, 36), (8, 256)];
            for &(d, e) in sample(&sizes, 1) {
                if all() {
                    Case::new([1, 2, 2, 18, 40, d], |op| op.window(11))
                        .values_of(e)
                        .masked([1, 2])
                        .check::<f16, f16>(device);
                }
                Case::new([2, 2, 1, 3, 40, d], |op| op.causal())
                    .values_of(e)
                    .paged(16)
                    .lengths(&[40, 21])
                    .check::<f32, f16>(device);
            }
        }
    }
}

#[test]
fn capped_scores_match_reference() {
    for device in devices() {
        let case = Case::new([1, 2, 1, 18, 40, 32], |op| op.causal().softcap(0.7));
        case.masked([1, 1]).check::<f32, f32>(device);
        if device.main {
            if !all() {
                continue;
            }
            Case::new([1, 2, 1, 3, 70, 64], |op| op.softcap(2.0)).paged(16).check::<f16, f16>(device);
            // A cap far above the scores has no effect; one far below makes them equal.
            Case::new([1, 2, 1, 70, 70, 40], |op| op.softcap(1e38)).check::<f16, f16>(device);
            Case::new([1, 2, 1, 9, 70, 40], |op| op.softcap(1e-30).scale(100.0)).check::<f32, f32>(device);
        }
    }
}

/// Returns the output and the scores.
fn with_scores(gpu: &Gpu, op: &Attention, shape: [usize; 6], mask: &[f32]) -> [Vec<f32>; 2] {
    let [b, h, g, t, s, d] = shape;
    let mut random = Random::new(7);
    let [q, k, v] = [b * h * t, b * g * s, b * g * s].map(|rows| random.elements::<f32>(rows * d));
    let plan = op.plan::<f32>(gpu).unwrap();
    let (output, scores) = (gpu.alloc::<f32>(q.len()).unwrap(), gpu.alloc::<f32>(b * h * t * s).unwrap());
    let [on_q, on_k, on_v, on_mask] = [&q[..], &k, &v, mask].map(|x| gpu.upload(x).unwrap());
    let mut rec = gpu.recorder();
    let with = plan.with().with_mask(&on_mask).with_scores(&scores);
    with.record(&mut rec, &on_q, &on_k, &on_v, &output).unwrap();
    rec.submit().unwrap();
    let inputs = AttentionInputs { mask: Some(mask), ..AttentionInputs::default() };
    let want = numbers(&attention_scores(op, &q, &k, inputs));
    let bound = attention_scores_bound(op, &q, &k, inputs);
    let scores = scores.read().unwrap();
    assert_close(&format!("{op:?}"), &numbers(&scores), &want, &bound);
    [output.read().unwrap(), scores]
}

#[test]
fn scores_of_each_step_match_reference() {
    for device in devices().iter().filter(|d| d.main) {
        let (t, s) = (5, 9);
        let shape = [2, 4, 2, t, s, 20];
        // The last row sees keys of -infinity only.
        let mask: Vec<f32> =
            (0..t * s).map(|i| if i / s == t - 1 { f32::NEG_INFINITY } else { (i % 4) as f32 }).collect();
        let op = Attention::new([2, 4, t, 20], [2, s]).causal().softcap(0.8).masked([1, 1]);
        let mut plain = None;
        for stage in ScoreStage::ALL {
            let [output, scores] = with_scores(&device.gpu, &op.clone().scores(stage), shape, &mask);
            // The output does not depend on the step.
            assert_eq!(plain.get_or_insert(output.clone()), &output, "{stage:?}");
            let row = &scores[(t - 2) * s..][..s];
            match stage {
                ScoreStage::Weights => {
                    assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{row:?}");
                    assert!(row[s - 1] == 0.0 && scores[(t - 1) * s..][..s].iter().all(|w| *w == 0.0));
                }
                ScoreStage::Masked => assert_eq!(row[s - 1], f32::NEG_INFINITY),
                _ => assert!(scores.iter().all(|x| x.is_finite())),
            }
        }
    }
}

#[test]
fn no_keys_give_zeros_and_no_queries_nothing() {
    let variants = || std::iter::once("auto").chain(Attention::variants().iter().map(|v| v.name));
    for device in devices() {
        for variant in variants() {
            for e in [16, 7] {
                let op = Attention::new([2, 4, 3, 16], [2, 0]).value_size(e).variant(variant);
                let output = device.gpu.upload(&vec![f16::ONE; 2 * 4 * 3 * e + 1]).unwrap();
                let plan = match op.plan::<f16>(&device.gpu) {
                    Err(e) if variant == "coop" && e.kind() == ErrorKind::Unsupported => continue,
                    plan => plan.unwrap(),
                };
                let q = device.gpu.upload(&vec![f16::NAN; 2 * 4 * 3 * 16]).unwrap();
                let none = device.gpu.alloc::<f16>(0).unwrap();
                let mut rec = device.gpu.recorder();
                let written = output.slice(..2 * 4 * 3 * e).unwrap();
                plan.record(&mut rec, &q, &none, &none, written).unwrap();
                rec.submit().unwrap();
                let got = output.read().unwrap();
                let (zeros, rest) = got.split_at(2 * 4 * 3 * e);
                assert!(zeros.iter().all(|x| x.to_bits() == 0), "{}: {variant}", device.label);
                assert_eq!(rest, [f16::ONE], "{}: {variant}", device.label);
            }
        }
    }
    let Some(gpu) = gpu() else { return };
    for (shape, [g, s]) in [([1, 4, 0, 16], [2, 9]), ([0, 4, 3, 16], [2, 9]), ([1, 0, 3, 16], [0, 9])] {
        let [b, h, t, d] = shape;
        let op = Attention::new(shape, [g, s]);
        let (q, k) = (gpu.alloc_zeroed::<f32>(b * h * t * d).unwrap(), gpu.alloc_zeroed::<f32>(b * g * s * d).unwrap());
        assert!(gpu.attention(&op, &q, &k, &k).unwrap().is_empty(), "{op:?}");
        assert_eq!(op.plan::<f32>(gpu).unwrap().report().kernels.len(), 0);
    }
}
