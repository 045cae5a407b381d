//! Every variant of `Sgd` against the reference.

use super::training::{check, names, random, refusal};
use crate::support::{devices, gpu};
use tilework::ErrorKind;
use tilework::nn::Sgd;
use tilework::program::When;
use tilework::reference::{sgd, sgd_bound};

#[test]
fn sgd_matches_reference_with_and_without_momentum() {
    for device in devices() {
        for n in [0, 1, 64, 1001] {
            let [p, g, v] = [1, 2, 3].map(|seed| random::<f32>(seed, n));
            for variant in names(Sgd::variants()) {
                let op = Sgd::new(n, 0.1).decay(0.01).variant(variant);
                let still = vec![0.0; n];
                let ([want, _], [bound, _]) = (sgd(&op, &p, &g, &still), sgd_bound(&op, &p, &g, &still));
                check(device, &format!("{n} {variant}"), &op, &[&p, &g], &[want], &[bound]);
                for rate in [0.0f32, 0.25] {
                    let rated = Sgd::new(n, rate).decay(0.01);
                    let ([want, _], [bound, _]) = (sgd(&rated, &p, &g, &still), sgd_bound(&rated, &p, &g, &still));
                    let op = op.clone().with_rate();
                    check(device, &format!("{n} {variant}"), &op, &[&p, &g, &[rate]], &[want], &[bound]);
                }
                for ahead in [false, true] {
                    let op = op.clone().when(ahead, |op| op.nesterov()).with_momentum(0.9);
                    let (want, bound) = (sgd(&op, &p, &g, &v), sgd_bound(&op, &p, &g, &v));
                    check(device, &format!("{n} {variant}"), &op, &[&p, &g, &v], &want, &bound);
                }
            }
        }
    }
}

#[test]
fn sgd_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    for op in [Sgd::new(4, -0.1), Sgd::new(4, 0.1).decay(f32::NAN), Sgd::new(4, 0.1).variant("fast")] {
        assert_eq!(refusal::<f32>(gpu, &op), ErrorKind::InvalidArgument);
    }
    let infinite = Sgd::new(4, 0.1).with_momentum(f32::INFINITY);
    assert_eq!(refusal::<f32>(gpu, &infinite), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Sgd::new(usize::MAX, 0.1)), ErrorKind::TooLarge);
}
