use crate::dense::product::trial::{lower, refusal};
use crate::dense::{Gemm, Precision};
use crate::error::ErrorKind;
use crate::program::{DeviceProfile, Op};
use half::f16;

// The scheme of [`Precision::Split`] in plain Rust, as in the shaders.

/// As shaders/dense/gemm_power.wgsl.
fn power_of(magnitude: u32) -> i32 {
    let field = (magnitude >> 23) as i32;
    let subnormal = 31 - magnitude.leading_zeros() as i32 - 149;
    let exponent = if field == 0 { subnormal } else { field - 127 };
    if magnitude == 0 { 0 } else { 14 - exponent }
}

fn times_power(x: f32, power: i32) -> f32 {
    let two_to = |p: i32| f32::from_bits(((p.clamp(-126, 127) + 127) as u32) << 23);
    let half = power >> 1;
    x * two_to(half) * two_to(power - half)
}

/// The power of a row or column, and its elements in two halves.
fn split(line: &[f32]) -> (i32, Vec<[f64; 2]>) {
    let finite = line.iter().map(|x| x.to_bits() & 0x7fff_ffff).filter(|x| *x < 0x7f80_0000);
    let power = power_of(finite.max().unwrap_or(0));
    let halves = line.iter().map(|x| {
        let y = times_power(*x, power);
        let high = f16::from_f32(y);
        let low = if y.is_finite() { f16::from_f32(y - high.to_f32()) } else { f16::ZERO };
        [high.to_f64(), low.to_f64()]
    });
    (power, halves.collect())
}

/// Truncates to f32.
fn cut(x: f64) -> f64 {
    let y = x as f32;
    f64::from(if f64::from(y).abs() > x.abs() { f32::from_bits(y.to_bits() - 1) } else { y })
}

/// The kernel's sum with `step` of k in a tile, on matrices that truncate.
fn product(a: &[f32], b: &[f32], step: usize) -> f32 {
    let ((power_a, a), (power_b, b)) = (split(a), split(b));
    let mut sum = 0f32;
    for (a, b) in a.chunks(step).zip(b.chunks(step)) {
        let mut part = 0.0;
        for (a, b) in a.chunks(16).zip(b.chunks(16)) {
            for [x, y] in [[1, 0], [0, 1], [0, 0]] {
                part = cut(part + a.iter().zip(b).map(|(a, b)| a[x] * b[y]).sum::<f64>());
            }
        }
        sum += part as f32;
    }
    times_power(sum, -power_a - power_b)
}

/// The distribution of a line of random numbers.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Uniform,
    /// Nonnegative, so that nothing cancels and truncation errors add up.
    Positive,
    Normal,
    BadlyScaled,
}

fn line(random: &mut impl FnMut() -> f64, k: usize, kind: Kind) -> Vec<f32> {
    let scale = if let Kind::BadlyScaled = kind { 10f64.powf(30.0 * random() - 15.0) } else { 1.0 };
    let mut element = || match kind {
        Kind::Uniform | Kind::BadlyScaled => 2.0 * random() - 1.0,
        Kind::Positive => random(),
        Kind::Normal => {
            let (x, y) = (1.0 - random(), random());
            (-2.0 * x.ln()).sqrt() * (std::f64::consts::TAU * y).cos()
        }
    };
    (0..k).map(|_| (scale * element()) as f32).collect()
}

#[test]
fn products_of_halves_err_at_most_twice_as_much_as_those_of_f32() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    for kind in [Kind::Uniform, Kind::Positive, Kind::Normal, Kind::BadlyScaled] {
        for k in [64, 256, 1024, 4096] {
            for step in [16, 32] {
                // The largest error and the sum of all, of f32 and of halves, relative to the sum of
                // magnitudes.
                let (mut largest, mut all) = ([0f64; 2], [0f64; 2]);
                for _ in 0..200 {
                    let (a, b) = (line(&mut random, k, kind), line(&mut random, k, kind));
                    let terms = || a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b));
                    let (exact, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
                    let strict = a.iter().zip(&b).fold(0f32, |sum, (a, b)| a.mul_add(*b, sum));
                    for (i, got) in [strict, product(&a, &b, step)].into_iter().enumerate() {
                        let error = (f64::from(got) - exact).abs() / size;
                        largest[i] = largest[i].max(error);
                        all[i] += error;
                    }
                }
                let text = format!("{kind:?}, k = {k}, steps of {step}: {largest:?}, {all:?}");
                println!("{text}");
                assert!(largest[1] <= 2.0 * largest[0] && all[1] <= 2.0 * all[0], "{text}");
            }
        }
    }
}

