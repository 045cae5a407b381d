//! Every variant of `Select` against the reference.

use crate::support::coverage::sample;
use crate::support::{Device, Random, devices, gpu};
use half::f16;
use tilework::prelude::*;
use tilework::program::{Ask, DeviceProfile, Grid, Op, Program, Settings};
use tilework::reference::{self, select};
use tilework::{Element, Error, ErrorKind, HostArray, Result};

/// Every device with `auto` and all other variants.
pub(crate) fn cases() -> impl Iterator<Item = (&'static Device, &'static str)> {
    let names = || std::iter::once("auto").chain(Select::variants().iter().map(|v| v.name));
    devices().iter().flat_map(move |d| names().map(move |v| (d, v)))
}

/// Flags of which about one in `every` is nonzero.
pub(crate) fn flags(random: &mut Random, n: usize, every: u64) -> Vec<u32> {
    (0..n).map(|_| if random.next().is_multiple_of(every) { 1 << (random.next() % 32) } else { 0 }).collect()
}

/// The first `count` elements, and the rest, which must be unchanged.
pub(crate) fn read_counted<T: Element + PartialEq>(
    output: &Buffer<T>, count: &Buffer<u32>, before: T,
) -> Result<Vec<T>> {
    let (mut all, count) = (output.read()?, count.read()?[0] as usize);
    assert!(all[count..].iter().all(|x| *x == before), "elements past the count were written");
    all.truncate(count);
    Ok(all)
}

#[test]
fn lookback_is_correct_when_workgroups_never_post() {
    for device in devices() {
        let gpu = &device.gpu;
        for one_in in [1, 2, 3, 64] {
            let n = 70_001;
            let mut random = Random::new(one_in.into());
            let (x, f) = (random.any::<u32>(n), flags(&mut random, n, 3));
            let plan = Select::new(n).variant("lookback").leave_out_posts(one_in).plan::<u32>(gpu).unwrap();
            let (input, flags) = (gpu.upload(&x).unwrap(), gpu.upload(&f).unwrap());
            let (output, count) = (gpu.upload(&vec![77u32; n]).unwrap(), gpu.upload(&[99u32]).unwrap());
            let mut rec = gpu.recorder();
            plan.record(&mut rec, &input, &flags, &output, &count).unwrap();
            rec.submit().unwrap();
            let got = read_counted(&output, &count, 77).unwrap();
            assert!(got == select(&x, &f), "{}: one in {one_in} posts nothing", device.label);
        }
    }
}

