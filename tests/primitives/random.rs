//! `Random` against the reference, and moments of its numbers.

use crate::support::{assert_close, devices, numbers};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{random_floats, random_words};
use tilework::{Element, Gpu};

/// The numbers; checks that nothing behind them is written.
fn run<T: Element>(gpu: &Gpu, op: &Random, n: usize) -> Vec<T>
where
    Random: Op<T>,
{
    let plan = op.plan::<T>(gpu).unwrap();
    let output = gpu.upload(&vec![T::default(); n + 5]).unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, output.slice(..n).unwrap()).unwrap();
    rec.submit().unwrap();
    let mut all = output.read().unwrap();
    assert_eq!(bytemuck::cast_slice::<T, u8>(&all[n..]), vec![0; 5 * size_of::<T>()]);
    all.truncate(n);
    all
}

/// Places in streams: aligned and not, across a carry between the words of the counter, at the end.
const PLACES: [(u64, u64, u64); 5] =
    [(0, 0, 0), (1234, 5, 1), (u64::MAX, u64::MAX, 6), (1 << 40, 1 << 33, (1 << 34) - 25), (3, 0, u64::MAX)];

fn placed(distribution: Distribution, n: usize, (seed, stream, offset): (u64, u64, u64)) -> Random {
    Random::new(distribution, n).seed(seed).stream(stream).offset(offset)
}

#[test]
fn integers_equal_the_reference_at_every_place_in_a_stream() {
    use Distribution::{Bernoulli, Bits, Integers, Poisson};
    for device in devices() {
        for (at, place) in PLACES.into_iter().enumerate() {
            for n in [1, 3, 64, 1003] {
                let op = placed(Bits, n, place);
                assert_eq!(run::<u32>(&device.gpu, &op, n), random_words(&op), "{}: {op:?}", device.label);
            }
            let mean = [0.0, 0.3, 4.0, 100.0, 1e6][at];
            let (low, high) = [(0, 1), (5, 6), (0, 3 << 30), (0, 1 << 32), (7, 4000)][at];
            let p = [0.0, 1.0, 0.5, 1e-3, 1.0 - 1e-12][at];
            for distribution in [Bernoulli { p }, Integers { low, high }, Poisson { mean }] {
                let op = placed(distribution, 1003, place);
                let got = run::<u32>(&device.gpu, &op, 1003);
                assert_eq!(got, random_words(&op), "{}: {op:?}", device.label);
            }
            let (low, high) = [(-1, 1), (-1 << 31, 1 << 31), (-5, -4), (0, 1 << 31), (-1 << 30, 1 << 31)][at];
            let op = placed(Integers { low, high }, 1003, place);
            let got: Vec<u32> = run::<i32>(&device.gpu, &op, 1003).iter().map(|x| *x as u32).collect();
            assert_eq!(got, random_words(&op), "{}: {op:?}", device.label);
        }
        assert!(run::<u32>(&device.gpu, &Random::new(Bits, 0), 0).is_empty());
    }
}

#[test]
fn floats_are_within_their_bounds_and_uniform_numbers_equal() {
    use Distribution::{Between, Exponential, LogNormal, Normal, Uniform};
    let all = [
        Uniform,
        Between { low: -3.0, high: 5.0 },
        Normal { mean: 0.0, deviation: 1.0 },
        Normal { mean: 1000.0, deviation: 0.0 },
        Exponential { mean: 2.0 },
        LogNormal { mean: -0.5, deviation: 1.5 },
    ];
    for device in devices() {
        for place in PLACES {
            for distribution in all {
                let op = placed(distribution, 1003, place);
                let (want, bound) = random_floats(&op);
                let got = run::<f32>(&device.gpu, &op, 1003);
                let exact = vec![0.0; want.len()];
                let what = format!("{}: {op:?}", device.label);
                assert_close(&what, &numbers(&got), &want, &bound.unwrap_or(exact));
            }
        }
    }
}

#[test]
fn one_line_calls_give_numbers_with_the_right_moments() {
    let Some(device) = devices().first() else { return };
    let n = 1 << 16;
    let moments = |x: &[f64]| {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        (mean, x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64)
    };
    let near = |distribution: Distribution, (mean, variance): (f64, f64)| {
        let got = match distribution {
            Distribution::Poisson { .. } => device
                .gpu
                .random::<u32>(distribution, n, 7)
                .unwrap()
                .read()
                .unwrap()
                .iter()
                .map(|x| f64::from(*x))
                .collect(),
            _ => numbers(&device.gpu.random::<f32>(distribution, n, 7).unwrap().read().unwrap()),
        };
        let (got_mean, got_variance) = moments(&got);
        // Five deviations of the mean.
        let error = 5.0 * (variance / n as f64).sqrt();
        assert!((got_mean - mean).abs() < error, "{distribution:?}: mean {got_mean}");
        assert!((got_variance / variance - 1.0).abs() < 0.05, "{distribution:?}: variance {got_variance}");
    };
    near(Distribution::Uniform, (0.5, 1.0 / 12.0));
    near(Distribution::Normal { mean: 2.0, deviation: 3.0 }, (2.0, 9.0));
    near(Distribution::Exponential { mean: 2.0 }, (2.0, 4.0));
    near(Distribution::Poisson { mean: 50.0 }, (50.0, 50.0));
}
