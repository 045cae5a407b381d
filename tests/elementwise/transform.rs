//! `Transform` against the reference, and functions of the caller.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{transform, transform_bound};
use tilework::{DType, ErrorKind};

/// Runs a function of one operand, with elements behind the output.
fn check<S: Sample, T: Sample>(device: &Device, function: &TransformFn, x: &[S])
where
    Transform: Op<T>,
{
    let (gpu, n) = (&device.gpu, x.len());
    let behind = T::from_f64(7.0);
    let (a, output) = (gpu.upload(x).unwrap(), gpu.upload(&vec![behind; n + 3]).unwrap());
    let op = Transform::new([1, n], function.clone()).input(S::DTYPE, Broadcast::Each);
    let mut rec = gpu.recorder();
    let plan = op.plan::<T>(gpu).unwrap();
    plan.with_a(&a).record(&mut rec, output.slice(..n).unwrap()).unwrap();
    rec.submit().unwrap();
    let what = format!("{}: {function} of {n} {} to {}", device.label, S::DTYPE, T::DTYPE);
    let (got, x) = (numbers(&output.read().unwrap()), numbers(x));
    let inputs = [(&x[..], Broadcast::Each)];
    let want = transform(function, [1, n], &inputs, T::DTYPE).unwrap();
    let mut bound = transform_bound(function, [1, n], &inputs, T::DTYPE).unwrap();
    let want: Vec<T> = want.iter().map(|x| T::from_f64(*x)).collect();
    if T::DTYPE == DType::F16 {
        bound.iter_mut().zip(numbers(&want)).for_each(|(b, want)| *b += 2f64.powi(-10) * want.abs());
    }
    assert_close(&what, &got[..n], &numbers(&want), &bound);
    assert_eq!(got[n..], [7.0; 3], "{what}: behind the output");
}

#[test]
fn casts_match_the_reference_between_all_types() {
    fn to_all<S: Sample>(device: &Device, x: &[S]) {
        let cast = TransformFn::Convert;
        check::<S, f32>(device, &cast, x);
        check::<S, f16>(device, &cast, x);
        check::<S, i32>(device, &cast, x);
        check::<S, u32>(device, &cast, x);
        check::<S, u8>(device, &cast, x);
        check::<S, i8>(device, &cast, x);
    }
    for device in devices() {
        let mut random = Random::new(3);
        // Between whole numbers, beyond every type, and no numbers.
        let ends = [0.5, -0.5, 300.5, -300.5, 7.25, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-40];
        let floats: Vec<f32> = random.elements::<f32>(301).iter().map(|x| x * 200.0 + 0.125).collect();
        to_all(device, &[&ends[..], &floats].concat());
        to_all(
            device,
            &floats
                .iter()
                .map(|x| f16::from_f32(*x))
                .filter(|x| x.to_f32().fract() != 0.0)
                .collect::<Vec<_>>(),
        );
        to_all(device, &random.elements::<i32>(303).iter().map(|x| x >> 12).collect::<Vec<_>>());
        to_all(device, &random.elements::<u32>(302).iter().map(|x| x >> 12).collect::<Vec<_>>());
        to_all(device, &random.any::<u8>(257));
        to_all(device, &random.any::<i8>(258));
    }
}

#[test]
fn silu_matches_the_reference() {
    for device in devices() {
        let x: Vec<f32> =
            (0..401).map(|i| (i - 200) as f32 * 0.71).chain([f32::NAN, f32::INFINITY]).collect();
        check::<f32, f32>(device, &TransformFn::Silu, &x);
        check::<f16, f16>(
            device,
            &TransformFn::Silu,
            &x.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>(),
        );
    }
}

/// Each form of each operand, with types that differ.
#[test]
fn rows_columns_and_numbers_repeat() {
    let all = [Broadcast::Each, Broadcast::Row, Broadcast::Column, Broadcast::Scalar];
    let (rows, columns) = (7, 13);
    let len = |b| match b {
        Broadcast::Each => rows * columns,
        Broadcast::Row => columns,
        Broadcast::Column => rows,
        Broadcast::Scalar => 1,
    };
    for device in devices() {
        let gpu = &device.gpu;
        for (at, a) in all.into_iter().enumerate() {
            let (b, c) = (all[(at + 1) % 4], all[(at + 2) % 4]);
            let flags: Vec<u8> = (0..len(a)).map(|i| (i % 3) as u8).collect();
            let x: Vec<f32> = Random::new(1).elements(len(b));
            let y: Vec<f16> = Random::new(2).elements(len(c));
            let op = Transform::new([rows, columns], TransformFn::Where);
            let op = op.input(DType::U8, a).input(DType::F32, b).input(DType::F16, c);
            let output = gpu.alloc::<f32>(rows * columns).unwrap();
            let (da, db, dc) =
                (gpu.upload(&flags).unwrap(), gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap());
            let mut rec = gpu.recorder();
            let plan = op.plan::<f32>(gpu).unwrap();
            plan.with_a(&da).with_b(&db).with_c(&dc).record(&mut rec, &output).unwrap();
            rec.submit().unwrap();
            let (flags, x, y) = (numbers(&flags), numbers(&x), numbers(&y));
            let inputs = [(&flags[..], a), (&x[..], b), (&y[..], c)];
            let want = transform(&TransformFn::Where, [rows, columns], &inputs, DType::F32).unwrap();
            assert_eq!(numbers(&output.read().unwrap()), want, "{}: {a:?} {b:?} {c:?}", device.label);
        }
    }
}

