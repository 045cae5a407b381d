//! `MergeSort` against the references.

use crate::nn::training::refusal;
use crate::support::coverage::{all, sample};
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::prelude::*;
use tilework::program::{Ask, Op, Settings};
use tilework::reference::{merge_sort_positions, sort_positions};
use tilework::{DType, ErrorKind, HostArray, HostData, operations};

/// Sorted keys and the positions that they come from, with elements behind the outputs.
fn run<T: Sample>(device: &Device, op: &MergeSort, keys: &[T]) -> (Vec<u32>, Vec<u32>)
where
    MergeSort: Op<T>,
{
    let (gpu, n) = (&device.gpu, keys.len());
    let numbers: Vec<u32> = (0..n as u32).collect();
    let (x, v) = (gpu.upload(keys).unwrap(), gpu.upload(&numbers).unwrap());
    let behind = T::from_f64(7.0);
    let keys_out = gpu.upload(&vec![behind; n + 1]).unwrap();
    let values_out = gpu.upload(&vec![77u32; n + 1]).unwrap();
    let alone = gpu.alloc::<T>(n).unwrap();
    let mut rec = gpu.recorder();
    op.plan::<T>(gpu).unwrap().record(&mut rec, &x, &alone).unwrap();
    let plan = op.clone().with_values().plan::<T>(gpu).unwrap();
    let call = plan.with_values(&v, values_out.slice(..n).unwrap());
    call.record(&mut rec, &x, keys_out.slice(..n).unwrap()).unwrap();
    rec.submit().unwrap();
    let (mut places, mut sorted) = (values_out.read().unwrap(), bits(&keys_out.read().unwrap()));
    assert_eq!((places.pop(), sorted.pop()), (Some(77), bits(&[behind]).pop()), "{}", device.label);
    let alone = bits(&alone.read().unwrap());
    // A comparison that is no order gives another permutation with other tiles.
    let mut all = [alone.clone(), bits(keys)];
    all.iter_mut().for_each(|x| x.sort_unstable());
    assert!(all[0] == all[1], "{}: {n} keys without values", device.label);
    let of_places: Vec<T> = places.iter().map(|&i| keys[i as usize]).collect();
    assert!(bits(&of_places) == sorted, "{}: keys and values of {n}", device.label);
    (if is_order(op) { alone } else { sorted }, places)
}

fn bits<T: Sample>(x: &[T]) -> Vec<u32> {
    let of = |x: &T| bytemuck::bytes_of(x).iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    x.iter().map(of).collect()
}

/// Whether the test's comparison is an order.
fn is_order(op: &MergeSort) -> bool {
    !format!("{op:?}").contains("no order")
}

#[test]
fn keys_are_sorted_in_every_type_and_direction() {
    fn of<T: Sample>(device: &Device, descending: bool)
    where
        MergeSort: Op<T>,
    {
        let mut random = Random::new(5);
        // A tile has 448 keys on a software driver, and 1792 or 3840 on a card.
        for n in [0, 1, 2, 447, 449, 1793, 3841, 20_000] {
            let few = |random: &mut Random| (0..n).map(|_| T::from_f64((random.next() % 9) as f64)).collect();
            for keys in [random.any::<T>(n), few(&mut random)] {
                let op = MergeSort::new(n).when(descending, MergeSort::descending);
                let (sorted, places) = run(device, &op, &keys);
                let want = sort_positions(&keys, descending, 0..8 * size_of::<T>() as u32);
                let moved: Vec<T> = want.iter().map(|&i| keys[i]).collect();
                let what = format!("{}: {n} {}, {descending}", device.label, T::DTYPE);
                assert!(sorted == bits(&moved), "{what}");
                assert!(places.iter().map(|&i| i as usize).eq(want), "{what}, values");
            }
        }
    }
    for device in devices() {
        of::<f32>(device, false);
        of::<i32>(device, true);
        of::<f16>(device, false);
        // Types and directions compile other kernels.
        if all() {
            of::<u32>(device, false);
            of::<f16>(device, true);
        }
    }
}

#[test]
fn keys_are_sorted_by_the_users_comparison() {
    let wgsl = "fn less(a: T, b: T) -> bool { return abs(a) < abs(b); }";
    let mut random = Random::new(6);
    for device in devices() {
        for n in [1, 449, 5000] {
            let keys: Vec<i32> = (0..n).map(|_| (random.next() % 2001) as i32 - 1000).collect();
            for descending in [false, true] {
                let op = MergeSort::new(n).less(wgsl).when(descending, MergeSort::descending);
                let (sorted, places) = run(device, &op, &keys);
                let want = merge_sort_positions(&keys, |a, b| match descending {
                    true => b.abs() < a.abs(),
                    false => a.abs() < b.abs(),
                });
                let moved: Vec<i32> = want.iter().map(|&i| keys[i]).collect();
                assert!(sorted == bits(&moved), "{}: {n}", device.label);
                assert!(places.iter().map(|&i| i as usize).eq(want), "{}: {n}, values", device.label);
            }
        }
    }
}

