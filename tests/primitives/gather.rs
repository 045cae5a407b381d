//! Every variant of `Gather` against the reference.

use crate::nn::training::{names, refusal};
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::gather;

/// Runs the op on an output buffer of ones that is longer than the output.
fn check<T: Sample>(device: &Device, rows: usize, n: usize, numbers: &[u32])
where
    Gather: Op<T>,
{
    let table: Vec<T> = Random::new((rows * 31 + n) as u64).any(rows * n);
    let want = gather(n, &table, numbers);
    let gpu = &device.gpu;
    for variant in names(Gather::variants()) {
        let plan = Gather::new([rows, n], numbers.len()).variant(variant).plan::<T>(gpu).unwrap();
        let ones = vec![T::from_f64(1.0); want.len() + 3];
        let (x, indices, y) = (gpu.upload(&table).unwrap(), gpu.upload(numbers).unwrap(), gpu.upload(&ones).unwrap());
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &x, &indices, y.slice(..want.len()).unwrap()).unwrap();
        rec.submit().unwrap();
        let got = y.read().unwrap();
        let what = format!("{}: {variant} {} of {rows} x {n}", device.label, T::DTYPE);
        let bits = |x: &[T]| bytemuck::cast_slice::<T, u8>(x).to_vec();
        assert_eq!(bits(&got[..want.len()]), bits(&want), "{what}");
        assert_eq!(got[want.len()..], ones[want.len()..], "{what}: elements past the output");
    }
}

#[test]
fn gather_matches_reference_for_rows_of_every_length() {
    // Repeated, unordered and out-of-range indices.
    let mut random = Random::new(5);
    for device in devices() {
        for (rows, n, count) in [(7, 1, 9), (300, 3, 40), (50, 8, 300), (4, 384, 3), (9, 6, 7), (3, 5, 1)] {
            let mut numbers: Vec<u32> = (0..count).map(|_| random.next() as u32 % rows).collect();
            numbers[0] = rows;
            numbers[count / 2] = u32::MAX;
            let rows = rows as usize;
            check::<f32>(device, rows, n, &numbers);
            check::<f16>(device, rows, n, &numbers);
            check::<u8>(device, rows, n, &numbers);
        }
        check::<i32>(device, 3, 4, &[2, 0]);
        check::<u32>(device, 3, 4, &[1, 1]);
        check::<i8>(device, 3, 4, &[2]);
    }
}

#[test]
fn gather_of_empty_input_is_empty_or_zeros() {
    for device in devices() {
        for n in [4, 3, 0] {
            check::<f32>(device, 0, n, &[0, 1, u32::MAX]);
            check::<f16>(device, 0, n, &[0, 1, u32::MAX]);
            check::<f32>(device, 5, n, &[]);
        }
    }
}

#[test]
fn gather_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Gather::new([4, 4], 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Gather::new([usize::MAX, 2], 1)), ErrorKind::TooLarge);
    assert_eq!(refusal::<f16>(gpu, &Gather::new([2, 2], usize::MAX)), ErrorKind::TooLarge);
    assert_eq!(refusal::<u8>(gpu, &Gather::new([1, 1 << 40], 1)), ErrorKind::TooLarge);
}

#[test]
fn checks_count_indices_out_of_range() {
    let Some(gpu) = crate::support::gpu() else { return };
    let indices: Vec<u32> = (0..3000).collect();
    let (table, indices) = (gpu.upload(&[7u32; 2000]).unwrap(), gpu.upload(&indices).unwrap());
    let (output, invalid) = (gpu.alloc::<u32>(3000).unwrap(), gpu.alloc::<u32>(1).unwrap());
    let plan = Gather::new([2000, 1], 3000).checked().plan::<u32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    plan.with_invalid(&invalid).record(&mut rec, &table, &indices, &output).unwrap();
    rec.submit().unwrap();
    assert_eq!(invalid.read().unwrap(), [1000]);
}

#[test]
fn checks_by_name_are_errors() {
    use tilework::program::{Ask, Settings};
    use tilework::{HostArray, operations};
    let Some(gpu) = crate::support::gpu() else { return };
    for name in ["gather", "scatter"] {
        let op = operations().find(|op| op.name == name).unwrap();
        let mut settings = Settings::new(op);
        settings.flag("check").unwrap();
        let mut errors = Vec::new();
        for last in [2u32, 3] {
            let x = HostArray::new(&[3, 2], vec![1.0f32; 6]).unwrap();
            let indices = HostArray::new(&[3], vec![0, 1, last]).unwrap();
            let into = (name == "scatter").then(|| x.clone());
            let ask = Ask::new(&settings).input(x).input(indices).inputs(into);
            let ready = gpu.ready(op.build(ask).unwrap()).unwrap();
            let mut rec = gpu.recorder();
            ready.record(&mut rec).unwrap();
            rec.submit().unwrap();
            errors.push(ready.results().err().map(|e| e.to_string()));
        }
        let text = format!("{name}: indices out of range: 1; each must be below 3");
        assert_eq!(errors, [None, Some(text)]);
    }
}
