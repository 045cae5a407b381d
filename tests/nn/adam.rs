//! Every variant of `Adam` against the reference.

use super::training::{check, names, random, refusal};
use crate::support::{devices, gpu};
use tilework::ErrorKind;
use tilework::nn::Adam;
use tilework::program::When;
use tilework::reference::{adam, adam_bound};

#[test]
fn adam_matches_reference_with_both_kinds_of_decay() {
    for device in devices() {
        for n in [1, 64, 1001] {
            let [p, g, m] = [1, 2, 3].map(|seed| random::<f32>(seed, n));
            let v: Vec<f32> = random::<f32>(4, n).iter().map(|v| v * v).collect();
            for (variant, decoupled) in names(Adam::variants()).flat_map(|v| [(v, false), (v, true)]) {
                let op = Adam::new(n, 0.01).decay(0.1).when(decoupled, |op| op.decoupled()).variant(variant);
                for (m, v, full) in [(&m, &v, [0.3, 0.01]), (&vec![0.0; n], &vec![0.0; n], [0.0, 0.0])] {
                    let given: [&[f32]; 5] = [&p, &g, m, v, &full];
                    let (want, bound) = (adam(&op, given), adam_bound(&op, given));
                    check(device, &format!("{n} {variant} {full:?}"), &op, &given, &want, &bound);
                    let rated = Adam::new(n, 0.5).decay(0.1).when(decoupled, |op| op.decoupled());
                    let given: [&[f32]; 6] = [&p, &g, m, v, &full, &[0.01]];
                    check(device, &format!("{n} {variant}"), &rated.with_rate(), &given, &want, &bound);
                }
            }
        }
    }
}

#[test]
fn adam_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = || Adam::new(4, 0.1);
    for op in [Adam::new(4, -0.1), op().betas(1.0, 0.9), op().eps(-1.0), op().decay(-1.0), op().variant("fast")] {
        assert_eq!(refusal::<f32>(gpu, &op), ErrorKind::InvalidArgument);
    }
    assert_eq!(refusal::<f32>(gpu, &Adam::new(usize::MAX, 0.1)), ErrorKind::TooLarge);
}
