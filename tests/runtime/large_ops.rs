//! Ops on more data than a chunk, a buffer or the device holds.

use super::refused;
use crate::support::{Random, assert_close, devices, gpu, numbers};
use half::f16;
use std::io;
use tilework::ErrorKind::{Cancelled, InvalidArgument, Io, Shape, Unsupported};
use tilework::prelude::*;
use tilework::primitives::Reducer;
use tilework::program::{DeviceProfile, Grid, Op, Program};
use tilework::reference::{histogram, reduce, scan, scan_bound, sort_positions};
use tilework::stream::{Cancel, Items, Outcome, Reader, Source, Space};

/// Elements of the large ops: hundreds of chunks of `CHUNK`.
const N: usize = 150_001;
const CHUNK: usize = 700;

#[test]
fn large_elementwise_ops_match_reference() {
    for device in devices().iter().filter(|d| d.main || d.label.contains("defaults")) {
        let streamed = device.gpu.streamed().chunk(CHUNK);
        let mut random = Random::new(1);
        let (x, y): (Vec<i32>, Vec<i32>) = (random.elements(N), random.elements(N));
        let wanted: Vec<i32> = x.iter().map(|x| x.wrapping_neg()).collect();
        assert_eq!(streamed.map(&x[..], MapFn::Neg).unwrap(), wanted, "{}", device.label);
        let wanted: Vec<i32> = x.iter().zip(&y).map(|(x, y)| x.wrapping_sub(*y)).collect();
        assert_eq!(streamed.zip(&x[..], &y[..], ZipFn::Sub).unwrap(), wanted, "{}", device.label);
        let halves: Vec<f16> = random.elements(4001);
        let wanted: Vec<f16> = halves.iter().map(|x| -*x).collect();
        // The last chunk ends with a word, or within one, or is the only chunk.
        for chunk in [33, 34, 4001] {
            assert_eq!(streamed.clone().chunk(chunk).map(&halves[..], MapFn::Neg).unwrap(), wanted, "{chunk}");
        }
        // A reader and an iterator give the same result as a slice.
        let bytes = bytemuck::cast_slice::<i32, u8>(&x);
        let short = x[..5000].iter().copied();
        let read = streamed.zip(Reader(&bytes[..20_000]), Items(short), ZipFn::Add).unwrap();
        let wanted: Vec<i32> = x[..5000].iter().map(|x| x.wrapping_mul(2)).collect();
        assert_eq!(read, wanted, "{}", device.label);
    }
}

