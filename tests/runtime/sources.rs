//! Sources that yield few elements at a time, or fewer than they promise.

use super::refused;
use crate::support::{Random, devices, gpu};
use half::f16;
use std::io::{self, Read};
use tilework::Element;
use tilework::ErrorKind::{InvalidArgument, OutOfMemory, Shape, TooLarge};
use tilework::prelude::*;
use tilework::stream::{Outcome, Pipeline, Reader, Source, Space, Streamed};

fn same() -> MapFn {
    MapFn::custom("fn map(x: T) -> T { return x; }")
}

/// Elements of a chunk.
const CHUNK: usize = 64;

/// Yields at most these numbers of elements at a time, in turn.
struct Pieces<'a, T> {
    data: &'a [T],
    sizes: &'a [usize],
    calls: usize,
    /// Whether it reports its remaining length.
    tells: bool,
}

impl<T: Element> Source<T> for Pieces<'_, T> {
    fn next(&mut self, space: &mut Space<'_, T>) -> Outcome {
        let n = self.sizes[self.calls % self.sizes.len()].min(space.room()).min(self.data.len());
        self.calls += 1;
        let (now, later) = self.data.split_at(n);
        self.data = later;
        Ok(space.extend(now)?)
    }

    fn left(&self) -> Option<usize> {
        self.tells.then_some(self.data.len())
    }
}

fn pieces<'a, T>(data: &'a [T], sizes: &'a [usize], tells: bool) -> Pieces<'a, T> {
    Pieces { data, sizes, calls: 0, tells }
}

/// Every streamed op gives the same result for a source of these piece sizes as for a slice.
fn check(streamed: &Streamed, n: usize, sizes: &[usize], tells: bool) {
    let what = format!("{n} elements by {sizes:?}, told {tells}");
    // Pieces of the second source end elsewhere than those of the first.
    let others: Vec<usize> = sizes.iter().rev().map(|size| size + 1).collect();
    let mut random = Random::new(n as u64);
    let mut ints: Vec<i32> = random.elements(n);
    ints.iter_mut().for_each(|x| *x %= 1000);
    let (mut floats, values): (Vec<f32>, Vec<u32>) = (random.elements(n), (0..n as u32).collect());
    let flags: Vec<u32> = values.iter().map(|i| u32::from(i % 3 == 1)).collect();
    let halves: Vec<f16> = (0..n).map(|i| f16::from_f32((i % 3) as f32)).collect();
    let of_ints = || pieces(&ints, sizes, tells);

    let negated = streamed.map(of_ints(), MapFn::Neg).unwrap();
    assert_eq!(negated, streamed.map(&ints[..], MapFn::Neg).unwrap(), "map: {what}");
    let sums = streamed.zip(of_ints(), pieces(&negated, &others, tells), ZipFn::Add).unwrap();
    assert_eq!(sums, vec![0; n], "zip: {what}");
    assert_eq!(streamed.reduce(of_ints(), Sum).unwrap(), ints.iter().fold(0i32, |a, b| a.wrapping_add(*b)), "{what}");
    let scanned = streamed.inclusive_scan(of_ints(), Sum).unwrap();
    assert_eq!(scanned, streamed.inclusive_scan(&ints[..], Sum).unwrap(), "inclusive_scan: {what}");
    let scanned = streamed.exclusive_scan(of_ints(), Sum).unwrap();
    assert_eq!(scanned, streamed.exclusive_scan(&ints[..], Sum).unwrap(), "exclusive_scan: {what}");
    let scanned = streamed.inclusive_scan(pieces(&halves, sizes, tells), Max).unwrap();
    assert_eq!(scanned, streamed.inclusive_scan(&halves[..], Max).unwrap(), "scan of f16: {what}");
    let counts = streamed.histogram(of_ints(), 10, -1000.0, 1000.0).unwrap();
    assert_eq!(counts, streamed.histogram(&ints[..], 10, -1000.0, 1000.0).unwrap(), "histogram: {what}");
    let counts = streamed.histogram_edges(of_ints(), &[-1000.0, 0.0, 1000.0]).unwrap();
    assert_eq!(counts.iter().sum::<u64>(), n as u64, "histogram_edges: {what}");
    let kept = streamed.select(of_ints(), pieces(&flags, &others, tells)).unwrap();
    let wanted: Vec<i32> = ints.iter().zip(&flags).filter(|(_, f)| **f != 0).map(|(x, _)| *x).collect();
    assert_eq!(kept, wanted, "select: {what}");
    let kept = streamed.select_by(of_ints(), &Predicate::NonZero).unwrap();
    assert_eq!(kept, ints.iter().copied().filter(|x| *x != 0).collect::<Vec<_>>(), "select_by: {what}");
    for descending in [false, true] {
        let mut wanted: Vec<(i32, u32)> = ints.iter().copied().zip(values.iter().copied()).collect();
        // Stable, both ways.
        wanted.sort_by(|a, b| if descending { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) });
        let (wanted_keys, wanted_values): (Vec<_>, Vec<_>) = wanted.into_iter().unzip();
        let streamed = streamed.clone().when(descending, |s| s.descending());
        assert_eq!(streamed.sort(of_ints()).unwrap(), wanted_keys, "sort: {what}");
        let (keys, moved) = streamed.sort_pairs(of_ints(), pieces(&values, &others, tells)).unwrap();
        assert_eq!((keys, moved), (wanted_keys, wanted_values), "sort_pairs: {what}");
    }
    if n > 0 {
        let of_floats = |floats: &[f32]| {
            let best = |better: fn(&f32, &f32) -> bool| {
                (0..n).fold(0, |best, i| if better(&floats[i], &floats[best]) { i } else { best }) as u64
            };
            let got = (
                streamed.arg_min(pieces(floats, sizes, tells)).unwrap(),
                streamed.arg_max(pieces(floats, sizes, tells)).unwrap(),
            );
            assert_eq!(got, (best(|a, b| a < b), best(|a, b| a > b)), "{what}");
        };
        of_floats(&floats);
        floats[n - 1] = 5.0;
        floats[n / 2] = -5.0;
        of_floats(&floats);
    }
}