#[test]
fn counted_selection_reads_its_length_on_the_device() {
    for (device, variant) in cases() {
        let gpu = &device.gpu;
        let lengths: &[usize] = if device.main { &[1, 33, 4097, 70_001] } else { &[4097] };
        for (i, &n) in lengths.iter().enumerate() {
            let mut random = Random::new(i as u64);
            let (x, f) = (random.any::<u32>(n), flags(&mut random, n, 2));
            let halves: Vec<f16> = x.iter().map(|x| f16::from_f32((x % 2000) as f32)).collect();
            let select_counted = Select::new(n).variant(variant).counted();
            let plan = match select_counted.plan::<u32>(gpu) {
                Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                other => other.unwrap(),
            };
            let of_halves = select_counted.plan::<f16>(gpu).ok();
            let (input, flags) = (gpu.upload(&x).unwrap(), gpu.upload(&f).unwrap());
            let halves_in = of_halves.as_ref().map(|_| gpu.upload(&halves).unwrap());
            // A count above n is clamped to n.
            for &length in sample(&[n / 2, u32::MAX as usize, 0, 1, n - 1, n, n + 1], 2) {
                let what = format!("{}: {length} of {n} by {variant}", device.label);
                let there = length.min(n);
                let (output, count) = (gpu.upload(&vec![77u32; n]).unwrap(), gpu.upload(&[99u32]).unwrap());
                let length = gpu.upload(&[length as u32]).unwrap();
                let mut rec = gpu.recorder();
                plan.with_length(&length).record(&mut rec, &input, &flags, &output, &count).unwrap();
                rec.submit().unwrap();
                let got = read_counted(&output, &count, 77).unwrap();
                assert!(got == select(&x[..there], &f[..there]), "{what}");
                let (Some(plan), Some(input)) = (&of_halves, &halves_in) else { continue };
                let output = gpu.upload(&vec![f16::NEG_ONE; n]).unwrap();
                let mut rec = gpu.recorder();
                plan.with_length(&length).record(&mut rec, input, &flags, &output, &count).unwrap();
                rec.submit().unwrap();
                let got = read_counted(&output, &count, f16::NEG_ONE).unwrap();
                assert!(got == select(&halves[..there], &f[..there]), "{what}, halves");
            }
        }
    }
    let Some(gpu) = gpu() else { return };
    let (x, two) = (gpu.upload(&[1u32; 10]).unwrap(), gpu.upload(&[1u32; 2]).unwrap());
    let (output, count) = (gpu.alloc::<u32>(10).unwrap(), gpu.alloc::<u32>(1).unwrap());
    let plan = Select::new(10).counted().plan::<u32>(gpu).unwrap();
    let e = plan.with_length(&two).record(&mut gpu.recorder(), &x, &x, &output, &count).unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("length has 2"), "{e}");
    // No elements, whatever the count on the device.
    let none = gpu.alloc::<u32>(0).unwrap();
    let plan = Select::new(0).counted().plan::<u32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    plan.with_length(two.slice(..1).unwrap()).record(&mut rec, &none, &none, &none, &count).unwrap();
    rec.submit().unwrap();
    assert_eq!(count.read().unwrap(), [0]);
}

/// Where the kept elements stood, also of as many as the device counts.
#[test]
fn positions_match_the_reference() {
    let above = Predicate::custom("fn keep(x: T) -> bool { return x > T(0); }");
    for (device, variant) in cases() {
        let (gpu, n) = (&device.gpu, 9001);
        let x: Vec<f16> = Random::new(6).elements(n);
        let kept: Vec<u32> = x.iter().map(|x| u32::from(x.to_f32() > 0.0)).collect();
        let op = Select::positions(n, above.clone()).variant(variant);
        let plan = match op.plan::<f16>(gpu) {
            Err(e) if e.kind() == ErrorKind::Unsupported => continue,
            plan => plan.unwrap(),
        };
        let counted = op.counted().plan::<f16>(gpu).unwrap();
        let (input, length) = (gpu.upload(&x).unwrap(), gpu.upload(&[5000u32]).unwrap());
        let numbers: Vec<u32> = (0..n as u32).collect();
        for there in [n, 5000] {
            let (output, count) = (gpu.upload(&vec![u32::MAX; n]).unwrap(), gpu.upload(&[99u32]).unwrap());
            let mut rec = gpu.recorder();
            if there == n {
                plan.record_positions(&mut rec, &input, &output, &count).unwrap();
            } else {
                let call = counted.with_length(&length);
                call.record_positions(&mut rec, &input, &output, &count).unwrap();
            }
            rec.submit().unwrap();
            let got = read_counted(&output, &count, u32::MAX).unwrap();
            assert!(got == select(&numbers[..there], &kept), "{}: {there} by {variant}", device.label);
        }
    }
}