#[test]
fn large_reductions_match_reference() {
    fn check<T, U, O>(label: &str, gpu: &Gpu, op: O, x: &[T])
    where
        T: tilework::reference::Number,
        U: tilework::reference::Number,
        O: Reducer<T, Output = U> + Reducer<U, Output = U> + Clone,
    {
        let operator = Reducer::<T>::operator(&op);
        let got = gpu.streamed().chunk(CHUNK).reduce(x, op).unwrap();
        let wanted = reduce(&operator, 1, x.len(), x).unwrap();
        let bound = tilework::reference::reduce_bound(&operator, 1, x.len(), x);
        assert_close(&format!("{label}: {}", operator.name()), &[got.to_f64()], &wanted, &bound);
    }
    for device in devices().iter().filter(|d| d.main || d.label.contains("defaults")) {
        let (gpu, label) = (&device.gpu, &device.label[..]);
        let mut random = Random::new(2);
        let x: Vec<u32> = random.elements(N);
        check(label, gpu, Sum, &x);
        check(label, gpu, Max, &x);
        check(label, gpu, Sum, &random.elements::<u8>(N));
        check(label, gpu, Min, &random.elements::<f32>(N));
        check(label, gpu, Sum, &random.elements::<f32>(N));
        let last = CustomOp::new(
            "fn op_identity() -> T { return T(0); }
             fn op_combine(a: T, b: T) -> T { return select(b, a, b == 0u); }",
        );
        // Chunks keep their order.
        assert_eq!(gpu.streamed().chunk(CHUNK).reduce(&x[..], last.clone()).unwrap(), x[N - 1]);
        assert_eq!(gpu.streamed().chunk(1).reduce(&x[..9], last.clone()).unwrap(), x[8]);
        assert_eq!(gpu.streamed().reduce::<u32, _, _>(&[][..], last).unwrap(), 0);

        let streamed = gpu.streamed().chunk(100);
        let mut x: Vec<f32> = random.elements(5000);
        let place = |better: &dyn Fn(f32, f32) -> bool| {
            (0..x.len()).fold(0, |best, i| if better(x[i], x[best]) { i } else { best }) as u64
        };
        assert_eq!(streamed.arg_min(&x[..]).unwrap(), place(&|a, b| a < b), "{label}");
        assert_eq!(streamed.arg_max(&x[..]).unwrap(), place(&|a, b| a > b), "{label}");
        (x[1700], x[4100], x[4101]) = (9.0, 9.0, f32::NAN);
        assert_eq!(streamed.arg_max(&x[..4100]).unwrap(), 1700, "{label}: the first of equals");
        assert_eq!(streamed.arg_max(&x[..]).unwrap(), 4101, "{label}: NaN");
        x[300] = f32::NAN;
        assert_eq!(streamed.arg_min(&x[..]).unwrap(), 300, "{label}: the first NaN");
    }
}

#[test]
fn large_scans_match_reference() {
    for device in devices().iter().filter(|d| d.main || d.label.contains("defaults")) {
        let mut random = Random::new(3);
        let ints: Vec<u32> = random.elements(N);
        let floats: Vec<f32> = random.elements(20_000);
        for (chunk, exclusive) in [(CHUNK, false), (CHUNK, true), (N, false)] {
            let streamed = device.gpu.streamed().chunk(chunk);
            let label = format!("{}, chunks of {chunk}", device.label);
            let run = |x: &[u32]| match exclusive {
                false => streamed.inclusive_scan(x, Sum).unwrap(),
                true => streamed.exclusive_scan(x, Sum).unwrap(),
            };
            let wanted = scan(&Reducer::<u32>::operator(&Sum), 1, N, exclusive, false, &ints).unwrap();
            assert_eq!(numbers(&run(&ints)), wanted, "{label}");
            for n in [0, 1, 2, chunk - 1, chunk, chunk + 1, 2 * chunk - 1, 2 * chunk] {
                let n = n.min(N);
                let op = Reducer::<u32>::operator(&Sum);
                let wanted = scan(&op, 1, n, exclusive, false, &ints[..n]).unwrap();
                assert_eq!(numbers(&run(&ints[..n])), wanted, "{label}, {n}");
            }
        }
        let streamed = device.gpu.streamed().chunk(CHUNK);
        let op = Reducer::<f32>::operator(&Sum);
        let wanted = scan(&op, 1, floats.len(), false, false, &floats).unwrap();
        let bound = scan_bound(&op, 1, floats.len(), false, false, &floats);
        let got = streamed.inclusive_scan(&floats[..], Sum).unwrap();
        assert_close(&device.label, &numbers(&got), &wanted, &bound);
        let least = streamed.exclusive_scan(&floats[..3], Min).unwrap();
        assert_eq!(least, [f32::INFINITY, floats[0], floats[0].min(floats[1])]);
        assert_eq!(streamed.clone().chunk(1).inclusive_scan(&ints[..4], Max).unwrap().len(), 4);
    }
}