#[test]
fn short_reads_are_joined() {
    for device in devices() {
        for in_flight in [1, 3] {
            let streamed = device.gpu.streamed().chunk(CHUNK).in_flight(in_flight);
            let sizes: &[&[usize]] = &[&[1], &[CHUNK, 1, CHUNK, 7], &[3, 65, 2, 31, 64], &[CHUNK - 1]];
            for (i, sizes) in sizes.iter().enumerate().filter(|(i, _)| device.main || *i == 1) {
                check(&streamed, 5 * CHUNK + 9, sizes, i % 2 == 0);
                if device.main {
                    check(&streamed, 2 * CHUNK, sizes, i % 2 == 1);
                }
            }
            check(&streamed, 0, &[CHUNK], false);
        }
    }
}

#[test]
fn a_source_is_not_called_after_its_end() {
    /// Reports its end at each multiple of 10 elements, like a terminal, and would then continue.
    struct Lines(usize);
    impl Source<u32> for Lines {
        fn next(&mut self, space: &mut Space<'_, u32>) -> Outcome {
            self.0 += 1;
            if !self.0.is_multiple_of(11) {
                space.extend(&[self.0 as u32])?;
            }
            Ok(())
        }
    }
    let Some(gpu) = gpu() else { return };
    for chunk in [1, 3, 5, 10, 64] {
        let streamed = gpu.streamed().chunk(chunk);
        assert_eq!(streamed.map(Lines(0), same()).unwrap(), (1..=10).collect::<Vec<_>>());
        let total: u32 = streamed.reduce(Lines(0), Sum).unwrap();
        assert_eq!(total, 55, "chunks of {chunk}");
    }
}

