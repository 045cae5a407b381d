//! Every variant of `Histogram` against the reference.

use crate::support::coverage::{all, turn};
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::prelude::*;
use tilework::program::{Ask, DeviceClass, DeviceProfile, Op, Settings};
use tilework::reference::{self, Number};
use tilework::{Element, ErrorKind, HostArray, HostData, Result, operations};

fn run<T: Element>(gpu: &Gpu, desc: &Histogram, input: &[T]) -> Result<Vec<u32>> {
    let x = gpu.upload(input)?;
    let counts = gpu.alloc::<u32>(desc.bins())?;
    let plan = desc.plan::<T>(gpu)?;
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &x, &counts)?;
    rec.submit()?;
    counts.read()
}

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Histogram::variants().iter().map(|v| v.name))
}

/// All variants on the first device, one of each kernel on the others.
fn some_names(device: &Device) -> impl Iterator<Item = &'static str> {
    let main = device.main;
    names().filter(move |v| main || ["global", "aggregated", "multipass", "cached", "partitioned"].contains(v))
}

/// Runs these variants and compares; skips those whose bins exceed workgroup memory.
fn check<'a, T: Number>(device: &Device, desc: &Histogram, input: &[T], variants: impl Iterator<Item = &'a str>) {
    let want = reference::histogram(desc, input).unwrap();
    for variant in variants {
        let what = format!("{}: {} {} by {variant}, {desc:?}", device.label, input.len(), T::DTYPE);
        match run(&device.gpu, &desc.clone().variant(variant), input) {
            Err(e) if e.kind() == ErrorKind::Unsupported && desc.bins() > 4096 => {}
            Err(e) => panic!("{what}: {e}"),
            Ok(got) => {
                let wrong = got.iter().zip(&want).position(|(g, w)| g != w);
                assert!(
                    wrong.is_none(),
                    "{what}: bin {wrong:?}: {:?}, wanted {:?}",
                    wrong.map(|i| got[i]),
                    wrong.map(|i| want[i])
                );
            }
        }
    }
}

#[test]
fn every_length_matches_reference() {
    let lengths = [0, 1, 3, 4, 5, 15, 16, 17, 255, 256, 257, 1023, 4099, 70_001];
    for device in devices() {
        for (i, &n) in lengths.iter().enumerate().filter(|(i, _)| device.main || i % 13 == 12) {
            let mut random = Random::new(i as u64);
            // Variants take turns among the kinds of elements.
            let names = |kind: usize| {
                some_names(device).enumerate().filter(move |(v, _)| turn(v + kind, 2)).map(|(_, name)| name)
            };
            check(device, &Histogram::new(n, 256), &random.elements::<u8>(n), names(0));
            let floats: Vec<f32> = random.elements(n);
            check(device, &Histogram::new(n, 1000).range(-0.9, 0.9), &floats, names(1));
            let small: Vec<u32> = random.elements::<u32>(n).iter().map(|x| x % 1100).collect();
            check(device, &Histogram::new(n, 1024), &small, names(0));
            // A sentinel cell above the last bin is not counted.
            let signed: Vec<i32> = small.iter().map(|&x| x as i32 - 30).collect();
            check(device, &Histogram::new(n, 900), &signed, names(1));
            for bins in [1, 5000] {
                check(device, &Histogram::new(n, bins), &vec![bins as u32; n], some_names(device));
            }
        }
    }
}

/// Counts of 32 and 64 bits, alone and added to others, which carry.
#[test]
fn counts_of_64_bits_carry_and_accumulate() {
    let x: Vec<u8> = Random::new(8).any(3001);
    for device in devices() {
        for variant in some_names(device) {
            let plain = Histogram::new(x.len(), 200).variant(variant);
            let want = reference::histogram(&plain, &x).unwrap();
            let gpu = &device.gpu;
            for (wide, accumulate) in [(true, false), (false, true), (true, true)] {
                let op = plain.clone().when(wide, Histogram::wide).when(accumulate, Histogram::accumulate);
                let words = if wide { 2 } else { 1 };
                let old: Vec<u32> = (0..200 * words).map(|i| u32::MAX - 5 * i as u32).collect();
                let counts = gpu.upload(&old).unwrap();
                let mut rec = gpu.recorder();
                let input = gpu.upload(&x).unwrap();
                op.plan::<u8>(gpu).unwrap().record(&mut rec, &input, &counts).unwrap();
                rec.submit().unwrap();
                let total = |bin: usize| {
                    let old = old[bin * words..][..words].iter().rev().fold(0, |all, w| all << 32 | u64::from(*w));
                    let total = (if accumulate { old } else { 0 }).wrapping_add(want[bin].into());
                    [total as u32, (total >> 32) as u32].into_iter().take(words)
                };
                let what = format!("{}: {variant}, {wide}, {accumulate}", device.label);
                assert!(counts.read().unwrap().into_iter().eq((0..200).flat_map(total)), "{what}");
            }
        }
        // Nothing to count.
        let none = device.gpu.upload(&[7u32, 9, 3, 1]).unwrap();
        let mut rec = device.gpu.recorder();
        let plan = Histogram::new(0, 2).wide().accumulate().plan::<u8>(&device.gpu).unwrap();
        plan.record(&mut rec, &device.gpu.alloc::<u8>(0).unwrap(), &none).unwrap();
        rec.submit().unwrap();
        assert_eq!(none.read().unwrap(), [7, 9, 3, 1], "{}", device.label);
    }
}