#[test]
fn large_f16_scans_match_reference() {
    for device in devices().iter().filter(|d| d.main || d.label.contains("defaults")) {
        let mut random = Random::new(3);
        let x: Vec<f16> = random.elements(9001);
        let op = Reducer::<f16>::operator(&Sum);
        for (chunk, n) in [(CHUNK, 9001), (33, 3001), (34, 3001), (1, 20), (10_000, 9001), (7, 7), (7, 0)] {
            let streamed = device.gpu.streamed().chunk(chunk);
            for exclusive in [false, true] {
                let got = match exclusive {
                    false => streamed.inclusive_scan(&x[..n], Sum).unwrap(),
                    true => streamed.exclusive_scan(&x[..n], Sum).unwrap(),
                };
                let wanted = scan(&op, 1, n, exclusive, false, &x[..n]).unwrap();
                // Totals carried between chunks are not rounded, so the bound of one scan applies.
                let bound = scan_bound(&op, 1, n, exclusive, false, &x[..n]);
                let label = format!("{}, {n} in chunks of {chunk}, exclusive {exclusive}", device.label);
                assert_close(&label, &numbers(&got), &wanted, &bound);
            }
        }
        // Overflow of f16 and NaN, carried from chunk to chunk.
        let streamed = device.gpu.streamed().chunk(2);
        let large = [f16::MAX, f16::MAX, f16::MIN, f16::ONE, f16::MIN, f16::ONE, f16::ONE];
        let sums = streamed.inclusive_scan(&large[..], Sum).unwrap();
        assert_eq!((sums[1], sums[2], sums[6]), (f16::INFINITY, f16::MAX, f16::from_f32(3.0)));
        let mut odd = large.to_vec();
        odd[4] = f16::NAN;
        let least = streamed.inclusive_scan(&odd[..], Min).unwrap();
        assert_eq!(least[..4], [f16::MAX, f16::MAX, f16::MIN, f16::MIN]);
        assert!(least[4..].iter().all(|x| x.is_nan()), "{least:?}");
        let last = CustomOp::new(
            "fn op_identity() -> T { return T(0); }
             fn op_combine(a: T, b: T) -> T { return select(b, a, b == 0.0); }",
        );
        let kept: Vec<f16> = (0..100).map(|i| f16::from_f32(if i % 11 == 0 { i as f32 } else { 0.0 })).collect();
        let wanted: Vec<f16> = (0..100).map(|i| f16::from_f32((i / 11 * 11) as f32)).collect();
        assert_eq!(streamed.inclusive_scan(&kept[..], last).unwrap(), wanted, "{}", device.label);
    }
}

#[test]
fn large_histograms_match_reference() {
    for device in devices().iter().filter(|d| d.main || d.label.contains("defaults")) {
        let streamed = device.gpu.streamed().chunk(CHUNK);
        let bytes: Vec<u8> = Random::new(4).elements(N);
        let mut wanted = vec![0u64; 256];
        bytes.iter().for_each(|b| wanted[usize::from(*b)] += 1);
        assert_eq!(streamed.histogram(&bytes[..], 256, 0.0, 256.0).unwrap(), wanted, "{}", device.label);
        assert_eq!(streamed.histogram::<u8>(Reader(&bytes[..]), 256, 0.0, 256.0).unwrap(), wanted);
        let floats: Vec<f32> = Random::new(5).elements(20_000);
        let edges = [-0.5, -0.1, 0.0, 0.25, 0.75];
        let counts = streamed.histogram_edges(&floats[..], &edges).unwrap();
        let count = |lo: f64, hi: f64, last: bool| {
            let inside = |x: f64| x >= lo && (x < hi || last && x == hi);
            floats.iter().filter(|x| inside(f64::from(**x))).count() as u64
        };
        let wanted: Vec<u64> = edges.windows(2).enumerate().map(|(i, e)| count(e[0], e[1], i == 3)).collect();
        assert_eq!(counts, wanted, "{}", device.label);
    }
}

