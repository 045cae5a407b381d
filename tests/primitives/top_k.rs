//! Every variant of `TopK` against the reference.

use crate::support::coverage::{all, sample};
use crate::support::{Device, Random, Sample, as_card, devices};
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op, Program};
use tilework::reference::top_k;
use tilework::{DType, Element, ErrorKind, Result};

fn variants() -> impl Iterator<Item = &'static str> {
    TopK::variants().iter().map(|v| v.name)
}

fn best_of<T: Element>(gpu: &Gpu, top: &TopK, x: &[T], k: usize) -> Result<(Vec<T>, Vec<u32>)> {
    let (values, indices) = (gpu.alloc::<T>(k.max(1))?, gpu.alloc::<u32>(k.max(1))?);
    let plan = top.plan::<T>(gpu)?;
    let input = gpu.upload(x)?;
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &input, &values, &indices)?;
    rec.submit()?;
    Ok((values.read()?, indices.read()?))
}

#[track_caller]
fn same<T: Element>(what: &str, x: &[T], k: usize, smallest: bool, got: &(Vec<T>, Vec<u32>)) {
    let order = top_k(x, k, smallest);
    let want: Vec<T> = order.iter().map(|&i| x[i]).collect();
    let indices: Vec<u32> = order.iter().map(|&i| i as u32).collect();
    if let Some(i) = (0..k).find(|&i| got.1[i] != indices[i]) {
        panic!("{what}: number {i} is {:?} at {}, wanted {:?} at {}", got.0[i], got.1[i], want[i], indices[i]);
    }
    assert!(bytemuck::cast_slice::<T, u8>(&got.0) == bytemuck::cast_slice::<T, u8>(&want), "{what}: bits");
}

/// Compares positions and bits. Returns false if the variant does not accept these sizes.
fn check<T: Element>(device: &Device, top: &TopK, x: &[T], k: usize, smallest: bool) -> bool {
    let what = format!("{}: {top:?} of {}", device.label, T::DTYPE);
    match best_of(&device.gpu, &top.clone().when(smallest, |op| op.smallest()), x, k) {
        Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::TooLarge) => false,
        got => {
            same(&what, x, k, smallest, &got.unwrap_or_else(|e| panic!("{what}: {e}")));
            true
        }
    }
}

fn check_all<T: Element>(device: &Device, x: &[T], ks: &[usize], smallest: bool) {
    for variant in variants() {
        for &k in ks.iter().filter(|&&k| k >= 1 && k <= x.len()) {
            check(device, &TopK::new(x.len(), k).variant(variant), x, k, smallest);
        }
    }
}

#[test]
fn every_type_sorts_in_its_order() {
    for device in devices() {
        let n = if device.main { 9_000 } else { 1_500 };
        for smallest in [false, true] {
            let mut random = Random::new(3);
            // Software drivers compile sorts slowly, for each type and direction.
            let floats = if all() { device.main || smallest } else { !smallest };
            if floats {
                check_all(device, &random.any::<f32>(n), &[20, n / 3], smallest);
            }
            if device.main {
                if floats {
                    let extremes = [f32::extremes(), f32::extremes()].concat();
                    check_all(device, &extremes, &[1, 7, 40, 90], smallest);
                }
                if all() || smallest {
                    check_all(device, &random.elements::<i32>(n), &[20, n / 3], smallest);
                    check_all(device, &[i32::extremes(), i32::extremes()].concat(), &[1, 7, 20], smallest);
                }
                if all() {
                    check_all(device, &random.elements::<u32>(n), &[20, n / 3], smallest);
                    check_all(device, &[u32::extremes(), u32::extremes()].concat(), &[1, 7, 20], smallest);
                }
            }
        }
    }
}