#[test]
fn halves_are_sorted_by_the_users_comparison() {
    let keys = Random::new(7).elements::<f16>(1001);
    let want = merge_sort_positions(&keys, |a, b| a.to_f32().abs() < b.to_f32().abs());
    let moved: Vec<f16> = want.iter().map(|&i| keys[i]).collect();
    for device in devices() {
        let op = MergeSort::new(1001).less("fn less(a: T, b: T) -> bool { return abs(a) < abs(b); }");
        let (sorted, places) = run(device, &op, &keys);
        assert!(sorted == bits(&moved), "{}", device.label);
        assert!(places.iter().map(|&i| i as usize).eq(want.iter().copied()), "{}, values", device.label);
    }
}

#[test]
fn comparisons_that_are_no_order_give_a_permutation() {
    for device in devices() {
        let bodies = [
            "return true;",
            "return ((a * 2654435761u) ^ (b * 40503u)) % 3u == 0u;",
            "return a != b;",
            "return (a - b) % 3u == 1u;",
        ];
        for body in sample(&bodies, 2) {
            let wgsl = format!("// no order\nfn less(a: T, b: T) -> bool {{ {body} }}");
            for n in [449, 1000, 9000] {
                let keys: Vec<u32> = Random::new(9).any(n);
                let (_, mut places) = run(device, &MergeSort::new(n).less(&wgsl), &keys);
                places.sort_unstable();
                assert!(places.iter().copied().eq(0..n as u32), "{}: {n} by {body}", device.label);
            }
        }
    }
}

#[test]
fn merge_sort_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &MergeSort::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &MergeSort::new(usize::MAX)), ErrorKind::TooLarge);
    for wgsl in ["", "fn less(a: T) -> bool { return true; }", "fn less(a: T, b: T) -> T { return a; }"] {
        assert_eq!(refusal::<f32>(gpu, &MergeSort::new(4).less(wgsl)), ErrorKind::Shader, "{wgsl}");
    }
}

/// Runs an op by name and returns its results.
pub(crate) fn by_name(
    gpu: &Gpu, name: &str, options: &[(&str, &str)], inputs: Vec<HostArray>,
) -> tilework::Result<Vec<HostArray>> {
    let op = operations().find(|op| op.name == name).unwrap();
    let mut settings = Settings::new(op);
    for (key, value) in options {
        settings.text(key, *value)?;
    }
    let ready = gpu.ready(op.build(Ask::new(&settings).inputs(inputs))?)?;
    let mut rec = gpu.recorder();
    ready.record(&mut rec)?;
    rec.submit()?;
    ready.results()
}

#[test]
fn values_of_any_word_and_rows_of_them_move_with_keys() {
    let array = |shape: &[usize], data: HostData| HostArray::new(shape, data).unwrap();
    for device in devices() {
        for n in [1, 449, 5000] {
            let mut random = Random::new(n as u64);
            let keys: Vec<u32> = (0..n).map(|_| (random.next() % 60) as u32).collect();
            let places = sort_positions(&keys, false, 0..32);
            let sorted: Vec<u32> = places.iter().map(|&i| keys[i]).collect();
            for (name, width) in [("sort", 1), ("sort", 3), ("merge-sort", 1), ("merge-sort", 3), ("segmented-sort", 1)]
            {
                let shape = if width == 1 { vec![n] } else { vec![n, width] };
                let values: Vec<f32> = (0..n * width).map(|i| i as f32 - 0.5).collect();
                let moved: Vec<f32> =
                    places.iter().flat_map(|&i| values[i * width..(i + 1) * width].to_vec()).collect();
                let mut inputs = vec![array(&[n], keys.clone().into())];
                if name == "segmented-sort" {
                    inputs.push(array(&[2], vec![0, n as u32].into()));
                }
                inputs.push(array(&shape, values.into()));
                let results = by_name(&device.gpu, name, &[], inputs).unwrap();
                let want = [array(&[n], sorted.clone().into()), array(&shape, moved.into())];
                assert!(results == want, "{}: {name} of {n}, rows of {width}", device.label);
            }
        }
    }
}

#[test]
fn rejects_values_that_do_not_fit() {
    let Some(gpu) = gpu() else { return };
    let keys = || HostArray::new(&[4], vec![1u32, 2, 3, 4]).unwrap();
    let values = |shape: &[usize], dtype| HostArray::zeros(shape, dtype).unwrap();
    for values in [values(&[4], DType::F16), values(&[3], DType::F32), values(&[], DType::U32)] {
        for name in ["sort", "merge-sort"] {
            let refused = by_name(gpu, name, &[], vec![keys(), values.clone()]);
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Shape, "{name}: {values}");
        }
    }
    let offsets = HostArray::new(&[2], vec![0u32, 4]).unwrap();
    let refused = by_name(gpu, "segmented-sort", &[], vec![keys(), offsets, values(&[4, 2], DType::U32)]);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(refusal::<u32>(gpu, &MergeSort::new(4).with_wide_values(0)), ErrorKind::InvalidArgument);
}