#[test]
fn every_type_matches_reference() {
    /// Values between `lo` and `hi`, and some outside.
    fn values<T: Sample>(lo: f64, hi: f64) -> Vec<T> {
        let mut random = Random::new(17);
        let spread = 0.55 * (hi - lo);
        (0..5003).map(|_| T::from_f64((lo + hi) / 2.0 + spread * random.unit())).collect()
    }
    fn all<T: Sample>(device: &Device, number: usize, lo: f64, hi: f64) {
        let desc = |bins| Histogram::new(5003, bins).range(lo, hi);
        let own = ["global", "coarsened", "cached", "partitioned"].into_iter().enumerate();
        let own = own.filter(|(v, _)| turn(v + number, 2)).map(|(_, name)| name);
        check(device, &desc(37), &values::<T>(lo, hi), own.clone());
        let edges: Vec<f64> = (0..12).map(|i| lo + (hi - lo) * f64::from(i * i) / 121.0).collect();
        check(device, &Histogram::with_edges(5003, edges), &values::<T>(lo, hi), own.clone());
        let any: Vec<T> = Random::new(3).any(5003);
        check(device, &desc(64), &any, own);
    }
    for device in devices().iter().filter(|d| d.main || !d.label.contains("checked")) {
        all::<u8>(device, 0, 10.0, 200.0);
        all::<i8>(device, 1, -100.0, 90.0);
        all::<u32>(device, 0, 5e8, 4e9);
        all::<i32>(device, 1, -2e9, 1.5e9);
        all::<f32>(device, 0, -3.25, 11.7);
        all::<f16>(device, 1, -0.3, 0.7);
    }
}

#[test]
fn values_at_edges_fall_into_the_bins_of_numpy() {
    fn around(edges: impl Iterator<Item = f32>) -> Vec<f32> {
        edges.flat_map(|e| [e.next_down(), e, e.next_up()]).chain(f32::extremes()).collect()
    }
    for device in devices() {
        for (lo, hi, bins) in [
            (0.0, 1.0, 10),
            (0.0, 1.0, 1024),
            (-1.0, 1.0, 4000),
            (0.1, 0.7, 6),
            (1e6, 1e6 + 1.0, 100),
            (-3e38, 3e38, 64),
            (0.0, 1e-40, 10),
            (-1e-30, 1e-30, 7),
            (0.0, 1.0, 1),
            (-1.0, 0.0, 4),
            (1.0, 1000.0, 1 << 20),
        ] {
            let step = (hi - lo) / bins as f64;
            let edges = (0..=bins).step_by(1 + bins / 5000).map(|i| (i as f64 * step + lo) as f32);
            let x = around(edges);
            let desc = Histogram::new(x.len(), bins).range(lo, hi);
            check(device, &desc, &x, ["global", "multipass", "partitioned"].into_iter());
        }
        let edges = vec![f64::NEG_INFINITY, -1e39, -2.5, 0.0, f64::from(f32::MIN_POSITIVE), 0.1, 3.0, 1e39];
        let x = around(edges.iter().map(|e| *e as f32));
        check(device, &Histogram::with_edges(x.len(), edges), &x, some_names(device));
    }
}