/// f16, compared as f32, with the bits of NaN; u64, by sorting; and as many elements as the device counts.
#[test]
fn halves_and_words_of_64_bits_match_the_reference() {
    for device in devices() {
        let mut random = Random::new(6);
        let halves = random.any::<half::f16>(2501);
        let words: Vec<u64> =
            random.elements::<u32>(4000).chunks(2).map(|w| u64::from(w[0] % 9) << 32 | u64::from(w[1])).collect();
        for smallest in [false, true] {
            check_all(device, &halves, &[1, 21, 700], smallest);
            if device.gpu.profile().features.int64 {
                check_all(device, &words, &[1, 20, 1999], smallest);
            }
        }
        let gpu = &device.gpu;
        let (input, length) = (gpu.upload(&halves).unwrap(), gpu.upload(&[900u32]).unwrap());
        let (values, indices) = (gpu.alloc::<half::f16>(10).unwrap(), gpu.alloc::<u32>(10).unwrap());
        let mut rec = gpu.recorder();
        let plan = TopK::new(halves.len(), 10).counted().plan::<half::f16>(gpu).unwrap();
        plan.with_length(&length).record(&mut rec, &input, &values, &indices).unwrap();
        rec.submit().unwrap();
        same("counted", &halves[..900], 10, false, &(values.read().unwrap(), indices.read().unwrap()));
        if !gpu.profile().features.int64 {
            continue;
        }
        let (wide, values) = (gpu.upload(&words).unwrap(), gpu.alloc::<u64>(10).unwrap());
        let mut rec = gpu.recorder();
        let plan = TopK::new(words.len(), 10).counted().plan::<u64>(gpu).unwrap();
        plan.with_length(&length).record(&mut rec, &wide, &values, &indices).unwrap();
        rec.submit().unwrap();
        same("counted", &words[..900], 10, false, &(values.read().unwrap(), indices.read().unwrap()));
    }
}

/// k at the limit of one workgroup, and above.
#[test]
fn k_within_and_beyond_one_workgroup_matches_reference() {
    let n = 150_000;
    let x: Vec<f32> = Random::new(4).elements(n);
    for device in devices().iter().filter(|d| d.main) {
        for variant in variants().filter(|v| *v != "sort") {
            for &k in sample(&[65, 2343, 64, 255, 1023, 1024, 1025, 2344], 2) {
                check(device, &TopK::new(n, k).variant(variant), &x, k, k % 2 == 0);
            }
        }
    }
}

#[test]
fn every_chunk_length_matches_reference() {
    let n = 70_003;
    let x: Vec<u32> = Random::new(5).elements(n);
    for device in devices() {
        let chunks = sample(&[512, 64, 128, 4096], 1).iter().copied();
        for chunk in chunks.filter(|chunk| device.main || *chunk == 512) {
            for variant in ["filter", "subgroup"] {
                let top = TopK::new(n, 17).variant(variant).chunk(chunk);
                let ran = check(device, &top, &x, 17, chunk % 3 == 1);
                assert!(ran || variant == "subgroup", "{}: chunks of {chunk}", device.label);
            }
        }
    }
}

#[test]
fn equal_elements_keep_the_lower_index() {
    let n = 40_000;
    let mut random = Random::new(6);
    // All of the best in one chunk; equal elements in all chunks; few distinct values.
    let mut crowded: Vec<f32> = random.elements(n);
    crowded[1000..1900].iter_mut().for_each(|x| *x += 10.0);
    let mut spread = vec![1.0f32; n];
    spread.iter_mut().skip(77).step_by(613).for_each(|x| *x = 2.0);
    spread[39_000..39_050].fill(3.0);
    let few: Vec<f32> = (0..n).map(|_| (random.next() % 5) as f32).collect();
    let inputs: [Vec<f32>; 9] = [
        vec![7.0; n],
        vec![f32::NAN; n],
        (0..n).map(|i| if i == 39_999 { -0.0 } else { 0.0 }).collect(),
        (0..n).map(|i| if i % 2 == 0 { f32::NAN } else { f32::from_bits(0xffc0_0000 | i as u32) }).collect(),
        (0..n).map(|i| i as f32).collect(),
        (0..n).rev().map(|i| i as f32).collect(),
        crowded,
        spread,
        few,
    ];
    for device in devices().iter().filter(|d| d.main || d.label.contains("WebGPU")) {
        for (i, x) in inputs.iter().enumerate() {
            let ks: &[usize] = if device.main { sample(&[100, 1, 600, 1100], 1) } else { &[300] };
            for variant in variants().filter(|v| device.main || *v != "sort") {
                for &k in ks {
                    check(device, &TopK::new(n, k).variant(variant), x, k, i % 2 == 1);
                }
            }
        }
    }
}

