//! `SegmentedSort` against the reference.

use crate::nn::training::refusal;
use crate::support::coverage::{all, sample};
use crate::support::{Device, Random, Sample, devices, gpu};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::segmented_sort_positions;

/// Compares keys and values, with elements behind the outputs.
#[track_caller]
fn check<T: Sample>(device: &Device, keys: &[T], offsets: &[u32], descending: bool)
where
    SegmentedSort: Op<T>,
{
    let (gpu, n) = (&device.gpu, keys.len());
    let what = format!("{}: {n} {} in {:?}...", device.label, T::DTYPE, &offsets[..offsets.len().min(9)]);
    let op = SegmentedSort::new(n, offsets.len() - 1).when(descending, SegmentedSort::descending);
    let places = segmented_sort_positions(keys, offsets, descending);
    let values: Vec<u32> = (0..n as u32).map(|i| i ^ 0x5a5a).collect();
    let behind = T::from_f64(1.0);
    let given = (gpu.upload(keys).unwrap(), gpu.upload(offsets).unwrap(), gpu.upload(&values).unwrap());
    let keys_out = gpu.upload(&vec![behind; n + 1]).unwrap();
    let values_out = gpu.upload(&vec![77u32; n + 1]).unwrap();
    let to = keys_out.slice(..n).unwrap();
    let mut rec = gpu.recorder();
    if descending {
        op.plan::<T>(gpu).unwrap().record(&mut rec, &given.0, &given.1, to).unwrap();
    } else {
        let plan = op.with_values().plan::<T>(gpu).unwrap();
        let with = plan.with_values(&given.2, values_out.slice(..n).unwrap());
        with.record(&mut rec, &given.0, &given.1, to).unwrap();
        let want: Vec<u32> = places.iter().map(|&i| values[i]).chain([77]).collect();
        rec.submit().unwrap();
        assert_eq!(values_out.read().unwrap(), want, "{what}");
        rec = gpu.recorder();
    }
    rec.submit().unwrap();
    let want: Vec<T> = places.iter().map(|&i| keys[i]).chain([behind]).collect();
    let got = keys_out.read().unwrap();
    assert!(bytemuck::cast_slice::<T, u8>(&got) == bytemuck::cast_slice::<T, u8>(&want), "{what}: {got:?}");
}

/// Offsets of segments of these lengths, by turns.
fn offsets(n: usize, lengths: &[usize]) -> Vec<u32> {
    let mut all = vec![0];
    let mut at = 0;
    for length in lengths.iter().cycle() {
        if at >= n {
            return all;
        }
        at = (at + length).min(n);
        all.push(at as u32);
    }
    all
}

#[test]
fn segments_of_any_length_match_the_reference() {
    let n = 3001;
    for device in devices() {
        let mut random = Random::new(6);
        let lengths: [&[usize]; 5] = [&[0, 1, 2, 700, 3], &[1], &[3001], &[10, 0, 0], &[1500]];
        for (i, lengths) in sample(&lengths, 2).iter().enumerate() {
            check(device, &random.any::<f32>(n), &offsets(n, lengths), i % 2 == 1);
        }
        let few: Vec<u32> = random.elements::<u32>(n).iter().map(|x| x % 3).collect();
        check(device, &few, &offsets(n, &[40, 900]), false);
        check(device, &random.elements::<i32>(500), &offsets(500, &[7]), true);
        check::<f32>(device, &[], &[0, 0], false);
        if device.main {
            // Segments of few keys over more ends of tiles than a workgroup visits.
            check(device, &random.elements::<u32>(150_000), &offsets(150_000, &[7]), false);
        }
    }
}

/// A tile has 1,920 keys: segments that end at its end, straddle it, hold whole tiles, and hold all.
#[test]
fn segments_at_the_ends_of_tiles_match_the_reference() {
    for device in devices() {
        let mut random = Random::new(8);
        let sizes: &[usize] = if device.main { &[1919, 1920, 1921, 3840, 3841, 9000] } else { &[1921, 4000] };
        for (i, &n) in sizes.iter().enumerate() {
            let lengths: [&[usize]; 7] =
                [&[1920], &[1919, 1], &[10], &[400, 1000, 500], &[1700, 3000, 4], &[3, 5400, 1], &[9000]];
            for lengths in sample(&lengths, 3) {
                check(device, &random.any::<f32>(n), &offsets(n, lengths), i % 2 == 1);
                let few: Vec<u32> = random.elements::<u32>(n).iter().map(|x| x % 5).collect();
                check(device, &few, &offsets(n, lengths), false);
            }
        }
    }
}

