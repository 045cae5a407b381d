//! BLAS's increments: an op on vectors whose numbers lie apart does what it does on those side by side.

use crate::nn::training::refusal;
use crate::primitives::merge_sort::by_name;
use crate::support::by_name::{Numbers, complaint, example_settings, programs, wanted};
use crate::support::{Device, Random, Sample, devices, gpu, numbers};
use half::f16;
use tilework::gpu::RawSlice;
use tilework::program::{Ask, DeviceProfile, Executor, Op};
use tilework::{Buffer, ErrorKind, HostArray, HostData, prelude::*};

/// The contents of an operand, and where it lies.
enum Held<T: tilework::Element> {
    Same(Buffer<T>, Vec<T>),
    Index(Buffer<u32>),
}

/// The place of number `i` of `n`.
fn place(i: usize, n: usize, increment: isize) -> usize {
    (if increment < 0 { n - 1 - i } else { i }) * increment.unsigned_abs()
}

/// Compares an op with increments of 1 and the same op with `increments`, bit by bit.
fn check<T: Sample, D: Op<T>>(device: &Device, [unit, apart]: [D; 2], increments: [isize; 2], width: usize) {
    let gpu = &device.gpu;
    let [unit, apart] = [unit, apart].map(|op| op.plan::<T>(gpu).unwrap().into_executable());
    let what = format!("{}: {} {} at {increments:?}", device.label, unit.op(), T::DTYPE);
    let mut random = Random::new(unit.program().operands[0].len as u64);
    let mut held: Vec<[Held<T>; 2]> = Vec::new();
    let step = |name: &str| match name {
        "x" => increments[0],
        "y" => increments[1],
        _ => 1,
    };
    for (near, far) in unit.program().operands.iter().zip(&apart.program().operands) {
        if near.dtype != T::DTYPE {
            held.push([0, 1].map(|_| Held::Index(gpu.alloc_zeroed::<u32>(near.len).unwrap())));
            continue;
        }
        let (n, by) = (near.len / width, step(near.name));
        let len = if n == 0 { 0 } else { (n - 1) * by.unsigned_abs() + 1 } * width;
        assert_eq!(far.len, len, "{what}: the length of {}", near.name);
        let all: Vec<T> = random.elements(len);
        let close: Vec<T> = (0..near.len).map(|i| all[place(i / width, n, by) * width + i % width]).collect();
        let of = |x: Vec<T>| Held::Same(gpu.upload(&x).unwrap(), x);
        held.push([of(close), of(all)]);
    }
    for (at, executable) in [&unit, &apart].into_iter().enumerate() {
        let slices: Vec<RawSlice<'_>> = held
            .iter()
            .map(|both| match &both[at] {
                Held::Same(buffer, _) => buffer.slice(..).unwrap().untyped(),
                Held::Index(buffer) => buffer.slice(..).unwrap().untyped(),
            })
            .collect();
        let mut rec = gpu.recorder();
        executable.record(&mut rec, &slices).unwrap();
        rec.submit().unwrap();
    }
    for (operand, both) in unit.program().operands.iter().zip(&held) {
        match both {
            [Held::Same(near, _), Held::Same(far, before)] => {
                let (near, far, mut want) = (near.read().unwrap(), far.read().unwrap(), before.clone());
                let (n, by) = (near.len() / width, step(operand.name));
                for (i, x) in near.iter().enumerate() {
                    want[place(i / width, n, by) * width + i % width] = *x;
                }
                assert_eq!(numbers(&far), numbers(&want), "{what}: {} of {n}", operand.name);
            }
            [Held::Index(near), Held::Index(far)] => {
                assert_eq!(near.read().unwrap(), far.read().unwrap(), "{what}: {}", operand.name);
            }
            _ => unreachable!("both are of one type"),
        }
    }
}

/// Increments of both signs, next to each other and far apart.
const INCREMENTS: [[isize; 2]; 5] = [[2, 1], [1, -1], [-1, 3], [-3, -2], [7, -1]];