#[test]
fn infinities_and_zeros_are_ordered_and_nan_is_last() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let x = [nan, 0.0, -0.0, inf, -nan, -inf, 0.0, -0.0, inf];
    for device in devices() {
        for variant in ["single", "radix", "sort"] {
            let best = |smallest| {
                let top = TopK::new(x.len(), x.len()).variant(variant).when(smallest, |op| op.smallest());
                best_of(&device.gpu, &top, &x, x.len()).unwrap().1
            };
            assert_eq!(best(false), [3, 8, 1, 6, 2, 7, 5, 0, 4], "{}: {variant}", device.label);
            assert_eq!(best(true), [5, 2, 7, 1, 6, 3, 8, 0, 4], "{}: {variant}", device.label);
        }
    }
}

#[test]
fn a_million_elements_match_reference() {
    let n = 1_000_003;
    let x: Vec<f32> = Random::new(7).elements(n);
    let Some(device) = devices().first() else { return };
    for variant in variants().filter(|v| *v != "sort") {
        for &k in sample(&[100, 1, 5_000], 1) {
            check(device, &TopK::new(n, k).variant(variant), &x, k, false);
        }
    }
    assert!(check(device, &TopK::new(n, 100), &x, 100, false), "auto");
}

/// A profile with bindings of 64 KiB, so that a few thousand elements need several bindings.
#[test]
fn elements_larger_than_one_binding_are_split() {
    let n = 50_001;
    let x: Vec<f32> = Random::new(8).any(n);
    for device in devices().iter().filter(|d| d.main || d.label.contains("WebGPU")) {
        let gpu = &device.gpu;
        let mut profile = gpu.profile().clone();
        profile.limits.max_storage_binding = 64 << 10;
        for variant in variants() {
            for k in [5, 200, 3_000, n] {
                let program = match Op::<f32>::lower(&TopK::new(n, k).variant(variant), &profile) {
                    Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::TooLarge) => continue,
                    other => other.unwrap(),
                };
                assert!(program.dispatches.iter().flat_map(|d| &d.bindings).all(|b| b.size <= 64 << 10));
                let got = run(gpu, program, &x, k);
                same(&format!("{}: {variant}, {k} in pieces", device.label), &x, k, false, &got);
            }
        }
    }
}

fn run<T: Element>(gpu: &Gpu, program: Program, x: &[T], k: usize) -> (Vec<T>, Vec<u32>) {
    let input = gpu.upload(x).unwrap();
    let (values, indices) = (gpu.alloc::<T>(k).unwrap(), gpu.alloc::<u32>(k).unwrap());
    let raw = [Slice::from(&input).untyped(), Slice::from(&values).untyped(), Slice::from(&indices).untyped()];
    let mut rec = gpu.recorder();
    gpu.prepare(program).unwrap().record(&mut rec, &raw).unwrap();
    rec.submit().unwrap();
    (values.read().unwrap(), indices.read().unwrap())
}