#[test]
fn a_chain_takes_each_length_from_the_device() {
    let Some(gpu) = gpu() else { return };
    let n = 5000;
    let x: Vec<u32> = Random::new(5).any::<u32>(n).iter().map(|x| x % 97).collect();
    let input = gpu.upload(&x).unwrap();
    let [kept, sorted, firsts, sums, doubled] = [(); 5].map(|()| gpu.alloc::<u32>(n).unwrap());
    let [count, runs, total] = [(); 3].map(|()| gpu.alloc::<u32>(1).unwrap());
    let above = Predicate::custom("fn keep(x: T) -> bool { return x > 50u; }");
    let mut rec = gpu.recorder();
    let select = Select::by(n, above).plan::<u32>(gpu).unwrap();
    select.record_by(&mut rec, &input, &kept, &count).unwrap();
    let sort = RadixSort::new(n).counted().plan::<u32>(gpu).unwrap();
    sort.with_length(&count).record(&mut rec, &kept, &sorted).unwrap();
    let unique = Unique::new(n).counted().plan::<u32>(gpu).unwrap();
    unique.with_length(&count).record(&mut rec, &sorted, &firsts, &runs).unwrap();
    let scan = Scan::new(Sum, n).counted().reverse().plan::<u32>(gpu).unwrap();
    scan.with_length(&runs).record(&mut rec, &firsts, &sums).unwrap();
    let double = Zip::new(ZipFn::Add, n).counted().plan::<u32>(gpu).unwrap();
    double.with_length(&runs).record(&mut rec, &sums, &sums, &doubled).unwrap();
    let reduce = Reduce::new(Max, n).counted().plan::<u32>(gpu).unwrap();
    reduce.with_length(&runs).record(&mut rec, &doubled, &total).unwrap();
    rec.submit().unwrap();
    let want: u32 = (51..97).filter(|wanted| x.contains(wanted)).sum();
    assert_eq!(total.read().unwrap(), [2 * want]);
    assert_eq!(runs.read().unwrap(), [(51..97).filter(|wanted| x.contains(wanted)).count() as u32]);
}

#[test]
fn a_chain_from_predicate_to_top_k_reads_nothing_back() {
    let Some(gpu) = gpu() else { return };
    // All of one, all of many, some, one distinct element, none.
    for (n, limit) in [(1, 0), (70_001, 0), (70_001, 995), (70_001, 998), (70_001, 1000)] {
        let k = n.min(20);
        let x: Vec<u32> = Random::new(n as u64).any::<u32>(n).iter().map(|x| 1 + x % 999).collect();
        let input = gpu.upload(&x).unwrap();
        let [kept, sorted, distinct] = [(); 3].map(|()| gpu.alloc::<u32>(n).unwrap());
        let [count, runs, sum] = [(); 3].map(|()| gpu.alloc::<u32>(1).unwrap());
        let [largest, positions] = [(); 2].map(|()| gpu.alloc::<u32>(k).unwrap());
        let above = Predicate::custom(&format!("fn keep(x: T) -> bool {{ return x > {limit}u; }}"));
        let mut rec = gpu.recorder();
        let select = Select::by(n, above).plan::<u32>(gpu).unwrap();
        select.record_by(&mut rec, &input, &kept, &count).unwrap();
        let sort = RadixSort::new(n).counted().plan::<u32>(gpu).unwrap();
        sort.with_length(&count).record(&mut rec, &kept, &sorted).unwrap();
        let unique = Unique::new(n).counted().plan::<u32>(gpu).unwrap();
        unique.with_length(&count).record(&mut rec, &sorted, &distinct, &runs).unwrap();
        let reduce = Reduce::new(Sum, n).counted().plan::<u32>(gpu).unwrap();
        reduce.with_length(&runs).record(&mut rec, &distinct, &sum).unwrap();
        let top = TopK::new(n, k).counted().plan::<u32>(gpu).unwrap();
        top.with_length(&runs).record(&mut rec, &distinct, &largest, &positions).unwrap();
        rec.submit().unwrap();

        let mut want: Vec<u32> = x.iter().copied().filter(|x| *x > limit).collect();
        let selected = want.len();
        want.sort_unstable();
        want.dedup();
        assert_eq!(count.read().unwrap(), [selected as u32]);
        assert_eq!(runs.read().unwrap(), [want.len() as u32]);
        assert_eq!(sum.read().unwrap(), [want.iter().sum::<u32>()]);
        let found = k.min(want.len());
        let best: Vec<u32> = want.iter().rev().copied().take(k).collect();
        let places: Vec<u32> = (0..want.len() as u32).rev().take(k).collect();
        assert_eq!(largest.read().unwrap()[..found], best);
        assert_eq!(positions.read().unwrap()[..found], places);
    }
}