#[test]
fn integers_fall_into_bins_of_exact_fractions() {
    let top = f64::from(u32::MAX);
    for device in devices() {
        for (lo, hi, bins) in [
            (0.0, 1024.0, 1024),
            (0.0, 4294967296.0, 1024),
            (0.0, top, 1024),
            (0.0, top, 1 << 20),
            (0.0, 4294967296.0, 1),
            (0.0, 4294967296.0, 3),
            (7.0, 1007.0, 10),
            (0.0, 2.0, 98),
            (1.0, 8.0, 49),
            (0.5, 99.5, 33),
            (-10.0, 290.0, 30),
            (4e9, 5e9, 100),
            (-4294967296.0, 0.0, 16),
            (5e9, 6e9, 4),
        ] {
            let width: f64 = hi - lo;
            let mut x: Vec<u32> = Random::new(5).any(1000);
            for i in (0..=bins).step_by(1 + bins / 1000) {
                let edge = (lo + width * i as f64 / bins as f64).round();
                x.extend([-1.0, 0.0, 1.0].map(|d| (edge + d).clamp(0.0, top) as u32));
            }
            let desc = Histogram::new(x.len(), bins).range(lo, hi);
            check(device, &desc, &x, ["auto", "global"].into_iter());
            let signed: Vec<i32> = x.iter().map(|x| x.wrapping_sub(1 << 31) as i32).collect();
            let down = 2f64.powi(31);
            let desc = Histogram::new(x.len(), bins).range(lo - down, hi - down);
            check(device, &desc, &signed, ["cached"].into_iter());
        }
        let x: Vec<u32> = Random::new(6).any(2000);
        let edges = [-5.0, 0.25, 0.75, 1e9, 1.5e9 + 0.5, 4294967295.0, 4294967296.0, 1e12];
        check(device, &Histogram::with_edges(x.len(), edges), &x, some_names(device));
    }
}

/// Log-uniform: the frequency of k is about proportional to 1 / k.
fn zipf(n: usize, most: f64) -> Vec<u32> {
    let mut random = Random::new(29);
    (0..n).map(|_| ((0.5 * (random.unit() + 1.0) * most.ln()).exp() - 1.0) as u32).collect()
}

#[test]
fn crowded_bins_match_reference() {
    let n = 40_000;
    for device in devices() {
        for bins in [1, 256, 4096, 1 << 15].into_iter().filter(|b| device.main || *b == 4096) {
            check(device, &Histogram::new(n, bins), &zipf(n, bins as f64), some_names(device));
            check(device, &Histogram::new(n, bins), &vec![bins as u32 - 1; n], some_names(device));
        }
        let bytes: Vec<u8> = zipf(n, 256.0).iter().map(|x| *x as u8).collect();
        check(device, &Histogram::new(n, 256), &bytes, some_names(device));
        check(device, &Histogram::new(n, 256), &vec![255u8; n], some_names(device));
        check(device, &Histogram::new(n, 1 << 20), &zipf(n, 1e6), ["auto", "cached", "partitioned"].into_iter());
    }
}

/// The kernels for cards, on the available devices: more copies, and four loads in flight.
#[test]
fn kernels_for_cards_match_reference() {
    let profile = DeviceProfile::webgpu_defaults();
    // 528 workgroups of 256 threads take four vec4 each.
    let least = 528 * 256 * 4 * 16;
    for device in devices().iter().filter(|d| d.main) {
        let gpu = &device.gpu;
        // Mesa unrolls loops of GLSL, and LLVM then takes over half an hour for their barriers.
        if gpu.profile().backend == "gl" && gpu.profile().class == DeviceClass::Cpu {
            continue;
        }
        let bytes: Vec<u8> = Random::new(1).elements(least + 100_005);
        let words: Vec<u32> = zipf(least / 4 + 5005, 5000.0);
        let floats: Vec<f32> = Random::new(2).elements(least / 4 + 5005);
        let n = words.len();
        card(gpu, &profile, &Histogram::new(bytes.len(), 256).variant("coarsened"), &bytes);
        card(gpu, &profile, &Histogram::new(n, 1000).variant("aggregated"), &words);
        card(gpu, &profile, &Histogram::new(n, 300).range(-1.0, 1.0).variant("coarsened"), &floats);
        card(gpu, &profile, &Histogram::new(n, 5000).variant("multipass"), &words);
        let few = &words[..200_000];
        card(gpu, &profile, &Histogram::new(few.len(), 350_000).variant("multipass"), few);
        // Some workgroups share a bucket, and some buckets share a part of the input.
        card(gpu, &profile, &Histogram::new(few.len(), 1 << 20).variant("partitioned"), few);
        if !all() {
            continue;
        }
        let halves: Vec<f16> = few.iter().map(|x| f16::from_f32(*x as f32)).collect();
        let desc = Histogram::new(few.len(), 350_000).range(0.0, 350_000.0);
        card(gpu, &profile, &desc.clone().variant("multipass"), &halves);
        card(gpu, &profile, &desc.variant("partitioned"), &halves);
        let wide = Histogram::new(n, 900_000).range(-1.0, 1.0);
        card(gpu, &profile, &wide.variant("partitioned"), &floats);
        let (mut large, limits) = (DeviceProfile::h100(), &gpu.profile().limits);
        large.limits.max_workgroup_bytes = large.limits.max_workgroup_bytes.min(limits.max_workgroup_bytes);
        if limits.max_invocations >= 512 && limits.max_workgroup_bytes >= 32 << 10 {
            let bytes = [bytes.as_slice(), &bytes].concat();
            card(gpu, &large, &Histogram::new(bytes.len(), 256), &bytes);
            card(gpu, &large, &Histogram::new(n, 1000), &words);
            card(gpu, &large, &Histogram::new(n, 20_000).range(-1.0, 1.0), &floats);
        }
    }
}