/// NaN is less than nothing and equals nothing; -0 equals 0; small numbers are not 0.
#[test]
fn comparisons_give_flags() {
    let x = [1.0f32, -0.0, f32::NAN, 1e-40, -2.0, f32::INFINITY];
    let y = [2.0f32, 0.0, f32::NAN, 0.0, -3.0, f32::INFINITY];
    for device in devices() {
        let gpu = &device.gpu;
        let (a, b, flags) = (gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap(), gpu.alloc::<u8>(6).unwrap());
        let want = [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 1]];
        for (function, want) in [TransformFn::Less, TransformFn::Equal].into_iter().zip(want) {
            let op = Transform::new([2, 3], function);
            let op = op.input(DType::F32, Broadcast::Each).input(DType::F32, Broadcast::Each);
            let mut rec = gpu.recorder();
            let plan = op.plan::<u8>(gpu).unwrap();
            plan.with_a(&a).with_b(&b).record(&mut rec, &flags).unwrap();
            rec.submit().unwrap();
            assert_eq!(flags.read().unwrap(), want, "{}: {op:?}", device.label);
        }
    }
}

/// Numbers from their places, parameters that compile nothing, and four operands of four types.
#[test]
fn functions_of_the_caller_run() {
    for device in devices() {
        let gpu = &device.gpu;
        let iota =
            TransformFn::custom("fn apply(i: u32) -> R { return 10u * (i / columns()) + i % columns(); }");
        let output = gpu.alloc::<u32>(6).unwrap();
        let mut rec = gpu.recorder();
        Transform::new([2, 3], iota).plan::<u32>(gpu).unwrap().record(&mut rec, &output).unwrap();
        rec.submit().unwrap();
        assert_eq!(output.read().unwrap(), [0, 1, 2, 10, 11, 12], "{}", device.label);
        let text = "fn apply(i: u32, a: A, b: B, c: C, d: D) -> R { \
                    return R(param(0) * f32(a) + b + f32(c) * f32(d) + param(7)); }";
        for offset in [0.0, 5.0] {
            let op = Transform::new([1, 3], TransformFn::custom(text))
                .input(DType::I8, Broadcast::Each)
                .input(DType::F16, Broadcast::Each)
                .input(DType::U32, Broadcast::Scalar)
                .input(DType::I32, Broadcast::Each)
                .params(&[2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, offset]);
            let (a, b) = (gpu.upload(&[-1i8, 2, 3]).unwrap(), gpu.upload(&[f16::ONE; 3]).unwrap());
            let (c, d) = (gpu.upload(&[10u32]).unwrap(), gpu.upload(&[1i32, -2, 0]).unwrap());
            let sums = gpu.alloc::<i32>(3).unwrap();
            let mut rec = gpu.recorder();
            let plan = op.plan::<i32>(gpu).unwrap();
            plan.with_a(&a).with_b(&b).with_c(&c).with_d(&d).record(&mut rec, &sums).unwrap();
            rec.submit().unwrap();
            let want = [9, -15, 7].map(|x| x + offset as i32);
            assert_eq!(sums.read().unwrap(), want, "{}", device.label);
        }
    }
}

#[test]
fn transform_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = |function: TransformFn, inputs: &[DType]| {
        inputs.iter().fold(Transform::new([2, 2], function), |op, t| op.input(*t, Broadcast::Each))
    };
    let kind = |op: Transform| refusal::<f32>(gpu, &op);
    let (f, u) = (DType::F32, DType::U32);
    assert_eq!(kind(op(TransformFn::Silu, &[])), ErrorKind::InvalidArgument);
    assert_eq!(kind(op(TransformFn::Silu, &[f, f])), ErrorKind::InvalidArgument);
    assert_eq!(kind(op(TransformFn::Silu, &[u])), ErrorKind::Unsupported);
    assert_eq!(refusal::<u32>(gpu, &op(TransformFn::Silu, &[u])), ErrorKind::Unsupported);
    assert_eq!(kind(op(TransformFn::Where, &[u, f, u])), ErrorKind::InvalidArgument);
    assert_eq!(kind(op(TransformFn::Less, &[f, u])), ErrorKind::InvalidArgument);
    assert_eq!(kind(op(TransformFn::Convert, &[DType::U64])), ErrorKind::Unsupported);
    let five = op(TransformFn::custom("fn apply(i: u32) -> R { return 1.0; }"), &[f; 5]);
    assert_eq!(kind(five), ErrorKind::InvalidArgument);
    assert_eq!(kind(op(TransformFn::Convert, &[f]).params(&[0.0; 9])), ErrorKind::InvalidArgument);
    assert_eq!(kind(op(TransformFn::Convert, &[f]).variant("fast")), ErrorKind::InvalidArgument);
    let long = Transform::new([usize::MAX, 2], TransformFn::Convert).input(f, Broadcast::Each);
    assert_eq!(kind(long), ErrorKind::TooLarge);
    for text in ["", "fn apply(i: u32, a: A) -> R { return a }", "fn apply(a: A) -> R { return a; }"] {
        assert_eq!(kind(op(TransformFn::custom(text), &[f])), ErrorKind::Shader, "{text}");
    }
}
