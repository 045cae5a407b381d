//! Shared by tests of ops over rows: shapes around the sizes of lanes and registers, rows of numbers, and tests that
//! two ops have in common.

use crate::support::coverage::turn;
use crate::support::{Device, Random, Sample};

/// Rows and their lengths, for every type on every device.
pub(crate) const SHAPES: [(usize, usize); 5] = [(5, 3), (300, 4), (3, 130), (2, 1028), (2, 4099)];

/// More of them, for f32 on the first device.
const MORE: [(usize, usize); 12] = [
    (1, 1),
    (1000, 5),
    (7, 33),
    (17, 127),
    (16, 128),
    (4, 1024),
    (3, 2050),
    (3, 4096),
    (3, 8195),
    (2, 16384),
    (2000, 1),
    (1, 300_001),
];

/// The further shapes, in the default run every third.
pub(crate) fn more() -> impl Iterator<Item = (usize, usize)> {
    MORE.into_iter().enumerate().filter(|(i, _)| turn(*i, 3)).map(|(_, shape)| shape)
}

/// Rows, their lengths and requested lanes, in the default run every other.
pub(crate) fn lanes() -> impl Iterator<Item = (usize, usize, u32)> {
    let all = [(5, 100, 32), (5, 99, 32), (3, 1000, 64), (3, 1000, 128), (9, 3, 1), (2, 1024, 256)];
    all.into_iter().enumerate().filter(|(i, _)| turn(*i, 2)).map(|(_, shape)| shape)
}

/// Numbers between -4 and 4, with a different mean in each row.
pub(crate) fn numbers<T: Sample>(rows: usize, n: usize) -> Vec<T> {
    let mut random = Random::new((rows * 31 + n) as u64);
    let row = |_| {
        let mean = 2.0 * random.unit();
        (0..n).map(|_| T::from_f64(mean + 2.0 * random.unit())).collect::<Vec<_>>()
    };
    (0..rows).flat_map(row).collect()
}

/// Whether this device rejects the variant for rows of `n`.
pub(crate) fn refused(device: &Device, variant: &str, n: usize) -> bool {
    let most = if device.gpu.profile().is_cpu() { 4096 } else { 16384 };
    variant == "whole" && n > most - 2
}

