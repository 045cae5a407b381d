//! `Transform` against the reference, and functions of the caller.

use crate::nn::training::refusal;
use crate::primitives::merge_sort::by_name;
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{transform, transform_bound};
use tilework::{DType, ErrorKind, HostArray, HostData};

/// Runs a function of operands of one type, with elements behind the output.
fn check<S: Sample, T: Sample>(device: &Device, function: &TransformFn, inputs: &[&[S]])
where
    Transform: Op<T>,
{
    let (gpu, n) = (&device.gpu, inputs[0].len());
    let behind = T::from_f64(7.0);
    let buffers: Vec<_> = inputs.iter().map(|x| gpu.upload(x).unwrap()).collect();
    let output = gpu.upload(&vec![behind; n + 3]).unwrap();
    let params = [0.75, -2.5];
    let op = Transform::new([1, n], function.clone()).params(&params);
    let op = inputs.iter().fold(op, |op, _| op.input(S::DTYPE, Broadcast::Each));
    let mut rec = gpu.recorder();
    let plan = op.plan::<T>(gpu).unwrap();
    let mut call = plan.with_a(&buffers[0]);
    if let Some(b) = buffers.get(1) {
        call = call.with_b(b);
    }
    if let Some(c) = buffers.get(2) {
        call = call.with_c(c);
    }
    call.record(&mut rec, output.slice(..n).unwrap()).unwrap();
    rec.submit().unwrap();
    let what = format!("{}: {function} of {n} {} to {}", device.label, S::DTYPE, T::DTYPE);
    let got = numbers(&output.read().unwrap());
    let data: Vec<_> = inputs.iter().map(|x| numbers(x)).collect();
    let given: Vec<_> = data.iter().map(|x| (&x[..], S::DTYPE, Broadcast::Each)).collect();
    let want = transform(function, [1, n], &given, &params, T::DTYPE).unwrap();
    let mut bound = transform_bound(function, [1, n], &given, &params, T::DTYPE).unwrap();
    let want: Vec<T> = want.iter().map(|x| T::from_f64(*x)).collect();
    if T::DTYPE == DType::F16 {
        // A step of f16 where an error moves the sum across the middle between two.
        let moved = |(b, want): (&mut f64, f64)| *b += 2f64.powi(-10) * want.abs() + 2f64.powi(-24);
        bound.iter_mut().zip(numbers(&want)).filter(|(b, _)| **b > 0.0).for_each(moved);
    }
    assert_close(&what, &got[..n], &numbers(&want), &bound);
    assert_eq!(got[n..], [7.0; 3], "{what}: behind the output");
}

#[test]
fn casts_match_the_reference_between_all_types() {
    fn to_all<S: Sample>(device: &Device, x: &[S]) {
        let cast = TransformFn::Convert;
        check::<S, f32>(device, &cast, &[x]);
        check::<S, f16>(device, &cast, &[x]);
        check::<S, i32>(device, &cast, &[x]);
        check::<S, u32>(device, &cast, &[x]);
        check::<S, u8>(device, &cast, &[x]);
        check::<S, i8>(device, &cast, &[x]);
    }
    for device in devices() {
        let mut random = Random::new(3);
        // Between whole numbers, beyond every type, and no numbers.
        let ends = [
            0.5,
            -0.5,
            300.5,
            -300.5,
            4e9,
            -4e9,
            256.0,
            2147483648.0,
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            -0.0,
            1e-40,
        ];
        let floats: Vec<f32> = random.elements::<f32>(301).iter().map(|x| x * 400.0).collect();
        to_all(device, &[&ends[..], &floats].concat());
        to_all(device, &floats.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>());
        to_all(device, &[i32::extremes(), random.elements(303)].concat());
        to_all(device, &[u32::extremes(), random.elements(302)].concat());
        to_all(device, &random.any::<u8>(257));
        to_all(device, &random.any::<i8>(258));
    }
}

