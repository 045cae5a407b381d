//! Shared by tests of gradients, losses and optimisers: runs any op on lists and compares its outputs.

use crate::support::{Device, Random, Sample, assert_close, numbers};
use tilework::gpu::RawSlice;
use tilework::program::{Access, Op, Variant};
use tilework::reference::Number;
use tilework::{Buffer, DType, Element, ErrorKind, Gpu, Plannable};

/// Rows and their lengths: around lanes, registers and blocks of rows; multiples of vec4 and not.
pub(crate) const ROWS: [(usize, usize); 7] = [(5, 3), (300, 4), (3, 130), (2, 1028), (2, 4099), (700, 12), (1, 1)];

/// `auto` and every variant.
pub(crate) fn names(variants: &'static [Variant]) -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(variants.iter().map(|v| v.name))
}

pub(crate) fn random<T: Sample>(seed: u64, n: usize) -> Vec<T> {
    Random::new(seed).elements(n)
}

/// A read-only operand.
pub(crate) enum Given<'a, T> {
    Floats(&'a [T]),
    Labels(&'a [u32]),
}

enum Held<T: Element> {
    Floats(Buffer<T>),
    Labels(Buffer<u32>),
}

impl<T: Element> Held<T> {
    fn raw(&self) -> RawSlice<'_> {
        match self {
            Self::Floats(buffer) => tilework::Slice::from(buffer).untyped(),
            Self::Labels(buffer) => tilework::Slice::from(buffer).untyped(),
        }
    }
}