/// Kernels for cards run here too, each variant once: software drivers compile them slowly.
#[test]
fn kernels_for_cards_match_reference_on_any_device() {
    let n = 60_001;
    let x: Vec<f32> = Random::new(11).any(n);
    for device in devices().iter().filter(|d| d.main || d.label.contains("WebGPU")) {
        let card = as_card(&device.gpu);
        for (variant, k) in [("single", 900), ("filter", 200), ("subgroup", 30), ("subgroup", 1500)] {
            if !device.main && variant != "filter" {
                continue;
            }
            let program = match Op::<f32>::lower(&TopK::new(n, k).variant(variant), &card) {
                Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                other => other.unwrap(),
            };
            let got = run(&device.gpu, program, &x, k);
            same(&format!("{}: {variant}, {k}", device.label), &x, k, false, &got);
        }
    }
}

#[test]
fn slices_are_read_and_neighbours_kept() {
    for device in devices() {
        let x: Vec<i32> = Random::new(9).elements(9000);
        let input = device.gpu.upload(&x).unwrap();
        for variant in variants() {
            let (values, indices) = (device.gpu.upload(&[7i32; 300]), device.gpu.upload(&[8u32; 300]));
            let (values, indices) = (values.unwrap(), indices.unwrap());
            let plan = match TopK::new(7001, 40).variant(variant).plan::<i32>(&device.gpu) {
                Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                other => other.unwrap(),
            };
            let mut rec = device.gpu.recorder();
            let (v, i) = (values.slice(64..104).unwrap(), indices.slice(128..168).unwrap());
            plan.record(&mut rec, input.slice(64..7065).unwrap(), v, i).unwrap();
            rec.submit().unwrap();
            let (mut want, mut places) = (vec![7; 300], vec![8; 300]);
            for (at, i) in top_k(&x[64..7065], 40, false).into_iter().enumerate() {
                want[64 + at] = x[64 + i];
                places[128 + at] = i as u32;
            }
            assert_eq!(values.read().unwrap(), want, "{}: {variant}", device.label);
            assert_eq!(indices.read().unwrap(), places, "{}: {variant}", device.label);
        }
    }
}

#[test]
fn a_recording_run_twice_gives_the_same_result() {
    let x: Vec<u32> = Random::new(10).elements::<u32>(100_000).iter().map(|x| x % 1000).collect();
    let Some(device) = devices().first() else { return };
    let gpu = &device.gpu;
    for (variant, k) in [("filter", 50), ("filter", 1500), ("radix", 50), ("radix", 30_000)] {
        let plan = TopK::new(x.len(), k).variant(variant).plan::<u32>(gpu).unwrap();
        let input = gpu.upload(&x).unwrap();
        let (values, indices) = (gpu.alloc::<u32>(k).unwrap(), gpu.alloc::<u32>(k).unwrap());
        for _ in 0..2 {
            let mut rec = gpu.recorder();
            plan.record(&mut rec, &input, &values, &indices).unwrap();
            plan.record(&mut rec, &input, &values, &indices).unwrap();
            rec.submit().unwrap();
            let got = (values.read().unwrap(), indices.read().unwrap());
            same(&format!("{variant} {k}"), &x, k, false, &got);
        }
    }
}

/// Rows of three bytes move with the best, as many as the device counts.
#[test]
fn payload_moves_with_the_best() {
    let (n, k) = (5000, 40);
    let (x, rows) = (Random::new(3).any::<u32>(n), Random::new(4).any::<u8>(3 * n));
    for device in devices() {
        let (gpu, op) = (&device.gpu, TopK::new(n, k).counted().with_payload(DType::U8, 3));
        let plan = op.plan::<u32>(gpu).unwrap();
        for there in [n, 4001, 9, 0] {
            let (input, payload) = (gpu.upload(&x).unwrap(), gpu.upload(&rows).unwrap());
            let (values, indices) = (gpu.alloc::<u32>(k).unwrap(), gpu.alloc::<u32>(k).unwrap());
            let (moved, length) = (gpu.upload(&vec![9u8; 3 * k]).unwrap(), gpu.upload(&[there as u32]).unwrap());
            let mut rec = gpu.recorder();
            let call = plan.with_length(&length).with_payload(&payload, &moved);
            call.record(&mut rec, &input, &values, &indices).unwrap();
            rec.submit().unwrap();
            let places = top_k(&x[..there], k, false);
            let mut want: Vec<u8> = places.iter().flat_map(|&i| &rows[3 * i..][..3]).copied().collect();
            want.resize(3 * k, 9);
            assert_eq!(moved.read().unwrap(), want, "{}: {there} of {n}", device.label);
        }
    }
}