/// The tests of softmax and of its logarithm.
macro_rules! softmax_tests {
    ($Op:ident, $reference:ident, $bound:ident) => {
        use super::rows::{SHAPES, lanes, more, numbers, refused};
        use crate::support::coverage::turn;
        use crate::support::{Device, Sample, assert_close, devices, gpu, numbers as as_numbers};
        use half::f16;
        use tilework::ErrorKind;
        use tilework::prelude::*;
        use tilework::program::Op;
        use tilework::reference::{$bound, $reference};

        fn names() -> impl Iterator<Item = &'static str> {
            std::iter::once("auto").chain($Op::variants().iter().map(|v| v.name))
        }

        fn run<T: Sample>(device: &Device, op: &$Op, x: &[T]) -> Vec<T>
        where
            $Op: Op<T>,
        {
            let (input, output) = (device.gpu.upload(x).unwrap(), device.gpu.alloc::<T>(x.len()).unwrap());
            let plan = op.plan::<T>(&device.gpu).unwrap();
            let mut rec = device.gpu.recorder();
            plan.record(&mut rec, &input, &output).unwrap();
            rec.submit().unwrap();
            output.read().unwrap()
        }

        fn check<T: Sample>(device: &Device, rows: usize, n: usize, x: &[T])
        where
            $Op: Op<T>,
        {
            let (want, bound) = (as_numbers(&$reference(n, x)), $bound(n, x));
            // In the default run a length meets every other variant.
            let names = names().enumerate().filter(|(v, _)| turn(v + n, 2)).map(|(_, name)| name);
            for variant in names.filter(|v| !refused(device, v, n)) {
                let got = run(device, &$Op::new(rows, n).variant(variant), x);
                let what = format!("{}: {} {variant} {rows} x {n}", device.label, T::DTYPE);
                assert_close(&what, &as_numbers(&got), &want, &bound);
            }
        }

        #[test]
        fn matches_reference_for_rows_of_every_length() {
            for device in devices() {
                for (rows, n) in SHAPES {
                    check(device, rows, n, &numbers::<f32>(rows, n));
                    check(device, rows, n, &numbers::<f16>(rows, n));
                }
                for (rows, n) in more().filter(|_| device.main) {
                    check(device, rows, n, &numbers::<f32>(rows, n));
                }
            }
        }

        #[test]
        fn matches_reference_with_the_requested_lanes() {
            let Some(device) = devices().first() else { return };
            for (rows, n, lanes) in lanes() {
                let x = numbers::<f32>(rows, n);
                for variant in names() {
                    let got = run(device, &$Op::new(rows, n).lanes(lanes).variant(variant), &x);
                    let (want, bound) = (as_numbers(&$reference(n, &x)), $bound(n, &x));
                    assert_close(&format!("{variant} {rows} x {n} by {lanes}"), &as_numbers(&got), &want, &bound);
                }
            }
        }

        #[test]
        fn non_finite_values_are_as_documented() {
            let (inf, nan) = (f32::INFINITY, f32::NAN);
            for device in devices() {
                for n in [3, 4, 300, 5000] {
                    let mut x = vec![1.0f32; 6 * n];
                    x[..n].fill(-inf);
                    x[n + 1] = -inf;
                    x[2 * n + 2] = inf;
                    x[3 * n] = nan;
                    x[4 * n..5 * n].fill(nan);
                    x[5 * n..].fill(-3e38);
                    x[6 * n - 1] = 3e38;
                    check(device, 6, n, &x);
                    // Segments of only -infinity beside numbers.
                    let mut x = vec![-inf; 2 * n];
                    x[0] = 2.0;
                    x[2 * n - 1] = -1000.0;
                    check(device, 2, n, &x);
                }
            }
        }

        #[test]
        fn elements_after_the_output_are_kept() {
            for device in devices() {
                let x = numbers::<f16>(3, 3);
                let input = device.gpu.upload(&x).unwrap();
                for variant in names() {
                    let buffer = device.gpu.upload(&[f16::from_f32(7.0); 12]).unwrap();
                    let plan = $Op::new(3, 3).variant(variant).plan::<f16>(&device.gpu).unwrap();
                    let mut rec = device.gpu.recorder();
                    plan.record(&mut rec, &input, buffer.slice(..9).unwrap()).unwrap();
                    rec.submit().unwrap();
                    assert_eq!(buffer.read().unwrap()[9..], [f16::from_f32(7.0); 3], "{}: {variant}", device.label);
                }
            }
        }

        #[test]
        fn empty_input_returns_empty() {
            for device in devices() {
                check::<f32>(device, 0, 5, &[]);
                check::<f32>(device, 5, 0, &[]);
            }
        }

        #[test]
        fn rejects_invalid_arguments() {
            let Some(gpu) = gpu() else { return };
            let kind = |op: $Op| op.plan::<f32>(gpu).unwrap_err().kind();
            assert_eq!(kind($Op::new(4, 4).variant("fastest")), ErrorKind::InvalidArgument);
            assert_eq!(kind($Op::new(4, 4).lanes(3)), ErrorKind::InvalidArgument);
            assert_eq!(kind($Op::new(4, 4).lanes(1 << 20)), ErrorKind::InvalidArgument);
            assert_eq!(kind($Op::new(4, 1 << 20).variant("whole")), ErrorKind::TooLarge);
            assert_eq!(kind($Op::new(usize::MAX, 2)), ErrorKind::TooLarge);
            assert_eq!(kind($Op::new(1 << 30, 1 << 30)), ErrorKind::TooLarge);
            let (six, five) = (gpu.upload(&[0f32; 6]).unwrap(), gpu.upload(&[0f32; 5]).unwrap());
            let plan = $Op::new(2, 3).plan::<f32>(gpu).unwrap();
            let mut rec = gpu.recorder();
            assert_eq!(plan.record(&mut rec, &five, &six).unwrap_err().kind(), ErrorKind::Shape);
            assert_eq!(plan.record(&mut rec, &six, &five).unwrap_err().kind(), ErrorKind::Shape);
            assert_eq!(plan.record(&mut rec, &six, &six).unwrap_err().kind(), ErrorKind::Aliasing);
        }
    };
}
pub(crate) use softmax_tests;