#[test]
fn large_selections_match_reference() {
    for device in devices().iter().filter(|d| d.main || d.label.contains("defaults")) {
        let streamed = device.gpu.streamed().chunk(CHUNK);
        let mut random = Random::new(6);
        let (x, mut flags): (Vec<u32>, Vec<u32>) = (random.elements(N), random.elements(N));
        flags.iter_mut().for_each(|f| *f %= 3);
        // A chunk of which nothing is selected, and one of which everything is.
        flags[CHUNK..2 * CHUNK].fill(0);
        flags[2 * CHUNK..3 * CHUNK].fill(1);
        let wanted = tilework::reference::select(&x, &flags);
        assert_eq!(streamed.select(&x[..], &flags[..]).unwrap(), wanted, "{}", device.label);
        let odd = Predicate::custom("fn keep(x: T) -> bool { return (x & 1u) == 1u; }");
        let wanted: Vec<u32> = x.iter().copied().filter(|x| x % 2 == 1).collect();
        assert_eq!(streamed.select_by(&x[..], &odd).unwrap(), wanted, "{}", device.label);
    }
}

#[test]
fn large_sorts_match_reference() {
    for device in devices().iter().filter(|d| d.main || d.label.contains("defaults")) {
        let mut random = Random::new(8);
        let streamed = device.gpu.streamed().chunk(CHUNK);
        let keys: Vec<u32> = random.elements(N);
        let mut wanted = keys.clone();
        wanted.sort_unstable();
        assert_eq!(streamed.sort(&keys[..]).unwrap(), wanted, "{}", device.label);
        // Few distinct keys, so that stability shows; every kind of float.
        let floats: Vec<f32> = (0..30_000)
            .map(|_| match random.next() % 9 {
                0 => f32::NAN,
                1 => -f32::NAN,
                2 => -0.0,
                3 => 0.0,
                n => n as f32 - 5.5,
            })
            .collect();
        let values: Vec<u32> = (0..floats.len() as u32).collect();
        for descending in [false, true] {
            let order = sort_positions(&floats, descending, 0..32);
            let streamed = streamed.clone().when(descending, |s| s.descending());
            let (keys, moved) = streamed.sort_pairs(&floats[..], &values[..]).unwrap();
            let wanted: Vec<u32> = order.iter().map(|&i| i as u32).collect();
            assert_eq!(moved, wanted, "{}, descending {descending}", device.label);
            let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            let wanted: Vec<f32> = order.iter().map(|&i| floats[i]).collect();
            assert_eq!(bits(&keys), bits(&wanted), "{}, descending {descending}", device.label);
        }
        assert!(streamed.sort::<i32>(&[][..]).unwrap().is_empty());
        assert_eq!(streamed.descending().sort(&[3, -1, 2][..]).unwrap(), [3, 2, -1]);
    }
}