#[test]
fn rejects_invalid_arguments() {
    let h100 = DeviceProfile::h100();
    let webgpu = DeviceProfile::webgpu_defaults();
    let error = |r: Result<Program>| {
        let e = r.unwrap_err();
        (e.kind(), e.to_string())
    };
    for (n, k) in [(0, 0), (0, 1), (5, 0), (5, 6)] {
        let (kind, text) = error(Op::<f32>::lower(&TopK::new(n, k), &h100));
        assert_eq!(kind, ErrorKind::InvalidArgument);
        assert!(text.contains(&format!("k is {k} and n is {n}")), "{text}");
    }
    let kind = |r| error(r).0;
    assert_eq!(kind(Op::<u8>::lower(&TopK::new(9, 1), &h100)), ErrorKind::Unsupported);
    assert_eq!(kind(Op::<u64>::lower(&TopK::new(9, 1).variant("filter"), &h100)), ErrorKind::Unsupported);
    assert_eq!(kind(Op::<f32>::lower(&TopK::new(9, 1).variant("heap"), &h100)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Op::<f32>::lower(&TopK::new(9, 1).chunk(96), &h100)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Op::<f32>::lower(&TopK::new(99, 1).variant("subgroup"), &webgpu)), ErrorKind::Unsupported);
    let (kind, text) = error(Op::<f32>::lower(&TopK::new(6400, 101).variant("filter"), &h100));
    assert_eq!(kind, ErrorKind::Unsupported);
    assert!(text.contains("use `radix`"), "{text}");
    let (kind, text) = error(Op::<f32>::lower(&TopK::new(6400, 1025).variant("single"), &h100));
    assert_eq!(kind, ErrorKind::Unsupported);
    assert!(text.contains("k up to 1024"), "{text}");
    let (kind, text) = error(Op::<f32>::lower(&TopK::new(1 << 32, 5), &h100));
    assert_eq!(kind, ErrorKind::TooLarge, "{text}");
    let (kind, text) = error(Op::<f32>::lower(&TopK::new(1 << 27, 5), &webgpu));
    assert_eq!(kind, ErrorKind::TooLarge);
    assert!(text.contains("the largest buffer"), "{text}");
}

#[test]
fn the_policy_depends_on_the_sizes() {
    let chosen = |n, k, profile: &DeviceProfile| {
        let program = Op::<f32>::lower(&TopK::new(n, k), profile).unwrap();
        (program.variant(), program.dispatches.len())
    };
    let h100 = DeviceProfile::h100();
    assert_eq!(chosen(1000, 10, &h100), ("single", 1));
    assert_eq!(chosen(1 << 16, 100, &h100), ("subgroup", 2));
    assert_eq!(chosen(1 << 16, 1000, &h100), ("single", 1));
    assert_eq!(chosen(1 << 26, 100, &h100), ("subgroup", 2));
    assert_eq!(chosen(1 << 28, 1000, &h100), ("subgroup", 29));
    assert_eq!(chosen(1 << 26, 10_000, &h100).0, "subgroup");
    assert_eq!(chosen(1 << 26, 1 << 20, &h100).0, "radix");
    assert_eq!(chosen(1 << 20, 1 << 20, &h100).0, "sort");
    assert_eq!(chosen(1 << 16, 100, &DeviceProfile::webgpu_defaults()), ("filter", 2));
    // Two bindings of 128 MiB.
    assert_eq!(chosen(1 << 26, 100, &DeviceProfile::webgpu_defaults()).0, "filter");
}