#[test]
fn large_dispatches_are_launched_for_the_count() {
    let Some(gpu) = gpu() else { return };
    let n = 1 << 25;
    let limits = &gpu.profile().limits;
    if 4 * n as u64 > limits.max_storage_binding {
        return;
    }
    let table: Vec<u32> = (0..1000).map(|i| 7 * i + 1).collect();
    let indices: Vec<u32> = (0..n as u32).map(|i| (i % 4099) % 1000).collect();
    let (table_in, indices_in) = (gpu.upload(&table).unwrap(), gpu.upload(&indices).unwrap());
    let output = gpu.alloc_zeroed::<u32>(n).unwrap();
    let gather = Gather::new([1000, 1], n).counted().plan::<u32>(gpu).unwrap();
    let map = Map::new(MapFn::custom("fn map(x: T) -> T { return x + 1u; }"), n).in_place().counted();
    let map = map.variant("plain").plan::<u32>(gpu).unwrap();
    let indirect = |program: &Program| program.dispatches.iter().any(|d| matches!(d.grid, Grid::Indirect { .. }));
    let larger = Op::<u32>::lower(&Gather::new([1000, 1], 1 << 28).counted(), &DeviceProfile::h100()).unwrap();
    assert!(indirect(&larger) && indirect(map.program()));
    let mut written = 0;
    for length in [1000, 0, 1 << 24, 5000, u32::MAX as usize] {
        let there = length.min(n);
        written = there.max(written);
        let count = gpu.upload(&[length as u32]).unwrap();
        let mut rec = gpu.recorder();
        gather.with_length(&count).record(&mut rec, &table_in, &indices_in, &output).unwrap();
        map.with_length(&count).record_in_place(&mut rec, &output).unwrap();
        rec.submit().unwrap();
        let begin = there.saturating_sub(3000);
        let end = (there + 3000).min(n);
        let got = output.slice(begin..end).unwrap().read().unwrap();
        for (i, got) in (begin..end).zip(got) {
            let want = if i < written { table[indices[i] as usize] + 1 } else { 0 };
            assert_eq!(got, want, "element {i} with {length} of {n}");
        }
    }
}

#[test]
fn a_length_counts_the_elements_of_one_row() {
    let Some(gpu) = gpu() else { return };
    let kind = |e: Error| e.kind();
    let rows = Reduce::rows(Sum, 3, 9).counted().plan::<f32>(gpu);
    assert_eq!(rows.map_err(kind).err(), Some(ErrorKind::Unsupported));
    let atomic = Reduce::new(Sum, 9).counted().variant("atomic").plan::<u32>(gpu);
    assert_eq!(atomic.map_err(kind).err(), Some(ErrorKind::Unsupported));
    let rows = Scan::rows(Sum, 3, 9).counted().plan::<f32>(gpu);
    assert_eq!(rows.map_err(kind).err(), Some(ErrorKind::Unsupported));
}

#[test]
fn predicates_receive_the_elements() {
    let small = Predicate::custom("fn keep(x: T) -> bool { return x < T(10); }");
    for (device, variant) in cases() {
        let gpu = &device.gpu;
        let run = |x: &[f32], predicate: &Predicate| -> Option<Vec<f32>> {
            let plan = Select::by(x.len(), predicate.clone()).variant(variant).plan::<f32>(gpu).ok()?;
            let (input, output) = (gpu.upload(x).unwrap(), gpu.upload(&vec![-5.0f32; x.len()]).unwrap());
            let count = gpu.alloc::<u32>(1).unwrap();
            let mut rec = gpu.recorder();
            plan.record_by(&mut rec, &input, &output, &count).unwrap();
            rec.submit().unwrap();
            Some(read_counted(&output, &count, -5.0).unwrap())
        };
        let x: Vec<f32> = (0..20_000).map(|i| (i % 23) as f32).collect();
        let Some(got) = run(&x, &small) else { continue };
        let want: Vec<f32> = x.iter().copied().filter(|x| *x < 10.0).collect();
        assert!(got == want, "{}: {variant}", device.label);
        let got = run(&[0.0, -0.0, 3.0, f32::INFINITY, -2.0], &Predicate::NonZero);
        assert_eq!(got, Some(vec![3.0, f32::INFINITY, -2.0]), "{}: {variant}", device.label);
    }
}