#[test]
#[ignore = "takes 40 GB of the host's memory, and on a processor an hour"]
fn ops_stream_more_than_a_buffer_holds() {
    let Some(gpu) = gpu() else { return };
    let n = 1_200_000_000; // 4.8 GB; a buffer holds at most 4 GiB
    let x: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(0x9e37_79b9) ^ (i >> 3)).collect();
    assert!(4 * n as u64 > gpu.profile().limits.max_buffer_size, "a buffer holds all of it");
    let streamed = gpu.streamed();
    let began = std::time::Instant::now();
    let lap = |what: &str| eprintln!("{:6.2} s: {what}", began.elapsed().as_secs_f64());
    let sum = x.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
    lap("reference of reduce");
    assert_eq!(streamed.reduce::<u32, u32, _>(&x[..], Sum).unwrap(), sum);
    lap("reduce");
    let mut at = 0;
    let mut prefix = 0u32;
    let right = |chunk: &[u32]| {
        for sum in chunk {
            prefix = prefix.wrapping_add(x[at]);
            assert_eq!(*sum, prefix, "element {at}");
            at += 1;
        }
        Ok(())
    };
    streamed.inclusive_scan_to(&x[..], Sum, right).unwrap();
    assert_eq!(at, n);
    lap("scan");
    let bytes: &[u8] = bytemuck::cast_slice(&x);
    let mut counts = vec![0u64; 256];
    bytes.iter().for_each(|b| counts[usize::from(*b)] += 1);
    lap("reference of histogram");
    assert_eq!(streamed.histogram(bytes, 256, 0.0, 256.0).unwrap(), counts);
    lap("histogram");
    let odd = Predicate::custom("fn keep(x: T) -> bool { return (x & 1u) == 1u; }");
    let kept = streamed.select_by(&x[..], &odd).unwrap();
    assert!(kept.iter().eq(x.iter().filter(|x| *x % 2 == 1)));
    drop(kept);
    lap("select");
    let mut at = 0;
    let doubled = |chunk: &[u32]| {
        assert!(chunk.iter().zip(&x[at..]).all(|(sum, x)| *sum == x.wrapping_add(*x)));
        at += chunk.len();
        Ok(())
    };
    streamed.zip_to(&x[..], &x[..], ZipFn::Add, doubled).unwrap();
    assert_eq!(at, n);
    lap("zip");
    let sorted = streamed.sort(&x[..]).unwrap();
    lap("sort");
    assert!(sorted.is_sorted() && sorted.len() == n);
    assert_eq!(sorted.iter().fold(0u32, |sum, x| sum.wrapping_add(*x)), sum);
    let mix = |x: &[u32]| x.iter().fold(0u64, |all, x| all.wrapping_add(u64::from(*x).pow(2)));
    assert_eq!(mix(&sorted), mix(&x));
    eprintln!("{}", gpu.memory());
}

/// Repeats one block of elements.
struct Again<'a> {
    block: &'a [u32],
    at: usize,
    left: usize,
}

impl Source<u32> for Again<'_> {
    fn next(&mut self, space: &mut Space<'_, u32>) -> Outcome {
        while space.room() > 0 && self.left > 0 {
            let n = space.room().min(self.left).min(self.block.len() - self.at);
            space.extend(&self.block[self.at..self.at + n])?;
            self.left -= n;
            self.at = (self.at + n) % self.block.len();
        }
        Ok(())
    }
}

#[test]
#[ignore = "needs to be told how many bytes are more than the device has, and streams them three times"]
fn ops_stream_more_than_the_device_holds() {
    let Some(gpu) = gpu() else { return };
    let bytes: usize = std::env::var("TILEWORK_MORE_BYTES").unwrap().parse().unwrap();
    // Chunks are not whole numbers of blocks.
    let block: Vec<u32> = Random::new(1).elements(10_000_019);
    let (n, len) = (bytes / 4, block.len());
    let source = || Again { block: &block, at: 0, left: n };
    let sums: Vec<u32> = block
        .iter()
        .scan(0u32, |sum, x| {
            *sum = sum.wrapping_add(*x);
            Some(*sum)
        })
        .collect();
    let prefix = |i: usize| (sums[len - 1].wrapping_mul((i / len) as u32)).wrapping_add(sums[i % len]);
    let streamed = gpu.streamed();
    let began = std::time::Instant::now();
    let lap = |what: &str| eprintln!("{:6.2} s: {what} of {n} elements", began.elapsed().as_secs_f64());
    assert_eq!(streamed.reduce::<u32, u32, _>(source(), Sum).unwrap(), prefix(n - 1));
    lap("reduce");
    let counts = streamed.histogram(source(), 1 << 10, 0.0, 4294967296.0).unwrap();
    let desc = |n| Histogram::new(n, 1 << 10).range(0.0, 4294967296.0);
    let (whole, rest) = (histogram(&desc(len), &block).unwrap(), histogram(&desc(n % len), &block[..n % len]).unwrap());
    let times = (n / len) as u64;
    let wanted: Vec<u64> = whole.iter().zip(rest).map(|(&w, r)| times * u64::from(w) + u64::from(r)).collect();
    assert_eq!(counts, wanted);
    lap("histogram");
    let mut at = 0;
    let right = |chunk: &[u32]| {
        let mut chunk = chunk;
        while !chunk.is_empty() {
            let (now, later) = chunk.split_at(chunk.len().min(len - at % len));
            let before = sums[len - 1].wrapping_mul((at / len) as u32);
            let wrong = now.iter().zip(&sums[at % len..]).position(|(y, s)| *y != s.wrapping_add(before));
            assert_eq!(wrong, None, "behind element {at}");
            at += now.len();
            chunk = later;
        }
        Ok(())
    };
    streamed.inclusive_scan_to(source(), Sum, right).unwrap();
    assert_eq!(at, n);
    lap("scan");
    let memory = gpu.memory();
    assert!(memory.peak < bytes as u64, "{memory}");
    eprintln!("{memory}");
}

