//! Sorted elements: sorts, merges, searches, the largest.

use crate::support::{Bench, Operand, centred, half, random};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::{DType, Element, Result};

/// Sorted and random needles in sorted elements.
pub(crate) fn bounds(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 26, 1 << 18);
    let sorted: Vec<u32> = (0..n as u32).map(|i| i << 4).collect();
    let (sorted, random) = (bench.gpu.upload(&sorted)?, random(&bench.gpu, n, |b| b)?);
    let output = bench.gpu.alloc::<u32>(n)?;
    bench.op::<u32>(&LowerBound::new(n, n), format!("{n} sorted in {n}"), &[&sorted, &sorted, &output])?;
    bench.op::<u32>(&LowerBound::new(n, n), format!("{n} random in {n}"), &[&sorted, &random, &output])?;
    bench.op::<u32>(&UpperBound::new(n, n), format!("{n} random in {n}"), &[&sorted, &random, &output])
}

/// Merges and operations on sets of two sorted arrays, of which about half of the elements are equal.
pub(crate) fn merges(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 26, 1 << 18);
    let a: Vec<u32> = (0..n as u32).map(|i| i << 1).collect();
    let b: Vec<u32> = (0..n as u32).map(|i| (i << 1) | (i >> 3 & 1)).collect();
    let (a, b) = (bench.gpu.upload(&a)?, bench.gpu.upload(&b)?);
    let (output, values) = (bench.gpu.alloc::<u32>(2 * n)?, bench.gpu.alloc::<u32>(2 * n)?);
    let count = bench.gpu.alloc::<u32>(1)?;
    bench.op::<u32>(&IsSorted::new(n), n.to_string(), &[&a, &count])?;
    let found = bench.gpu.alloc::<u32>(2)?;
    bench.op::<u32>(&Find::new(n, Predicate::NonZero), n.to_string(), &[&a, &found])?;
    bench.op::<u32>(&Find::mismatch(n), format!("{n} of two"), &[&a, &b, &found])?;
    let shuffled = random(&bench.gpu, n, |b| b)?;
    let less = "fn less(a: T, b: T) -> bool { return a < b; }";
    for (name, op) in [("", MergeSort::new(n)), (" by less", MergeSort::new(n).less(less))] {
        bench.op::<u32>(&op, format!("{n}{name}"), &[&shuffled, &output])?;
        let pairs = op.with_values();
        bench.op::<u32>(&pairs, format!("{n}{name}, values"), &[&shuffled, &a, &output, &values])?;
    }
    let size = format!("{n} and {n}");
    bench.op::<u32>(&Merge::new(n, n), size.clone(), &[&a, &b, &output])?;
    let by_key = Merge::new(n, n).with_values();
    bench.op::<u32>(&by_key, format!("{size}, values"), &[&a, &b, &a, &b, &output, &values])?;
    bench.op::<u32>(&SetUnion::new(n, n), size.clone(), &[&a, &b, &output, &count])?;
    let by_key = SetUnion::new(n, n).with_values(DType::U32, 1);
    bench.op::<u32>(&by_key, format!("{size}, values"), &[&a, &b, &a, &b, &output, &values, &count])?;
    bench.op::<u32>(&SetIntersection::new(n, n), size.clone(), &[&a, &b, &output, &count])?;
    bench.op::<u32>(&SetDifference::new(n, n), size, &[&a, &b, &output, &count])
}