#[test]
fn predicates_receive_f16_as_f32() {
    let small = Predicate::custom("fn keep(x: T) -> bool { return x < 10.0; }");
    let x: Vec<f16> = (0..20_001u16).map(|i| f16::from_f32(f32::from(i % 23))).collect();
    for (device, variant) in cases() {
        let gpu = &device.gpu;
        let Ok(plan) = Select::by(x.len(), small.clone()).variant(variant).plan::<f16>(gpu) else { continue };
        let output = gpu.upload(&vec![f16::NEG_ONE; x.len()]).unwrap();
        let (input, count) = (gpu.upload(&x).unwrap(), gpu.alloc::<u32>(1).unwrap());
        let mut rec = gpu.recorder();
        plan.record_by(&mut rec, &input, &output, &count).unwrap();
        rec.submit().unwrap();
        let want: Vec<f16> = x.iter().copied().filter(|x| x.to_f32() < 10.0).collect();
        let got = read_counted(&output, &count, f16::NEG_ONE).unwrap();
        assert!(got == want, "{}: {variant}", device.label);
    }
}

#[test]
fn the_count_stays_on_the_device_for_later_ops() {
    // Selects twice in one submission, without reading back in between.
    for device in devices() {
        let gpu = &device.gpu;
        let x: Vec<u32> = (0..10_000).collect();
        let input = gpu.upload(&x).unwrap();
        let (once, twice) = (gpu.alloc_zeroed::<u32>(10_000).unwrap(), gpu.alloc_zeroed::<u32>(10_000).unwrap());
        let (first, second) = (gpu.alloc::<u32>(1).unwrap(), gpu.alloc::<u32>(1).unwrap());
        let by = |text: &str| Select::by(10_000, Predicate::custom(text)).plan::<u32>(gpu).unwrap();
        let even = by("fn keep(x: T) -> bool { return x % 2u == 0u; }");
        let thirds = by("fn keep(x: T) -> bool { return x % 3u == 0u && x > 0u; }");
        let mut rec = gpu.recorder();
        even.record_by(&mut rec, &input, &once, &first).unwrap();
        thirds.record_by(&mut rec, &once, &twice, &second).unwrap();
        rec.submit().unwrap();
        assert_eq!((first.read().unwrap()[0], second.read().unwrap()[0]), (5000, 1666), "{}", device.label);
        let want: Vec<u32> = (1..1667).map(|i| 6 * i).collect();
        assert_eq!(twice.slice(..1666).unwrap().read().unwrap(), want, "{}", device.label);
    }
}

#[test]
fn rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let buffer = |n: usize| gpu.upload(&vec![1u32; n]).unwrap();
    let plan = Select::new(10).plan::<u32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    let e = plan.record(&mut rec, &buffer(10), &buffer(9), &buffer(10), &buffer(1)).unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("flags has 9"), "{e}");
    let x = buffer(10);
    let e = plan.record(&mut rec, &x, &buffer(10), &x, &buffer(1)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Aliasing);
    let e = Select::new(10).variant("magic").plan::<u32>(gpu).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    let e = Select::new(usize::MAX / 8).plan::<f32>(gpu).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TooLarge);
    let bad = Predicate::custom("\nfn keep(x: T) -> bool { return x +; }");
    let e = Select::by(10, bad).plan::<f32>(gpu).unwrap_err();
    assert!(e.kind() == ErrorKind::Shader && e.to_string().contains("<user predicate>:2"), "{e}");
}