#[test]
fn large_ops_reject_bad_input() {
    let Some(gpu) = gpu() else { return };
    let streamed = gpu.streamed().chunk(10);
    let x = [1.0f32; 35];
    refused(gpu.streamed().chunk(0).map(&x[..], MapFn::Neg), InvalidArgument, &["chunks of 0 elements"]);
    refused(gpu.streamed().memory(10).map(&x[..], MapFn::Neg), InvalidArgument, &["10 bytes of memory"]);
    refused(gpu.streamed().in_flight(0).map(&x[..], MapFn::Neg), InvalidArgument, &["0 chunks in flight"]);
    refused(streamed.zip(&x[..], &x[..34], ZipFn::Add), Shape, &["chunk 3, fill", "zip", "5", "4"]);
    refused(streamed.zip(&x[..30], &x[..], ZipFn::Add), Shape, &["chunk 3, fill", "zip", "0", "5"]);
    refused(streamed.select(&x[..], &[1, 1][..]), Shape, &["select"]);
    refused(streamed.sort_pairs(&x[..], &[1, 1][..]), Shape, &["sort"]);
    refused(streamed.reduce(&[1u32, 2][..], ArgMin), Unsupported, &["arg_min"]);
    refused(streamed.reduce::<f32, _, _>(&[][..], Max), Shape, &["0 elements"]);
    refused(streamed.arg_max::<f32>(&[][..]), Shape, &["0 elements"]);
    refused(streamed.inclusive_scan(&[1u8; 3][..], Min), Unsupported, &["f32, f16, i32 and u32, not u8"]);
    refused(streamed.exclusive_scan(&[1u8; 3][..], Min), Unsupported, &["u8"]);
    refused(streamed.histogram(&x[..], 0, 0.0, 1.0), InvalidArgument, &["0 bins"]);
    refused(streamed.histogram(&x[..], 4, 1.0, 1.0), InvalidArgument, &["lo below hi"]);
    refused(streamed.map::<i32>(Reader(&[0u8; 7][..]), MapFn::Neg), Io, &["chunk 0, fill", "only 3 bytes"]);
    let full = |_: &[f32]| -> Outcome { Err(io::Error::other("disk full").into()) };
    refused(streamed.map_to(&x[..], MapFn::Neg, full), Io, &["chunk 0, drain", "disk full"]);
    let cancel = Cancel::new();
    cancel.cancel();
    refused(streamed.clone().cancelled_by(&cancel).sort(&x[..]), Cancelled, &[]);
}

#[test]
fn the_memory_limit_bounds_chunks_of_large_ops() {
    let Some(gpu) = gpu() else { return };
    // 2 x 3 chunks of two buffers at 4 bytes per element: 64 elements each.
    let streamed = gpu.streamed().memory(6 * 8 * 64);
    let mut longest = 0;
    let x: Vec<i32> = (0..1000).collect();
    let sink = |chunk: &[i32]| {
        longest = longest.max(chunk.len());
        Ok(())
    };
    streamed.map_to(&x[..], MapFn::Neg, sink).unwrap();
    assert_eq!(longest, 64);
}