/// Checks an op that has two vectors.
macro_rules! both {
    ($device:expr, $width:literal, $t:ty, $op:expr) => {
        for [x, y] in INCREMENTS {
            let op = $op;
            check::<$t, _>($device, [op.clone(), op.incx(x).incy(y)], [x, y], $width);
        }
    };
}

/// Checks an op that has one vector.
macro_rules! one {
    ($device:expr, $t:ty, $op:expr) => {
        for x in [-1, 2, -3] {
            let op = $op;
            check::<$t, _>($device, [op.clone(), op.incx(x)], [x, 1], 1);
        }
    };
}

#[test]
fn vectors_with_increments_match_those_without() {
    for device in devices() {
        for n in [1, 2, 301] {
            both!(device, 1, f32, Dot::new(n));
            both!(device, 1, f16, Dot::new(n));
            both!(device, 1, i32, Dot::new(n));
            both!(device, 1, f32, Axpy::new(n, 0.5));
            both!(device, 1, f16, Axpy::new(n, -2.0));
            both!(device, 2, f32, Caxpy::new(n, [0.5, 2.0]));
            both!(device, 2, f32, Cdot::new(n).conjugated());
            one!(device, f32, Nrm2::new(n));
            one!(device, f32, Asum::new(n));
            one!(device, f16, Asum::new(n));
            one!(device, f32, Iamax::new(n));
            one!(device, f16, Iamin::new(n));
        }
    }
}

#[test]
fn matrices_and_vectors_with_increments_match_those_without() {
    for device in devices() {
        for [m, n] in [[1, 1], [5, 3], [67, 130]] {
            both!(device, 1, f32, Gemv::new(m, n).beta(0.5));
            both!(device, 1, f32, Gemv::new(m, n).trans());
            both!(device, 1, f32, Ger::new(m, n).alpha(-0.5));
            both!(device, 1, f16, Ger::new(m, n));
            both!(device, 2, f32, Cgemv::new(m, n).beta([1.0, 0.5]));
        }
    }
}

#[test]
fn increments_by_name_match_the_reference() {
    for device in devices().iter().filter(|d| d.main) {
        let mut found = 0;
        for op in programs().filter(|op| op.option("incx").is_some()) {
            found += 1;
            for [x, y] in INCREMENTS {
                let mut settings = example_settings(op);
                settings.text("incx", x.to_string()).unwrap();
                if op.option("incy").is_some() {
                    settings.text("incy", y.to_string()).unwrap();
                }
                let mut numbers = Numbers::new(op, op.example.shape, op.types[0]);
                let call = op.build(Ask::new(&settings).supplied_by(&mut numbers)).unwrap();
                let want = wanted(op, &call).unwrap().unwrap();
                let run = || {
                    let ready = device.gpu.ready(call)?;
                    let mut rec = device.gpu.recorder();
                    ready.record(&mut rec)?;
                    rec.submit()?;
                    ready.results()
                };
                assert_eq!(complaint(&want, run()), None, "{}: {} {x} {y}", device.label, op.name);
            }
        }
        assert!(found >= 19, "{found} ops with increments");
    }
}