/// On a CPU a workgroup gets 75,000 elements, most of which fall into one 16-bit counter: the low and the high half
/// of its word.
#[test]
fn counters_of_16_bits_do_not_overflow() {
    let others = zipf(4_800_000, 2000.0);
    for device in devices().iter().filter(|d| d.main) {
        for bin in [8, 1032] {
            let one = |(i, x): (usize, &u32)| if i % 16 == 0 { *x } else { bin };
            let words: Vec<u32> = others.iter().enumerate().map(one).collect();
            let many = ["multipass", "partitioned"];
            check(device, &Histogram::new(words.len(), 2000), &words, many.into_iter());
            let halves: Vec<f16> = words.iter().map(|x| f16::from_f32(*x as f32)).collect();
            check(device, &Histogram::new(words.len(), 2000).range(0.0, 2000.0), &halves, many.into_iter());
        }
    }
}

fn card<T: Number>(gpu: &Gpu, profile: &DeviceProfile, desc: &Histogram, input: &[T]) {
    let program = Op::<T>::lower(desc, profile).unwrap();
    let what = format!("{} by {}", T::DTYPE, program.variant());
    let executable = gpu.prepare(program).unwrap();
    let x = gpu.upload(input).unwrap();
    let counts = gpu.alloc::<u32>(desc.bins()).unwrap();
    let mut rec = gpu.recorder();
    executable.record(&mut rec, &[Slice::from(&x).untyped(), Slice::from(&counts).untyped()]).unwrap();
    rec.submit().unwrap();
    assert!(counts.read().unwrap() == reference::histogram(desc, input).unwrap(), "{what}");
}

#[test]
fn counts_above_2_to_the_24_are_exact() {
    let n = (1 << 24) + 12_345;
    let mut input = vec![3u8; n];
    input[77] = 4;
    let Some(device) = devices().first() else { return };
    for variant in ["auto", "global", "aggregated", "partitioned"] {
        let counts = run(&device.gpu, &Histogram::new(n, 256).variant(variant), &input).unwrap();
        assert_eq!((counts[3], counts[4]), (n as u32 - 1, 1), "{variant}");
    }
}

#[test]
fn inputs_larger_than_one_binding_are_split() {
    // WebGPU's default limits: 128 MiB per binding, 256 MiB per buffer.
    let Some(device) = devices().iter().find(|d| d.label.contains("WebGPU")) else {
        return;
    };
    let n = 140_000_003;
    let mut input = vec![1u8; n];
    input[139_999_999] = 9;
    input[n - 1] = 8;
    let counts = run(&device.gpu, &Histogram::new(n, 10), &input).unwrap();
    assert_eq!(counts, [0, n as u32 - 2, 0, 0, 0, 0, 0, 0, 1, 1]);
    device.gpu.trim();
}

#[test]
fn slices_are_counted_and_neighbours_kept() {
    for device in devices() {
        let gpu = &device.gpu;
        let x = gpu.upload(&(0..1000).map(|i| i as u8).collect::<Vec<_>>()).unwrap();
        let counts = gpu.upload(&[7u32; 200]).unwrap();
        let part = x.slice(256..309).unwrap();
        for variant in some_names(device) {
            let plan = Histogram::new(53, 50).variant(variant).plan::<u8>(gpu).unwrap();
            let mut rec = gpu.recorder();
            // Twice: counts start from zero each time.
            plan.record(&mut rec, part, counts.slice(64..114).unwrap()).unwrap();
            plan.record(&mut rec, part, counts.slice(64..114).unwrap()).unwrap();
            rec.submit().unwrap();
            let mut want = vec![7u32; 200];
            want[64..114].fill(1);
            assert_eq!(counts.read().unwrap(), want, "{}: {variant}", device.label);
        }
    }
}