/// The largest number of workgroups of a dispatch; asserts that every extent is within the limit.
fn most_workgroups(program: &Program, limit: u32) -> u64 {
    let extents = program.dispatches.iter().filter_map(|d| match d.grid {
        Grid::Direct(extents) => Some(extents),
        Grid::Indirect { .. } => None,
    });
    let mut most = 0;
    for extents in extents {
        assert!(extents.iter().all(|e| *e <= limit), "{}: {extents:?}", program.op);
        most = most.max(extents.iter().map(|e| u64::from(*e)).product());
    }
    most
}

#[test]
fn ops_fold_more_workgroups_than_a_dimension_has() {
    const BEYOND: u64 = 65536;
    let Some(gpu) = gpu() else { return };
    let profile = gpu.profile();
    let n = (1 << 24) + 777;
    let run = |program: Program, operands: &[&Buffer<u32>]| {
        assert!(most_workgroups(&program, 65535) >= BEYOND, "{} has fewer", program.op);
        let ready = gpu.prepare(program).unwrap();
        let raw: Vec<_> = operands.iter().map(|b| Slice::from(*b).untyped()).collect();
        let mut rec = gpu.recorder();
        ready.record(&mut rec, &raw).unwrap();
        rec.submit().unwrap();
    };
    let host: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 8).collect();
    let (x, y) = (gpu.upload(&host).unwrap(), gpu.alloc::<u32>(n).unwrap());

    let next = MapFn::custom("fn map(x: T) -> T { return x + 1u; }");
    run(Op::<u32>::lower(&Map::new(next, n).variant("plain"), profile).unwrap(), &[&x, &y]);
    assert!(y.read().unwrap().iter().zip(&host).all(|(y, x)| *y == x + 1), "map");

    run(Op::<u32>::lower(&Scan::new(Sum, n).variant("kogge-stone"), profile).unwrap(), &[&x, &y]);
    let mut total = 0u32;
    let right = y.read().unwrap().iter().zip(&host).all(|(y, x)| {
        total = total.wrapping_add(*x);
        *y == total
    });
    assert!(right, "scan");

    let sum = gpu.alloc::<u32>(1).unwrap();
    run(Op::<u32>::lower(&Reduce::new(Sum, n).variant("sequential"), profile).unwrap(), &[&x, &sum]);
    assert_eq!(sum.read().unwrap(), [total], "reduce");

    let counts = gpu.alloc::<u32>(64).unwrap();
    let histogram = Histogram::new(n, 64).range(0.0, f64::from(1 << 24)).variant("privatized");
    run(Op::<u32>::lower(&histogram, profile).unwrap(), &[&x, &counts]);
    let mut wanted = [0; 64];
    host.iter().for_each(|x| wanted[(x >> 18) as usize] += 1);
    assert_eq!(counts.read().unwrap(), wanted, "histogram");

    // Stable, by the low byte.
    let n = 64 * BEYOND as usize + 1;
    let sort = RadixSort::new(n).tile(64, 1).bits(0..8).variant("onesweep");
    let (keys, sorted) = (gpu.upload(&host[..n]).unwrap(), gpu.alloc::<u32>(n).unwrap());
    match Op::<u32>::lower(&sort, profile) {
        // A device without subgroups, or with subgroups that are too large.
        Err(e) => assert_eq!(e.kind(), Unsupported, "{e}"),
        Ok(program) => {
            run(program, &[&keys, &sorted]);
            let mut wanted = host[..n].to_vec();
            wanted.sort_by_key(|key| key & 255);
            assert!(sorted.read().unwrap() == wanted, "sort");
        }
    }

    // Its tiles are so large that only a card can bind enough of them: lowered for a card.
    let program = Op::<f16>::lower(&Select::by(1 << 29, Predicate::NonZero), &DeviceProfile::h100());
    assert!(most_workgroups(&program.unwrap(), 65535) >= BEYOND / 2, "select has fewer");
}