pub(crate) fn sort(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = bench.scale(1 << 28, 1 << 18);
    let keys = random(&gpu, largest, |bits| bits)?;
    let sizes = bench.scale(vec![1 << 16, 1 << 20, 1 << 24, 1 << 28], vec![1 << 16, 1 << 18]);
    for &n in &sizes {
        for variant in RadixSort::variants() {
            sort_keys(bench, &RadixSort::new(n).variant(variant.name), variant.name, "random", &keys, n)?;
        }
    }
    for n in sizes {
        let (keys_out, values_out) = (gpu.alloc::<u32>(n)?, gpu.alloc::<u32>(n)?);
        let op = RadixSort::new(n).with_values();
        let operands: [&dyn Operand; 4] = [&keys, &keys, &keys_out, &values_out];
        bench.op_as::<u32>(&op, ("auto", ""), format!("pairs {n} random"), &operands)?;
    }
    // Values of 16 bytes, and keys of 8 and 16 bits.
    let n = largest / 4;
    let (keys_out, values_out) = (gpu.alloc::<u32>(n)?, gpu.alloc::<u32>(4 * n)?);
    let operands: [&dyn Operand; 4] = [&keys, &keys, &keys_out, &values_out];
    let op = RadixSort::new(n).with_wide_values(4);
    bench.op_as::<u32>(&op, ("auto", ""), format!("pairs {n} random, 16 bytes"), &operands)?;
    drop((keys_out, values_out));
    let narrow = RadixSort::new(n);
    sort_keys(bench, &narrow, "auto", "random u8", &random(&gpu, n, |b| b as u8)?, n)?;
    sort_keys(bench, &narrow, "auto", "random f16", &random(&gpu, n, half)?, n)?;
    drop(keys);
    let floats = random(&gpu, largest, centred)?;
    sort_keys(bench, &RadixSort::new(largest), "auto", "random", &floats, largest)?;
    drop(floats);
    let equal = random(&gpu, largest, |_| 7u32)?;
    sort_keys(bench, &RadixSort::new(largest), "auto", "equal", &equal, largest)?;
    drop(equal);
    let wide = largest / 4;
    if let Ok(keys) = random(&gpu, wide, |bits| u64::from(bits) * 0x9e37_79b9_7f4a_7c15) {
        sort_keys(bench, &RadixSort::new(wide), "auto", "random", &keys, wide)?;
    }
    Ok(())
}

/// Measures a sort of keys.
fn sort_keys<T: Element>(
    bench: &mut Bench, sort: &RadixSort, variant: &str, what: &str, keys: &Buffer<T>, n: usize,
) -> Result<()>
where
    RadixSort: Op<T>,
{
    let output = bench.gpu.alloc::<T>(n)?;
    bench.op_as::<T>(sort, (variant, ""), format!("keys {n} {what}"), &[keys, &output])
}

/// Orders of keys, and segments of four lengths and of Zipf's.
pub(crate) fn orders(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 26, 1 << 18);
    let keys = random(&bench.gpu, n, |b| b)?;
    let (values, keys_out) = (random(&bench.gpu, n, |b| b)?, bench.gpu.alloc::<u32>(n)?);
    let values_out = bench.gpu.alloc::<u32>(n)?;
    bench.op::<u32>(&Argsort::new(n), n.to_string(), &[&keys, &keys_out])?;
    bench.op::<u32>(&Shuffle::new(n), n.to_string(), &[&keys, &keys_out])?;
    let (points, cells) = (random(&bench.gpu, n, centred)?, bench.gpu.alloc::<u32>(64 * 64)?);
    let op = Histogram2d::new(n, [64, 64], [-1.0; 2], [1.0; 2]);
    bench.op::<f32>(&op, format!("64x64 of {n}"), &[&points, &points, &cells])?;
    let (pixels, of_channels) = (bench.gpu.upload(&vec![99u8; n])?, bench.gpu.alloc::<u32>(3 * 256)?);
    let op = HistogramChannels::new(n / 4, 4, 256).active(3);
    bench.op::<u8>(&op, format!("3 of 4 channels of {}", n / 4), &[&pixels, &of_channels])?;
    drop(pixels);
    let (weights, sums) = (random(&bench.gpu, n, centred)?, bench.gpu.alloc::<f32>(256)?);
    for bins in [64, 256] {
        let op = WeightedHistogram::new(n, bins, -1.0, 1.0);
        bench.op::<f32>(&op, format!("{bins} of {n}"), &[&points, &weights, &sums])?;
    }
    drop((weights, sums));
    let median = bench.gpu.alloc::<u32>(1)?;
    bench.op::<u32>(&NthElement::new(n, n / 2), format!("median of {n}"), &[&keys, &median])?;
    let three = bench.gpu.alloc::<f32>(3)?;
    let quartiles = Quantile::new(n, [0.25, 0.5, 0.75]);
    bench.op::<f32>(&quartiles, format!("quartiles of {n}"), &[&points, &three])?;
    for length in [10, 100, 1000, 1_000_000, 0] {
        // Segment s of Zipf's lengths has n / (20 s) keys.
        let next = |at: usize, s: usize| at + if length > 0 { length } else { (n / (20 * s)).max(1) };
        let mut offsets = vec![0u32];
        let mut at = 0;
        while at < n {
            at = next(at, offsets.len()).min(n);
            offsets.push(at as u32);
        }
        let name = if length > 0 { format!("of {length}") } else { "zipf".to_owned() };
        let (segments, offsets) = (offsets.len() - 1, bench.gpu.upload(&offsets)?);
        let op = SegmentedSort::new(n, segments);
        bench.op::<u32>(&op, format!("{n} {name}"), &[&keys, &offsets, &keys_out])?;
        let pairs = format!("{n} pairs {name}");
        bench.op::<u32>(&op.with_values(), pairs, &[&keys, &offsets, &values, &keys_out, &values_out])?;
    }
    Ok(())
}