#[test]
fn powers_bring_every_number_into_range() {
    for x in [f32::MAX, 1e30, 3.0, 1.0, 1e-15, f32::MIN_POSITIVE, 1e-40, f32::from_bits(1)] {
        let power = power_of(x.to_bits());
        let y = times_power(x, power);
        assert!((16384.0..32768.0).contains(&y), "{x} 2^{power} = {y}");
        assert_eq!(times_power(y, -power), x);
    }
    assert_eq!(power_of(0), 0);
    // Zero, NaN and infinity have no low half.
    let (power, halves) = split(&[0.0, f32::INFINITY, -2.5]);
    assert_eq!((power, halves[0], halves[1]), (13, [0.0; 2], [f64::INFINITY, 0.0]));
    assert_eq!(halves[2], [-20480.0, 0.0]);
}

#[test]
fn factors_are_copied_where_that_pays_or_was_asked_for() {
    let h100 = DeviceProfile::h100();
    let scratch = |gemm: &Gemm| {
        let gemm = gemm.clone().variant("coop").mixed_precision().slices(1);
        let program = Op::<f16>::lower(&gemm, &h100).unwrap();
        assert_eq!(program.dispatches.len(), program.scratch.len() + 1);
        program.scratch
    };
    for gemm in [Gemm::new(4096, 4096, 4096), Gemm::new(37, 39, 96), Gemm::new(40, 40, 41), Gemm::new(40, 40, 8)] {
        assert!(scratch(&gemm).is_empty(), "{gemm:?}");
    }
    // Loads of single elements would slow a large product down more than copies do.
    assert_eq!(scratch(&Gemm::new(4095, 4097, 4093)), [2 * 4095 * 4096, 2 * 4096 * 4104]);
    let packed = |gemm: Gemm| scratch(&gemm.packed(true));
    assert_eq!(packed(Gemm::new(37, 40, 96).lda(97)), [2 * 37 * 96, 2 * 96 * 40]);
    // Part of a load along k: zeros in both copies.
    assert_eq!(packed(Gemm::new(40, 40, 41)), [2 * 40 * 48, 2 * 44 * 40]);
    assert_eq!(packed(Gemm::new(40, 40, 8)), [2 * 40 * 8, 2 * 8 * 40]);

    let single = |gemm: &Gemm| {
        let program = lower(gemm, &h100).unwrap();
        let entries: Vec<_> = program.dispatches.iter().map(|d| program.kernels[d.kernel].entry).collect();
        (program.scratch.clone(), entries)
    };
    let (a, b) = (2 * 40 * 96, 2 * 96 * 48);
    let gemm = Gemm::new(40, 48, 96).precision(Precision::Tensor);
    assert_eq!(single(&gemm), (vec![], vec!["gemm_coop"]));
    assert_eq!(single(&gemm.packed(true)), (vec![a, b], vec!["gemm_pack", "gemm_pack", "gemm_coop"]));
    let scales = ["gemm_scales_clear", "gemm_scales", "gemm_scales"];
    let passes = [&scales[..], &["gemm_pack", "gemm_pack", "gemm_coop"]].concat();
    let split = Gemm::new(40, 48, 96).precision(Precision::Split);
    assert_eq!(single(&split), (vec![4 * 88, a, a, b, b], passes));

    let mut small = DeviceProfile::h100();
    small.limits.max_storage_binding = 4 * 40 * 48 - 1;
    let gemm = Gemm::new(4, 4, 6000).variant("coop").trans_b();
    let (kind, text) = refusal(&gemm, &small);
    assert!(kind == ErrorKind::TooLarge && text.contains("bytes"), "{text}");
    small.limits.max_storage_binding = 8 * 7001;
    let gemm = Gemm::new(4, 4, 7001).variant("coop").trans_b().packed(true);
    let op = Op::<f16>::lower(&gemm, &small).unwrap_err();
    let text = op.to_string();
    assert!(op.kind() == ErrorKind::TooLarge && text.contains("56064 bytes of scratch"), "{text}");
}