/// The tests of a norm with scale and shift.
macro_rules! norm_tests {
    ($Op:ident, $reference:ident, $bound:ident) => {
        use super::rows::{SHAPES, lanes, more, numbers, refused};
        use crate::support::coverage::turn;
        use crate::support::{Device, Sample, assert_close, devices, gpu, numbers as as_numbers};
        use half::f16;
        use tilework::ErrorKind;
        use tilework::prelude::*;
        use tilework::program::Op;
        use tilework::reference::{$bound, $reference};

        fn names() -> impl Iterator<Item = &'static str> {
            std::iter::once("auto").chain($Op::variants().iter().map(|v| v.name))
        }

        /// With and without a shift.
        fn check<T: Sample>(device: &Device, op: &$Op, rows: usize, n: usize, x: &[T])
        where
            $Op: Op<T>,
        {
            let gpu = &device.gpu;
            let (gamma, beta) = (numbers::<T>(1, n), numbers::<T>(2, n)[n..].to_vec());
            let (dx, dg, db) = (gpu.upload(x).unwrap(), gpu.upload(&gamma).unwrap(), gpu.upload(&beta).unwrap());
            // In the default run a length meets every other variant.
            let names = names().enumerate().filter(|(v, _)| turn(v + n, 2)).map(|(_, name)| name);
            for variant in names.filter(|v| !refused(device, v, n)) {
                let op = op.clone().variant(variant);
                // Both if a workgroup has several rows, otherwise one.
                let shifts = [None, Some(beta.as_slice())];
                for shift in if n < 128 { &shifts[..] } else { &shifts[n % 2..][..1] } {
                    let shift = *shift;
                    let output = gpu.alloc::<T>(x.len()).unwrap();
                    let mut rec = gpu.recorder();
                    if shift.is_none() {
                        op.plan::<T>(gpu).unwrap().record(&mut rec, &dx, &dg, &output).unwrap();
                    } else {
                        let plan = op.clone().with_beta().plan::<T>(gpu).unwrap();
                        plan.with_beta(&db).record(&mut rec, &dx, &dg, &output).unwrap();
                    }
                    rec.submit().unwrap();
                    let want = as_numbers(&$reference(&op, x, &gamma, shift));
                    let bound = $bound(&op, x, &gamma, shift);
                    let what = format!("{}: {} {variant} {rows} x {n}", device.label, T::DTYPE);
                    assert_close(&what, &as_numbers(&output.read().unwrap()), &want, &bound);
                }
            }
        }

        #[test]
        fn matches_reference_for_rows_of_every_length() {
            for device in devices() {
                for (rows, n) in SHAPES {
                    let op = $Op::new(rows, n);
                    check(device, &op, rows, n, &numbers::<f32>(rows, n));
                    check(device, &op.eps(0.5), rows, n, &numbers::<f16>(rows, n));
                }
                for (rows, n) in more().filter(|_| device.main) {
                    check(device, &$Op::new(rows, n), rows, n, &numbers::<f32>(rows, n));
                }
            }
        }

        #[test]
        fn matches_reference_with_the_requested_lanes() {
            let Some(device) = devices().first() else { return };
            for (rows, n, lanes) in lanes() {
                check(device, &$Op::new(rows, n).lanes(lanes), rows, n, &numbers::<f32>(rows, n));
            }
        }

        #[test]
        fn a_large_mean_keeps_precision() {
            for device in devices() {
                for n in [64, 1000, 9000] {
                    let x: Vec<f32> = numbers::<f32>(3, n).iter().map(|x| x + 1000.0).collect();
                    check(device, &$Op::new(3, n), 3, n, &x);
                }
            }
        }

        #[test]
        fn nan_gives_nan_in_its_row() {
            for device in devices() {
                for n in [4, 5, 5000] {
                    let mut x = vec![1.0f32; 2 * n];
                    x[n / 2] = f32::NAN;
                    x[n] = 3.0;
                    check(device, &$Op::new(2, n), 2, n, &x);
                }
            }
        }

        #[test]
        fn empty_input_returns_empty() {
            for device in devices() {
                check::<f32>(device, &$Op::new(0, 5), 0, 5, &[]);
                check::<f32>(device, &$Op::new(5, 0), 5, 0, &[]);
            }
        }

        #[test]
        fn rejects_invalid_arguments() {
            let Some(gpu) = gpu() else { return };
            let kind = |op: $Op| op.plan::<f32>(gpu).unwrap_err().kind();
            assert_eq!(kind($Op::new(4, 4).variant("fastest")), ErrorKind::InvalidArgument);
            assert_eq!(kind($Op::new(4, 4).lanes(3)), ErrorKind::InvalidArgument);
            assert_eq!(kind($Op::new(4, 4).eps(-1.0)), ErrorKind::InvalidArgument);
            assert_eq!(kind($Op::new(4, 4).eps(f32::NAN)), ErrorKind::InvalidArgument);
            assert_eq!(kind($Op::new(4, 1 << 20).variant("whole")), ErrorKind::TooLarge);
            assert_eq!(kind($Op::new(usize::MAX, 2)), ErrorKind::TooLarge);
            let x = |n: usize| gpu.upload(&vec![1.0f32; n]).unwrap();
            let (six, other, three, two) = (x(6), x(6), x(3), x(2));
            let plan = $Op::new(2, 3).plan::<f32>(gpu).unwrap();
            let mut rec = gpu.recorder();
            assert_eq!(plan.record(&mut rec, &six, &two, &other).unwrap_err().kind(), ErrorKind::Shape);
            assert_eq!(plan.record(&mut rec, &three, &three, &other).unwrap_err().kind(), ErrorKind::Shape);
            assert_eq!(plan.record(&mut rec, &six, &three, &six).unwrap_err().kind(), ErrorKind::Aliasing);
        }
    };
}
pub(crate) use norm_tests;