/// Functions in WGSL take the place of flags, maps and operators in requests by name.
#[test]
fn functions_in_wgsl_are_options() {
    const SQUARE: &str = "fn map(x: T) -> T { return x * x; }";
    const KEEP: &str = "fn keep(x: T) -> bool { return x > T(1); }";
    const PART: &str = "fn part(x: T) -> u32 { return select(0u, 1u, x < T(2)); }";
    const SQUARES: &str = "struct State { sum: f32 } \
        fn state_identity() -> State { return State(0.0); } \
        fn state_of(x: T) -> State { return State(x * x); } \
        fn state_combine(a: State, b: State) -> State { return State(a.sum + b.sum); }";
    const LESS: &str = "fn less(a: T, b: T) -> bool { return abs(a) < abs(b); }";
    let Some(gpu) = gpu() else { return };
    let run = |call| -> Result<Vec<HostArray>> {
        let ready = gpu.ready(call)?;
        let mut rec = gpu.recorder();
        ready.record(&mut rec)?;
        rec.submit()?;
        ready.results()
    };
    let build = |name: &str, options: &[(&str, &str)], inputs: usize| {
        let op = tilework::operations().find(|op| op.name == name).unwrap();
        let mut settings = Settings::new(op);
        options.iter().for_each(|(name, value)| settings.text(name, *value).unwrap());
        let x = HostArray::new(&[4], vec![3.0f32, -4.0, 1.0, 2.0]).unwrap();
        let flags = HostArray::new(&[4], vec![1u32, 0, 0, 1]).unwrap();
        let call = op.build(Ask::new(&settings).inputs([x, flags].into_iter().take(inputs)))?;
        let judged = reference::wanted(op, &call).map_err(|e| e.kind());
        assert!(judged == Err(ErrorKind::Unsupported), "{name}: {judged:?}");
        run(call)
    };
    type Options<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, Options<'_>, &[&[f64]]); 10] = [
        ("select", &[("keep", KEEP)], &[&[3.0, 2.0]]),
        ("partition", &[("keep", KEEP)], &[&[3.0, 2.0, -4.0, 1.0]]),
        ("split-parts", &[("part", PART), ("k", "2")], &[&[3.0, 2.0, -4.0, 1.0], &[2.0, 2.0]]),
        ("sort", &[("map", SQUARE)], &[&[1.0, 4.0, 9.0, 16.0]]),
        ("argsort", &[("map", SQUARE)], &[&[2.0, 3.0, 0.0, 1.0]]),
        ("merge-sort", &[("less", LESS)], &[&[1.0, 2.0, 3.0, -4.0]]),
        ("histogram", &[("map", SQUARE), ("bins", "2"), ("lo", "0"), ("hi", "10")], &[&[2.0, 1.0]]),
        ("reduce", &[("state", SQUARES)], &[&[30.0]]),
        ("scan", &[("state", SQUARES)], &[&[9.0, 25.0, 26.0, 30.0]]),
        ("segmented-scan", &[("state", SQUARES)], &[&[9.0, 25.0, 26.0, 4.0]]),
    ];
    for (name, options, want) in cases {
        let results = build(name, options, if name == "segmented-scan" { 2 } else { 1 }).unwrap();
        let results: Vec<_> = results.iter().map(|array| array.data().to_f64()).collect();
        assert_eq!(results, want, "{name}");
    }
    let op = tilework::operations().find(|op| op.name == "transform").unwrap();
    let mut settings = Settings::new(op);
    settings.text("apply", "fn apply(i: u32, a: A, b: B) -> R { return a * b + R(columns()); }").unwrap();
    let row = HostArray::new(&[2], vec![10.0f32, 1.0]).unwrap();
    let x = HostArray::new(&[2, 2], vec![1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let results = run(op.build(Ask::new(&settings).inputs([x, row])).unwrap()).unwrap();
    assert_eq!(results[0].data().to_f64(), [12.0, 4.0, 32.0, 6.0]);
    let refused = |name, options: &[(&str, &str)], inputs| build(name, options, inputs).unwrap_err().kind();
    assert_eq!(refused("select", &[("keep", KEEP)], 2), ErrorKind::InvalidArgument, "flags and a predicate");
    assert_eq!(refused("reduce", &[("state", SQUARES), ("op", "sum")], 1), ErrorKind::InvalidArgument);
    assert_eq!(refused("sort", &[("map", "fn map(x: T) -> T { return y; }")], 1), ErrorKind::Shader);
}
