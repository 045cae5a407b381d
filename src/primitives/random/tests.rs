use super::*;
use crate::ErrorKind;

#[test]
fn poisson_tables_hold_known_probabilities() {
    // exp(-1) (1, 2, 2.5, 2.666...) and exp(-100).
    let (low, table) = poisson_table(1.0);
    let of = |sum: f64| (sum * (-1f64).exp() * 4294967296.0) as u32;
    assert_eq!((low, &table[..3]), (0, &[of(1.0), of(2.0), of(2.5)][..]));
    assert_eq!(table.len(), 12, "{table:?}");
    assert_eq!(poisson_table(0.0), (0, Vec::new()));
    for mean in [0.3, 100.0, 5000.5, MAX_MEAN] {
        let (low, table) = poisson_table(mean);
        assert!(table.is_sorted() && table.len() as f64 <= 16.0 * mean.sqrt() + 40.0, "{mean}");
        let below = f64::from(low) + table.iter().map(|t| 1.0 - f64::from(*t) / 4294967296.0).sum::<f64>();
        assert!((below - mean).abs() < 1e-6 * (1.0 + mean), "{mean}: {below}");
    }
}

#[test]
fn positions_of_large_outputs_continue_across_dispatches() {
    let profile = DeviceProfile::webgpu_defaults();
    let op = Random::new(Distribution::Bits, 50_000_001).offset((1 << 34) + 2).seed(7 << 32);
    let program = Op::<u32>::lower(&op, &profile).unwrap();
    assert_eq!(program.dispatches.len(), 3);
    let mut next = 0;
    for (d, dispatch) in program.dispatches.iter().enumerate() {
        assert_eq!(dispatch.bindings[0].offset, 4 * next);
        assert_eq!((program.param(d, "shift"), &dispatch.params[4..8]), (2, &[7, 0, 0, 0][..]));
        let block = u64::from_ne_bytes(dispatch.params[16..24].try_into().unwrap());
        assert_eq!(block, (1 << 32) + next / 4);
        next += program.param(d, "n");
    }
    assert_eq!(next, 50_000_001);
}

#[test]
fn rejects_distributions_that_are_not_defined() {
    use Distribution::{Bernoulli, Between, Exponential, Integers, Normal, Poisson};
    let kind = |error: Option<crate::Error>| error.map(|e| e.kind());
    let profile = DeviceProfile::mesa();
    let u32s = |d| kind(Op::<u32>::lower(&Random::new(d, 9), &profile).err());
    let i32s = |d| kind(Op::<i32>::lower(&Random::new(d, 9), &profile).err());
    let f32s = |d| kind(Op::<f32>::lower(&Random::new(d, 9), &profile).err());
    let (wrong, nan) = (Some(ErrorKind::InvalidArgument), f32::NAN);
    for (low, high) in [(0, 0), (5, 3), (-1, 4), (0, (1 << 32) + 1)] {
        assert_eq!(u32s(Integers { low, high }), wrong, "{low} {high}");
    }
    assert_eq!(i32s(Integers { low: -1 << 31, high: 1 << 31 }), None);
    assert_eq!(i32s(Integers { low: 0, high: (1 << 31) + 1 }), wrong);
    assert_eq!(u32s(Integers { low: 0, high: 1 << 32 }), None);
    for p in [-0.1, 1.1, f64::NAN] {
        assert_eq!(u32s(Bernoulli { p }), wrong, "{p}");
    }
    for mean in [-1.0, MAX_MEAN + 1.0, f64::NAN] {
        assert_eq!(u32s(Poisson { mean }), wrong, "{mean}");
    }
    for (low, high) in [(1.0, 1.0), (0.0, nan), (-f32::MAX, f32::MAX)] {
        assert_eq!(f32s(Between { low, high }), wrong, "{low} {high}");
    }
    for (mean, deviation) in [(nan, 1.0), (0.0, -1.0), (0.0, f32::INFINITY)] {
        assert_eq!(f32s(Normal { mean, deviation }), wrong, "{mean} {deviation}");
    }
    assert_eq!(f32s(Exponential { mean: -1.0 }), wrong);
    assert_eq!(f32s(Distribution::Bits), Some(ErrorKind::Unsupported));
    assert_eq!(u32s(Distribution::Uniform), Some(ErrorKind::Unsupported));
    let large = Random::new(Distribution::Bits, usize::MAX);
    assert_eq!(kind(Op::<u32>::lower(&large, &profile).err()), Some(ErrorKind::TooLarge));
}