#[test]
fn one_line_calls_match_known_counts() {
    let Some(gpu) = crate::support::gpu() else { return };
    let x = gpu.upload(&[0.5f32, 1.5, 1.6, f32::NAN, -1.0, 2.0]).unwrap();
    assert_eq!(gpu.histogram(&x, 2, 0.0, 2.0).unwrap().read().unwrap(), [1, 3]);
    assert_eq!(gpu.histogram_edges(&x, [-1.0, 0.0, 1.6]).unwrap().read().unwrap(), [1, 2]);
    let none = gpu.upload::<f32>(&[]).unwrap();
    assert_eq!(gpu.histogram(&none, 3, 0.0, 2.0).unwrap().read().unwrap(), [0, 0, 0]);
    for refused in [
        gpu.histogram(&x, 0, 0.0, 1.0),
        gpu.histogram(&x, 3, 1.0, 1.0),
        gpu.histogram_edges(&x, [0.0, f64::NAN]),
        gpu.histogram_edges(&x, [0.0, 2.0, 1.0]),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    let counters = Histogram::new(6, 3).range(0.0, 1.0).packing(1024, 1, 1024, 8).plan::<f32>(gpu);
    assert_eq!(counters.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let too_many = gpu.histogram(&x, (1 << 20) + 1, 0.0, 1.0).unwrap_err();
    assert_eq!(too_many.kind(), ErrorKind::TooLarge);
}

/// A function of the elements in the same pass, built in and the caller's, in every variant.
#[test]
fn mapped_elements_match_the_reference() {
    let mut random = Random::new(11);
    let x: Vec<f32> = random.elements(5001);
    let words: Vec<u32> = random.elements(5001);
    let fraction = MapFn::custom("fn map(x: T) -> T { return x - floor(x); }");
    for device in devices() {
        let abs: Vec<f32> = x.iter().map(|x| x.abs()).collect();
        let parts: Vec<f32> = x.iter().map(|x| x - x.floor()).collect();
        let low: Vec<u32> = words.iter().map(|x| x % 100).collect();
        for (v, variant) in some_names(device).enumerate() {
            let run_mapped = |desc: &Histogram, function: &MapFn, want: &[f32]| {
                let got = run(&device.gpu, &desc.clone().mapped(function.clone()).variant(variant), &x);
                assert_eq!(got.unwrap(), reference::histogram(desc, want).unwrap(), "{} {variant}", device.label);
            };
            let range = Histogram::new(5001, 64).range(0.0, 1.0);
            // Each compiles kernels of its own.
            if turn(v, 2) {
                run_mapped(&range, &MapFn::Abs, &abs);
                run_mapped(&range, &fraction, &parts);
            }
            if turn(v + 1, 2) {
                run_mapped(&Histogram::with_edges(5001, [0.0, 0.25, 0.375, 1.0]), &MapFn::Abs, &abs);
            }
            let by_value = Histogram::new(5001, 70);
            let modulo = MapFn::custom("fn map(x: T) -> T { return x % 100u; }");
            let got = run(&device.gpu, &by_value.clone().mapped(modulo).variant(variant), &words).unwrap();
            assert_eq!(got, reference::histogram(&by_value, &low).unwrap(), "{} {variant}", device.label);
        }
        let kind = |desc: Histogram| Op::<u32>::lower(&desc, &DeviceProfile::mesa()).unwrap_err().kind();
        assert_eq!(kind(Histogram::new(9, 4).mapped(MapFn::Exp)), ErrorKind::Unsupported);
    }
}

#[test]
fn bins_beside_edges_must_agree_by_name() {
    let Some(gpu) = gpu() else { return };
    let run = |bins: &str| {
        let op = operations().find(|op| op.name == "histogram").unwrap();
        let mut settings = Settings::new(op);
        settings.text("bins", bins)?;
        settings.with_array("edges", HostArray::new(&[3], vec![-1.0f32, 0.0, 2.0])?)?;
        let x = HostArray::new(&[4], vec![-0.5f32, 0.0, 2.0, 9.0])?;
        let ready = gpu.ready(op.build(Ask::new(&settings).input(x))?)?;
        let mut rec = gpu.recorder();
        ready.record(&mut rec)?;
        rec.submit()?;
        ready.results()
    };
    assert_eq!(run("2").unwrap()[0].data(), &HostData::U32(vec![1, 2]));
    assert_eq!(run("3").unwrap_err().kind(), ErrorKind::InvalidArgument);
}