/// Sizes, values of k, candidates for the policy of chunks, and inputs that are hard on some step.
pub(crate) fn top_k(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = bench.scale(1 << 28, 1 << 20);
    let x = random(&gpu, largest, centred)?;
    for n in bench.scale(vec![1 << 16, 1 << 20, 1 << 26, 1 << 28], vec![1 << 16, 1 << 20]) {
        let numbers = if n == 1 << 26 { &[1, 100, 1000, 10_000, 1 << 20][..] } else { &[100] };
        for &k in numbers {
            one_top_k(bench, &TopK::new(n, k), &x, k, format!("{k} of {n}"))?;
            let named = ["single", "filter", "radix", "sort"];
            for variant in named.into_iter().filter(|v| k == 100 && (n <= 1 << 20 || *v != "single")) {
                one_top_k(bench, &TopK::new(n, k).variant(variant), &x, k, format!("{k} of {n}"))?;
            }
        }
    }
    let n = bench.scale(1 << 26, 1 << 20);
    for k in [100, 10_000] {
        for chunk in bench.scale(vec![256, 512, 1024, 2048, 4096], Vec::new()) {
            let top = TopK::new(n, k).variant("subgroup").chunk(chunk);
            one_top_k(bench, &top, &x, k, format!("{k} of {n}, chunks of {chunk}"))?;
        }
    }
    drop(x);
    let equal = random(&gpu, n, |_| 7.0f32)?;
    one_top_k(bench, &TopK::new(n, 100), &equal, 100, format!("100 of {n} equal"))?;
    drop(equal);
    let rising: Vec<u32> = (0..n as u32).collect();
    let rising = gpu.upload(&rising)?;
    one_top_k(bench, &TopK::new(n, 100), &rising, 100, format!("100 of {n} rising"))
}

/// Rows of random logits, of rising ones, and values of k.
pub(crate) fn top_k_rows(bench: &mut Bench) -> Result<()> {
    let (rows, n) = bench.scale((4096, 50_257), (16, 5_025));
    let x = random(&bench.gpu, rows * n, centred)?;
    let rising: Vec<f32> = (0..rows * n).map(|i| (i % n) as f32).collect();
    let rising = bench.gpu.upload(&rising)?;
    for k in [1, 10, 50, 256, 1000] {
        let (values, indices) = (bench.gpu.alloc::<f32>(rows * k)?, bench.gpu.alloc::<u32>(rows * k)?);
        let op = TopKRows::new([rows, n], k);
        bench.op::<f32>(&op, format!("{k} of {rows}x{n}"), &[&x, &values, &indices])?;
        if k == 50 {
            bench.op::<f32>(&op, format!("{k} of {rows}x{n} rising"), &[&rising, &values, &indices])?;
            let offsets: Vec<u32> = (0..=rows).map(|row| (row * n) as u32).collect();
            let (op, offsets) = (TopKRows::segments(rows * n, rows, k), bench.gpu.upload(&offsets)?);
            let size = format!("{k} of {rows} segments of {n}");
            bench.op::<f32>(&op, size, &[&x, &offsets, &values, &indices])?;
        }
    }
    Ok(())
}

/// Measures a selection of the largest.
fn one_top_k<T: Element>(bench: &mut Bench, top: &TopK, x: &Buffer<T>, k: usize, size: String) -> Result<()>
where
    TopK: Op<T>,
{
    let (values, indices) = (bench.gpu.alloc::<T>(k)?, bench.gpu.alloc::<u32>(k)?);
    bench.op::<T>(top, size, &[x, &values, &indices])
}