#[test]
fn rejects_a_source_shorter_than_it_promised() {
    /// Always reports this many elements as remaining.
    struct Liar<'a>(&'a [u32], usize);
    impl Source<u32> for Liar<'_> {
        fn next(&mut self, space: &mut Space<'_, u32>) -> Outcome {
            self.0.next(space)
        }
        fn left(&self) -> Option<usize> {
            Some(self.1)
        }
    }
    let Some(gpu) = gpu() else { return };
    let streamed = gpu.streamed().chunk(CHUNK);
    let x: Vec<u32> = (0..200).collect();
    let words = ["announced 201 elements", "after 200"];
    refused(streamed.map(Liar(&x, 201), same()), Shape, &words);
    refused(streamed.reduce::<_, u32, _>(Liar(&x, 201), Sum), Shape, &words);
    refused(streamed.sort(Liar(&x, 201)), Shape, &words);
    refused(streamed.inclusive_scan(Liar(&x, 201), Sum), Shape, &words);
    refused(streamed.zip(&x[..], Liar(&x, 201), ZipFn::Add), Shape, &["zip"]);
    // Empty chunks in the middle.
    let result = streamed.sort(pieces(&x, &[CHUNK, 0, CHUNK], true));
    refused(result, Shape, &["announced 200", "after 64"]);
    // Reporting too few is a harmless hint.
    assert_eq!(streamed.map(Liar(&x, 3), same()).unwrap(), x);
    assert_eq!(streamed.clone().descending().sort(Liar(&x, 0)).unwrap()[0], 199);
    // More than fits in any memory.
    for left in [1 << 60, usize::MAX] {
        let words = ["list of"];
        refused(streamed.map(Liar(&x, left), same()), OutOfMemory, &words);
        refused(streamed.zip(Liar(&x, left), &x[..], ZipFn::Add), OutOfMemory, &words);
        refused(streamed.sort(Liar(&x, left)), OutOfMemory, &words);
        refused(streamed.sort_pairs(Liar(&x, left), &x[..]), OutOfMemory, &words);
        refused(streamed.inclusive_scan(Liar(&x, left), Sum), OutOfMemory, &words);
        refused(streamed.exclusive_scan(Liar(&x, left), Sum), OutOfMemory, &words);
        refused(streamed.reduce::<_, u32, _>(Liar(&x, left), Sum), Shape, &["announced"]);
        refused(streamed.histogram(Liar(&x, left), 4, 0.0, 9.0), Shape, &["announced"]);
        refused(streamed.select_by(Liar(&x, left), &Predicate::NonZero), Shape, &["announced"]);
    }
    assert!(streamed.map(Liar(&x, 1 << 40), same()).is_err());
    assert!(streamed.sort(Liar(&x, 1 << 40)).is_err());
}

#[test]
fn chunks_in_flight_are_bounded() {
    let Some(gpu) = gpu() else { return };
    for chunks in [1025, usize::MAX] {
        let mut pipeline = Pipeline::new(gpu, chunks);
        let ran = pipeline.run(|_| Ok(false), |_, _| Ok(()), |_| Ok(()));
        refused(ran, TooLarge, &["chunks in flight", "1024"]);
    }
    let x = [1u32, 2, 3];
    refused(gpu.streamed().in_flight(usize::MAX).chunk(1).map(&x[..], same()), InvalidArgument, &["memory"]);
}

#[test]
fn a_reader_that_yields_single_bytes_is_read_fully() {
    struct Drops<'a>(&'a [u8]);
    impl Read for Drops<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let n = to.len().min(1);
            self.0.read(&mut to[..n])
        }
    }
    let Some(gpu) = gpu() else { return };
    let x: Vec<i32> = Random::new(3).elements(1001);
    let bytes = bytemuck::cast_slice(&x);
    let mut wanted = x.clone();
    wanted.sort_unstable();
    assert_eq!(gpu.streamed().chunk(100).sort::<i32>(Reader(Drops(bytes))).unwrap(), wanted);
}

#[test]
fn outputs_of_no_elements_are_empty() {
    for device in devices() {
        for in_flight in [1, 3] {
            let mut pipeline = Pipeline::new(&device.gpu, in_flight);
            let x = pipeline.input::<u32>(CHUNK);
            let (y, never) = (pipeline.output::<u32>(CHUNK), pipeline.output::<f16>(CHUNK));
            let of_none = pipeline.output::<f32>(0);
            let (mut left, mut got) = (6, Vec::new());
            let ran = pipeline.run(
                |chunk| {
                    left -= 1;
                    // Every second chunk is empty.
                    let n = if left % 2 == 0 { 0 } else { left as usize };
                    chunk.write(x, &vec![left as u32; n])?;
                    Ok(left > 0)
                },
                |rec, chunk| {
                    let input = chunk.input(x)?;
                    let output = chunk.output(y, input.len())?;
                    let _ = chunk.output(of_none, 0)?;
                    let copy = Map::new(same(), input.len()).plan::<u32>(&device.gpu)?;
                    Ok(copy.record(rec, input, output)?)
                },
                |chunk| {
                    assert!(chunk.read(of_none)?.is_empty() && chunk.read(never)?.is_empty());
                    got.push(chunk.read(y)?.to_vec());
                    Ok(())
                },
            );
            ran.unwrap_or_else(|e| panic!("{}, {in_flight} in flight: {e}", device.label));
            assert_eq!(got, [vec![5; 5], vec![], vec![3; 3], vec![], vec![1]], "{}", device.label);
        }
    }
}