/// Every built-in function, on every type that it takes.
#[test]
fn functions_match_the_reference() {
    fn all<T: Sample>(device: &Device)
    where
        Transform: Op<T>,
    {
        let mut random = Random::new(5);
        for function in &TransformFn::BUILT_IN[1..] {
            let activation = matches!(function.name(), name if name.contains("lu"));
            let floats = T::DTYPE.is_float();
            if !floats && (activation || *function == TransformFn::Affine) {
                continue;
            }
            let mut one = || {
                if floats {
                    let x: Vec<T> = random.elements(601);
                    let steps = (0..601).map(|i| (i as f64 - 300.0) * 0.07 + x[i].to_f64() * 0.1);
                    steps.map(T::from_f64).collect::<Vec<_>>()
                } else {
                    [T::extremes(), T::extremes(), random.elements(301)].concat()
                }
            };
            let (mut a, mut b, c) = (one(), one(), one());
            b.reverse();
            let special: Vec<T> = T::extremes();
            if floats && !activation && *function != TransformFn::Affine {
                a[..special.len()].copy_from_slice(&special);
                b[7..][..special.len()].copy_from_slice(&special);
                b[300] = a[300];
            } else if floats {
                for (at, x) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1000.0].into_iter().enumerate() {
                    a[at] = T::from_f64(x);
                }
            }
            check::<T, T>(device, function, &[&a[..], &b, &c][..count(function)]);
        }
    }
    for device in devices() {
        all::<f32>(device);
        all::<f16>(device);
        all::<i32>(device);
        all::<u32>(device);
        all::<u8>(device);
        all::<i8>(device);
    }
}

/// Operands of a function, by the number that plans accept.
fn count(function: &TransformFn) -> usize {
    let fits = |count: &usize| {
        let op =
            (0..*count).fold(Transform::new([1, 1], function.clone()), |op, _| op.input(DType::F32, Broadcast::Each));
        Op::<f32>::lower(&op, &tilework::program::DeviceProfile::mesa()).is_ok()
    };
    (1..=3).find(fits).unwrap()
}

/// Numbers that change are parameters: the kernels stay the same, so nothing is compiled again.
#[test]
fn other_parameters_and_extents_keep_the_kernel() {
    let profile = tilework::program::DeviceProfile::mesa();
    let kernels = |shape, params: &[f32]| {
        let op = Transform::new(shape, TransformFn::Affine).input(DType::U8, Broadcast::Each).params(params);
        Op::<f32>::lower(&op, &profile).unwrap().kernels
    };
    assert_eq!(kernels([3, 5], &[1.0, 2.0]), kernels([70, 9], &[-3.0]));
}

/// Slices at odd elements, the same buffer as two operands, and nothing at all.
#[test]
fn transform_takes_slices_and_empty_outputs() {
    for device in devices() {
        let gpu = &device.gpu;
        let bytes = gpu.upload(&(0..40).collect::<Vec<u8>>()).unwrap();
        let output = gpu.upload(&[9u8; 16]).unwrap();
        let op = Transform::new([1, 7], TransformFn::Add);
        let op = op.input(DType::U8, Broadcast::Each).input(DType::U8, Broadcast::Each);
        let mut rec = gpu.recorder();
        let plan = op.plan::<u8>(gpu).unwrap();
        let (a, b) = (bytes.slice(3..10).unwrap(), bytes.slice(21..28).unwrap());
        plan.with_a(a).with_b(b).record(&mut rec, output.slice(5..12).unwrap()).unwrap();
        rec.submit().unwrap();
        let want: Vec<u8> = (0..16).map(|i| if (5..12).contains(&i) { 2 * (i - 5) + 24 } else { 9 }).collect();
        assert_eq!(output.read().unwrap(), want, "{}", device.label);
        for shape in [[0, 5], [5, 0]] {
            let op = Transform::new(shape, TransformFn::Silu).input(DType::F32, Broadcast::Row);
            let (row, none) = (gpu.alloc_zeroed(shape[1]).unwrap(), gpu.alloc::<f32>(0).unwrap());
            let mut rec = gpu.recorder();
            op.plan::<f32>(gpu).unwrap().with_a::<f32>(&row).record(&mut rec, &none).unwrap();
            rec.submit().unwrap();
        }
    }
}