/// Runs an op on its inputs, in order, and returns its outputs, in order.
pub(crate) fn run<T: Number>(gpu: &Gpu, op: &impl Op<T>, given: &[Given<'_, T>]) -> Vec<Vec<T>> {
    let executable = op.plan::<T>(gpu).unwrap().into_executable();
    let mut given = given.iter();
    let held: Vec<Held<T>> = (executable.program().operands.iter())
        .map(|operand| match (operand.access, operand.dtype) {
            (Access::Write, DType::U32) => Held::Labels(gpu.alloc(operand.len).unwrap()),
            (Access::Write, _) => Held::Floats(gpu.alloc(operand.len).unwrap()),
            _ => match given.next().unwrap() {
                Given::Floats(values) => Held::Floats(gpu.upload(values).unwrap()),
                Given::Labels(values) => Held::Labels(gpu.upload(values).unwrap()),
            },
        })
        .collect();
    let mut rec = gpu.recorder();
    executable.record(&mut rec, &held.iter().map(Held::raw).collect::<Vec<_>>()).unwrap();
    rec.submit().unwrap();
    (executable.program().operands.iter().zip(&held))
        .filter(|(operand, _)| operand.access != Access::Read)
        .filter_map(|(_, held)| if let Held::Floats(buffer) = held { Some(buffer.read().unwrap()) } else { None })
        .collect()
}

/// Runs an op on floats and compares its outputs with the expected ones, within the bounds.
#[track_caller]
pub(crate) fn check<T: Number, const N: usize>(
    device: &Device, what: &str, op: &impl Op<T>, given: &[&[T]], want: &[Vec<T>; N], bound: &[Vec<f64>; N],
) {
    let given: Vec<_> = given.iter().map(|values| Given::Floats(values)).collect();
    let got = run(&device.gpu, op, &given);
    assert_eq!(got.len(), N, "{what}: results");
    for (i, ((got, want), bound)) in got.iter().zip(want).zip(bound).enumerate() {
        let what = format!("{}: {} {what}, result {i}", device.label, T::DTYPE);
        assert_close(&what, &numbers(got), &numbers(want), bound);
    }
}

/// The kind of error with which the op is rejected.
pub(crate) fn refusal<T: Element>(gpu: &Gpu, op: &impl Op<T>) -> ErrorKind {
    op.plan::<T>(gpu).expect_err("the op accepts it").kind()
}

/// The tests of the gradients of softmax and of its logarithm.
macro_rules! softmax_backward_tests {
    ($Op:ident, $reference:ident, $bound:ident, $forward:ident) => {
        use super::training::{ROWS, check, names, random, refusal};
        use crate::support::{Device, devices, gpu};
        use tilework::ErrorKind;
        use tilework::nn::$Op;
        use tilework::reference::{$bound, $forward, $reference};

        fn check_rows(device: &Device, rows: usize, n: usize, y: &[f32], dy: &[f32]) {
            let (want, bound) = ([$reference(n, y, dy)], [$bound(n, y, dy)]);
            for variant in names($Op::variants()).filter(|v| *v != "whole" || n < 500) {
                let op = $Op::new(rows, n).variant(variant);
                check(device, &format!("{variant} {rows} x {n}"), &op, &[y, dy], &want, &bound);
            }
        }

        #[test]
        fn matches_reference_for_rows_of_every_length() {
            for device in devices() {
                for (rows, n) in ROWS {
                    let y = $forward(n, &random::<f32>(3, rows * n));
                    check_rows(device, rows, n, &y, &random(4, rows * n));
                }
            }
        }

        #[test]
        fn empty_input_returns_empty_and_nan_gives_nan() {
            for device in devices() {
                check_rows(device, 0, 5, &[], &[]);
                check_rows(device, 5, 0, &[], &[]);
                let mut y = [0.25f32; 8];
                y[6] = f32::NAN;
                check_rows(device, 2, 4, &y, &[1.0; 8]);
            }
        }

        #[test]
        fn rejects_invalid_arguments() {
            let Some(gpu) = gpu() else { return };
            assert_eq!(refusal::<f32>(gpu, &$Op::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
            assert_eq!(refusal::<f32>(gpu, &$Op::new(1, 1 << 20).variant("whole")), ErrorKind::TooLarge);
            assert_eq!(refusal::<f32>(gpu, &$Op::new(usize::MAX, 2)), ErrorKind::TooLarge);
        }
    };
}
pub(crate) use softmax_backward_tests;

/// The tests of the gradients of the norms.
macro_rules! norm_backward_tests {
    ($Op:ident, $reference:ident, $bound:ident) => {
        use super::training::{ROWS, check, names, random, refusal};
        use crate::support::{Device, devices, gpu};
        use tilework::ErrorKind;
        use tilework::nn::$Op;
        use tilework::reference::{$bound, $reference};

        fn check_rows(device: &Device, op: &$Op, what: &str, n: usize, x: &[f32]) {
            let (gamma, dy) = (random::<f32>(5, n), random::<f32>(6, x.len()));
            let (want, bound) = ($reference(op, x, &gamma, &dy), $bound(op, x, &gamma, &dy));
            for variant in names($Op::variants()).filter(|v| *v != "whole" || n < 500) {
                let op = op.clone().variant(variant);
                check(device, &format!("{variant} {what}"), &op, &[x, &gamma, &dy], &want, &bound);
            }
        }

        #[test]
        fn matches_reference_for_rows_of_every_length() {
            for device in devices() {
                for (rows, n) in ROWS {
                    let op = $Op::new(rows, n);
                    check_rows(device, &op, &format!("{rows} x {n}"), n, &random::<f32>(7, rows * n));
                }
                let far: Vec<f32> = random::<f32>(8, 300).iter().map(|x| x + 100.0).collect();
                check_rows(device, &$Op::new(3, 100).eps(0.5), "far from 0", 100, &far);
            }
        }

        #[test]
        fn sums_over_no_rows_are_zero() {
            for device in devices() {
                check_rows(device, &$Op::new(0, 5), "no rows", 5, &[]);
                check_rows(device, &$Op::new(0, 8), "no rows", 8, &[]);
                check_rows(device, &$Op::new(5, 0), "no columns", 0, &[]);
            }
        }

        #[test]
        fn rejects_invalid_arguments() {
            let Some(gpu) = gpu() else { return };
            assert_eq!(refusal::<f32>(gpu, &$Op::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
            assert_eq!(refusal::<f32>(gpu, &$Op::new(4, 4).eps(-1.0)), ErrorKind::InvalidArgument);
            assert_eq!(refusal::<f32>(gpu, &$Op::new(1, 1 << 20).variant("whole")), ErrorKind::TooLarge);
            assert_eq!(refusal::<f32>(gpu, &$Op::new(usize::MAX, 2)), ErrorKind::TooLarge);
        }
    };
}
pub(crate) use norm_backward_tests;