#[test]
fn arrays_by_name_are_taken_in_steps() {
    let Some(gpu) = gpu() else { return };
    let array = |shape: &[usize], x: &[f32]| HostArray::new(shape, x.to_vec()).unwrap();
    let (x, y) = (array(&[5], &[1.0, 9.0, 2.0, 9.0, 3.0]), array(&[3], &[10.0, 20.0, 30.0]));
    let run = |op, keys: &[(&str, &str)], inputs: &[&HostArray]| {
        by_name(gpu, op, keys, inputs.iter().map(|x| (*x).clone()).collect())
    };
    let steps = [("incx", "2"), ("incy", "-1")];
    let sum = run("axpy", &steps, &[&x, &y]).unwrap().remove(0);
    assert_eq!(sum.data(), &HostData::F32(vec![13.0, 22.0, 31.0]));
    let swapped = run("swap", &steps, &[&x, &y]).unwrap();
    assert_eq!(swapped[0].data(), &HostData::F32(vec![30.0, 9.0, 20.0, 9.0, 10.0]));
    assert_eq!(swapped[1].data(), &HostData::F32(vec![3.0, 2.0, 1.0]));
    // Between the numbers of a result that had no contents are zeros.
    let a = array(&[2, 3], &[1.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
    let product = run("gemv", &[("incx", "2"), ("incy", "2")], &[&a, &x]).unwrap().remove(0);
    assert_eq!((product.shape(), product.data()), (&[3][..], &HostData::F32(vec![1.0, 0.0, 5.0])));
    for (keys, text) in [
        (&[("incx", "0")][..], "incx is 0"),
        (&[("incx", "3")], "(n - 1) * 3 + 1"),
        (&[("incx", "2"), ("incy", "2")], "(2,)"),
        (&[("incx", "1.5")], "--incx 1.5"),
    ] {
        let error = run("dot", keys, &[&x, &y]).unwrap_err().to_string();
        assert!(error.contains("dot") && error.contains(text), "{error}");
    }
}

#[test]
fn increments_of_1_change_no_program() {
    let profile = DeviceProfile::h100();
    let of = |op: &Dot| Op::<f32>::lower(op, &profile).unwrap();
    assert_eq!(of(&Dot::new(1 << 20).incx(1).incy(1)), of(&Dot::new(1 << 20)));
    let of = |op: &Gemv| Op::<f32>::lower(op, &profile).unwrap();
    assert_eq!(of(&Gemv::new(300, 200).incx(1).incy(1)), of(&Gemv::new(300, 200)));
}

#[test]
fn empty_vectors_with_increments_do_nothing() {
    let Some(gpu) = gpu() else { return };
    let (x, y) = (gpu.alloc::<f32>(0).unwrap(), gpu.alloc::<f32>(0).unwrap());
    let result = gpu.upload(&[7.0f32]).unwrap();
    let mut rec = gpu.recorder();
    let axpy = Axpy::new(0, 2.0).incx(-3).incy(2).plan::<f32>(gpu).unwrap();
    axpy.record(&mut rec, &x, &y).unwrap();
    let dot = Dot::new(0).incx(5).plan::<f32>(gpu).unwrap();
    dot.record(&mut rec, &x, &y, &result).unwrap();
    rec.submit().unwrap();
    assert_eq!(result.read().unwrap(), [0.0]);
}

#[test]
fn invalid_increments_are_refused() {
    let Some(gpu) = gpu() else { return };
    let text = Dot::new(4).incx(0).plan::<f32>(gpu).unwrap_err().to_string();
    assert!(text.contains("dot") && text.contains("incx is 0"), "{text}");
    assert_eq!(refusal::<f32>(gpu, &Axpy::new(4, 1.0).incy(0)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Nrm2::new(0).incx(0)), ErrorKind::InvalidArgument);
    for far in [isize::MAX, isize::MIN, 1 << 40] {
        assert_eq!(refusal::<f32>(gpu, &Dot::new(4).incy(far)), ErrorKind::TooLarge, "{far}");
        assert_eq!(refusal::<f32>(gpu, &Gemv::new(4, 4).incx(far)), ErrorKind::TooLarge, "{far}");
    }
    // One number lies at its place whatever the increment.
    assert!(Dot::new(1).incx(isize::MAX).plan::<f32>(gpu).is_ok());
    let plan = Dot::new(4).incx(2).plan::<f32>(gpu).unwrap();
    let (x, y) = (gpu.alloc::<f32>(4).unwrap(), gpu.alloc::<f32>(4).unwrap());
    let result = gpu.alloc::<f32>(1).unwrap();
    let short = plan.record(&mut gpu.recorder(), &x, &y, &result);
    assert_eq!(short.unwrap_err().kind(), ErrorKind::Shape);
}