/// The one-line call: operands repeat as their lengths say.
#[test]
fn one_line_calls_repeat_by_length() {
    for device in devices() {
        let gpu = &device.gpu;
        let x = gpu.upload(&[1u8, 2, 3, 4, 5, 6]).unwrap();
        let (row, column) = (gpu.upload(&[10.0f32, 20.0, 30.0]).unwrap(), gpu.upload(&[1.0f32, -1.0]).unwrap());
        let one = gpu.upload(&[0.5f32]).unwrap();
        let f = TransformFn::custom(
            "fn apply(i: u32, a: A, b: B, c: C, d: D) -> R { return f32(a) + b * c + d * param(0); }",
        );
        let op = Transform::new([2, 3], f).params(&[4.0]);
        let all: [Slice<'_, f32>; 3] = [(&row).into(), (&column).into(), (&one).into()];
        let [row, column, one] = all.map(|x| x.untyped());
        let got = gpu.transform::<f32>(op.clone(), &[Slice::from(&x).untyped(), row, column, one]).unwrap();
        assert_eq!(got.read().unwrap(), [13.0, 24.0, 35.0, -4.0, -13.0, -22.0], "{}", device.label);
        let short = gpu.upload(&[1u8; 4]).unwrap();
        let wrong = gpu.transform::<f32>(op, &[Slice::from(&short).untyped(), row, column, one]);
        assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Shape);
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
            let (da, db, dc) = (gpu.upload(&flags).unwrap(), gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap());
            let mut rec = gpu.recorder();
            let plan = op.plan::<f32>(gpu).unwrap();
            plan.with_a(&da).with_b(&db).with_c(&dc).record(&mut rec, &output).unwrap();
            rec.submit().unwrap();
            let (flags, x, y) = (numbers(&flags), numbers(&x), numbers(&y));
            let inputs = [(&flags[..], DType::U8, a), (&x[..], DType::F32, b), (&y[..], DType::F16, c)];
            let want = transform(&TransformFn::Where, [rows, columns], &inputs, &[], DType::F32).unwrap();
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
        let iota = TransformFn::custom("fn apply(i: u32) -> R { return 10u * (i / columns()) + i % columns(); }");
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
fn as_many_rows_as_the_device_says_are_written() {
    fn of<T: Sample>(device: &Device, rows: usize)
    where
        Transform: Op<T>,
    {
        let gpu = &device.gpu;
        let draw = |seed, n| Random::new(seed).elements::<i8>(n).into_iter().map(|x| i32::from(x) / 2);
        let (x, by): (Vec<i32>, Vec<i32>) = (draw(2, 5 * rows).collect(), draw(3, rows).collect());
        let sum = TransformFn::custom("fn apply(i: u32, a: A, b: B) -> R { return R(a + b); }");
        let op = Transform::new([rows, 5], sum).input(DType::I32, Broadcast::Each);
        let op = op.input(DType::I32, Broadcast::Column).counted();
        let plan = op.plan::<T>(gpu).unwrap();
        let (a, b) = (gpu.upload(&x).unwrap(), gpu.upload(&by).unwrap());
        for length in [0, 1, rows / 3, rows, rows + 1, u32::MAX as usize] {
            let there = gpu.upload(&[length as u32]).unwrap();
            let output = gpu.upload(&vec![T::from_f64(7.0); 5 * rows]).unwrap();
            let mut rec = gpu.recorder();
            plan.with_a(&a).with_b(&b).with_length(&there).record(&mut rec, &output).unwrap();
            rec.submit().unwrap();
            let sum = |i: usize| T::from_f64(f64::from(x[i] + by[i / 5]));
            let mut want: Vec<T> = (0..5 * rows.min(length)).map(sum).collect();
            want.resize(5 * rows, T::from_f64(7.0));
            let what = format!("{}: {length} of {rows} {}", device.label, T::DTYPE);
            assert_eq!(numbers(&output.read().unwrap()), numbers(&want), "{what}");
        }
    }
    for device in devices() {
        of::<i8>(device, 301);
        of::<f32>(device, 90);
        of::<f16>(device, 1);
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
    assert_eq!(kind(op(TransformFn::Add, &[f, u])), ErrorKind::InvalidArgument);
    assert_eq!(kind(op(TransformFn::Add, &[u, u])), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u32>(gpu, &op(TransformFn::Affine, &[f])), ErrorKind::Unsupported);
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

/// Conditions of one type choose between elements of another, which is then the type of the result.
#[test]
fn operands_of_several_types_by_name() {
    let Some(gpu) = gpu() else { return };
    let array = |data: HostData| HostArray::new(&[1, 3], data).unwrap();
    let (yes, x) = (array(vec![1u8, 0, 2].into()), array(vec![0.5f32, 1.5, 300.0].into()));
    let y = array(vec![-1.0f32, -2.0, -3.0].into());
    let run = |function, inputs| by_name(gpu, "transform", &[("fn", function)], inputs).unwrap().remove(0);
    let chosen = run("where", vec![yes.clone(), x.clone(), y]);
    assert_eq!(chosen.data(), &HostData::F32(vec![0.5, -2.0, 300.0]));
    let halves = x.data().to_f64().into_iter().map(f16::from_f64).collect::<Vec<_>>();
    assert_eq!(run("equal", vec![x, array(halves.into())]).data(), &HostData::F32(vec![1.0; 3]));
}