/// A chunk has 15 keys: segments of one chunk, of a key more, of several chunks, of all lengths by turns; NaN and many
/// equal keys.
#[test]
fn segments_at_the_ends_of_chunks_match_the_reference() {
    let growing: Vec<usize> = (0..70).collect();
    for device in devices() {
        let mut random = Random::new(10);
        let lengths: [&[usize]; 6] = [&growing, &[15], &[16], &[2, 1, 30], &[14, 17, 0, 31], &[7, 8, 61, 100]];
        for (i, lengths) in sample(&lengths, 3).iter().enumerate() {
            check(device, &random.any::<f32>(4001), &offsets(4001, lengths), i % 2 == 1);
            let few: Vec<u32> = random.elements::<u32>(4001).iter().map(|x| x % 5).collect();
            check(device, &few, &offsets(4001, lengths), false);
            let edges: Vec<i32> =
                random.elements::<i32>(4001).iter().map(|x| [i32::MIN, i32::MAX, 0][*x as usize % 3]).collect();
            // Each type compiles kernels of its own.
            if all() {
                check(device, &edges, &offsets(4001, lengths), i % 2 == 0);
            }
        }
    }
}

/// A few lanes sort up to 32, 64, 128 or 256 keys without values, also of a segment that ends in the next tile.
#[test]
fn keys_of_short_segments_match_the_reference() {
    let n = 9001;
    let growing: Vec<usize> = (0..300).collect();
    // More segments in a tile than are listed, and a segment whose end is alone in the last tile.
    let (crowd, alone) = ([&[2; 150], &[6000][..]].concat(), [&[60; 30], &[130][..]].concat());
    let lengths: [&[usize]; 7] = [
        &crowd,
        &[100],
        &[16, 17, 32, 33, 64, 65, 128, 129, 256, 257],
        &growing,
        &[1900, 19, 2, 1],
        &[1800, 250, 5, 1865, 256, 2, 250],
        &[1664, 256, 1, 1600, 1, 257, 2000, 128],
    ];
    for device in devices() {
        let mut random = Random::new(11);
        for lengths in sample(&lengths, 3) {
            // An average of 32 and more selects the lists of chunks.
            check(device, &random.elements::<u32>(n), &offsets(n, lengths), true);
            let few: Vec<i32> = random.elements::<i32>(n).iter().map(|x| x % 5).collect();
            check(device, &few, &offsets(n, lengths), true);
        }
        check(device, &random.elements::<u32>(1930), &offsets(1930, &alone), true);
    }
}

#[test]
fn each_variant_sorts_long_segments() {
    for device in devices() {
        let gpu = &device.gpu;
        let keys = Random::new(9).elements::<u32>(8000);
        let at = offsets(8000, &[20, 6000]);
        let places = segmented_sort_positions(&keys, &at, false);
        let (given, begins) = (gpu.upload(&keys).unwrap(), gpu.upload(&at).unwrap());
        for variant in SegmentedSort::variants() {
            let op = SegmentedSort::new(keys.len(), at.len() - 1).variant(variant.name);
            let plan = match op.plan::<u32>(gpu) {
                Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                plan => plan.unwrap(),
            };
            let sorted = gpu.alloc::<u32>(keys.len()).unwrap();
            let mut rec = gpu.recorder();
            plan.record(&mut rec, &given, &begins, &sorted).unwrap();
            rec.submit().unwrap();
            let want: Vec<u32> = places.iter().map(|&i| keys[i]).collect();
            assert_eq!(sorted.read().unwrap(), want, "{}: {}", device.label, variant.name);
        }
    }
}

/// Nothing is written outside, and every key is somewhere.
#[test]
fn offsets_that_decrease_or_leave_the_array_give_a_permutation() {
    for device in devices() {
        let mut random = Random::new(7);
        let keys = random.elements::<u32>(900);
        let wild: Vec<u32> = random.elements::<u32>(200).iter().map(|x| x % 1100).collect();
        check(device, &keys, &wild, false);
        check(device, &keys, &[500, 100, u32::MAX, 0], false);
        check(device, &keys, &[300, 400], true);
    }
}

#[test]
fn segmented_sort_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &SegmentedSort::new(4, 1).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &SegmentedSort::new(usize::MAX, 1)), ErrorKind::TooLarge);
    assert_eq!(refusal::<f32>(gpu, &SegmentedSort::new(1, usize::MAX)), ErrorKind::TooLarge);
    let none = gpu.alloc::<u32>(0).unwrap();
    let keys = gpu.upload(&[1u32]).unwrap();
    assert_eq!(gpu.segmented_sort(&keys, &none).unwrap_err().kind(), ErrorKind::Shape);
}
