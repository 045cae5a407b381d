//! Device-wide primitives.

mod support;

use half::f16;
#[cfg(feature = "cuda")]
use support::random_on_cuda;
use support::{Bench, Case, centred, random};
use tilework::prelude::*;
use tilework::primitives::Reducer;
use tilework::program::Cost;
use tilework::{Element, Result};

/// The cases of some ops.
type Group = fn(&mut Bench) -> Result<()>;

fn main() -> Result<()> {
    support::each(family)
}

fn family(bench: &mut Bench) -> Result<()> {
    let groups: [(&str, Group); 8] = [
        ("reduce", reduce),
        ("scan", scan),
        ("segmented-scan", segmented_scan),
        ("reduce-by-key", reduce_by_key),
        ("compact", compact),
        ("histogram", histogram),
        ("sort", sort),
        ("top-k", top_k),
    ];
    for (name, group) in groups {
        if bench.wants(name) {
            group(bench)?;
        }
    }
    Ok(())
}

fn reduce(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = bench.scale(1 << 28, 1 << 20);
    let x = random(&gpu, largest, centred)?;
    for n in bench.scale(vec![1 << 16, 1 << 20, 1 << 24, 1 << 28], vec![1 << 16, 1 << 20]) {
        for variant in Reduce::variants() {
            one(bench, Sum, variant.name, &x, 1, n)?;
        }
    }
    for (rows, n) in bench.scale(
        vec![
            (1 << 4, 1 << 24),
            (1 << 10, 1 << 18),
            (1 << 14, 1 << 14),
            (1 << 18, 1 << 10),
            (1 << 20, 1 << 8),
            (1 << 22, 1 << 6),
            (268_000, 1001),
        ],
        vec![(1 << 10, 1 << 10)],
    ) {
        one(bench, Sum, "coarsened", &x, rows, n)?;
    }
    one(bench, Min, "coarsened", &x, 1, largest)?;
    one(bench, ArgMax, "coarsened", &x, 1, largest)?;
    drop(x);
    let half = random(&gpu, largest, |b| f16::from_f32(centred(b)))?;
    one(bench, Sum, "coarsened", &half, 1, largest)?;
    drop(half);
    let bytes = random(&gpu, largest, |b| b as u8)?;
    one(bench, Sum, "coarsened", &bytes, 1, largest)
}

/// Half of the elements kept, at random; runs of three values.
fn compact(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = bench.scale(1 << 28, 1 << 20);
    let x = random(&gpu, largest, |b| b)?;
    let flags = random(&gpu, largest, |b| (b >> 7) & 1)?;
    let (output, count) = (gpu.alloc::<u32>(largest)?, gpu.alloc::<u32>(1)?);
    let odd = Predicate::custom("fn keep(x: T) -> bool { return (x & 64u) != 0u; }");
    for n in bench.scale(vec![1 << 16, 1 << 20, 1 << 28], vec![1 << 20]) {
        let cost = |bytes: f64| Cost { flop: n as f64, bytes: bytes * n as f64 };
        let (x, flags, y) = (x.slice(..n)?, flags.slice(..n)?, output.slice(..n)?);
        for variant in Select::variants().iter().map(|v| v.name) {
            let case = |op, cost| Case { op, variant, dtype: "u32", size: n.to_string(), cost };
            let by_flags = Select::new(n).variant(variant).plan::<u32>(&gpu)?;
            let c = case("select", cost(10.0));
            bench.device(&c, |rec| by_flags.record(rec, x, flags, y, &count));
            let by_value = Select::by(n, odd.clone()).variant(variant).plan::<u32>(&gpu)?;
            let c = case("select-if", cost(6.0));
            bench.device(&c, |rec| by_value.record_by(rec, x, y, &count));
            let nonzero = Select::by(n, Predicate::NonZero).variant(variant).plan::<u32>(&gpu)?;
            let c = case("select-nonzero", cost(6.0));
            bench.device(&c, |rec| nonzero.record_by(rec, flags, y, &count));
            if Partition::variants().iter().all(|v| v.name != variant) {
                continue;
            }
            let partition = Partition::new(n).variant(variant).plan::<u32>(&gpu)?;
            let c = case("partition", cost(12.0));
            bench.device(&c, |rec| partition.record(rec, x, flags, y, &count));
        }
    }
    drop((x, flags));
    let n = bench.scale(1 << 26, 1 << 20);
    let (x, lengths) = (random(&gpu, n, |b| b % 4)?, gpu.alloc::<u32>(n)?);
    let y = output.slice(..n)?;
    for variant in Unique::variants().iter().map(|v| v.name) {
        // Three of four elements begin a run.
        let case = |op, bytes: f64| {
            let cost = Cost { flop: n as f64, bytes: bytes * n as f64 };
            Case { op, variant, dtype: "u32", size: n.to_string(), cost }
        };
        let unique = Unique::new(n).variant(variant).plan::<u32>(&gpu)?;
        bench.device(&case("unique", 7.0), |rec| unique.record(rec, &x, y, &count));
        let runs = RunLength::new(n).variant(variant).plan::<u32>(&gpu)?;
        bench.device(&case("run-length", 10.0), |rec| runs.record(rec, &x, y, &lengths, &count));
    }
    Ok(())
}

/// Measures one reduction, if the device has the variant.
fn one<T: Element, O: Reducer<T>>(
    bench: &mut Bench,
    op: O,
    variant: &str,
    x: &Buffer<T>,
    rows: usize,
    n: usize,
) -> Result<()> {
    let name = op.operator().name();
    let Ok(plan) = Reduce::rows(op, rows, n).variant(variant).plan::<T>(&bench.gpu) else { return Ok(()) };
    let output = bench.gpu.alloc::<O::Output>(rows)?;
    let size = if rows == 1 { format!("{name} {n}") } else { format!("{name} {rows}x{n}") };
    let case = Case { op: "reduce", variant, dtype: T::DTYPE.name(), size, cost: plan.program().cost };
    let input = x.slice(..rows * n)?;
    bench.device(&case, |rec| plan.record(rec, input, &output));
    Ok(())
}

/// How a benchmark's elements are spread: all alike, as likely, or number k about in proportion to 1 / k.
const SPREADS: [&str; 3] = ["random", "equal", "zipf"];

/// A fraction of 1 from random bits.
fn spread(kind: &str, bits: u32, bins: f64) -> f64 {
    let fraction = f64::from(bits) / 4_294_967_296.0;
    match kind {
        "random" => fraction,
        "equal" => 0.3,
        // From 1 to the number of bins, evenly in orders of magnitude.
        _ => ((fraction * bins.ln()).exp() - 1.0) / bins,
    }
}

/// As `random`, of few values again and again: a count does not see that, and the host is done sooner.
fn repeated<T: Element>(gpu: &Gpu, n: usize, value: impl Fn(u32) -> T) -> Result<Buffer<T>> {
    let buffer = gpu.alloc::<T>(n)?;
    let part: Vec<T> = (0..n.min(1 << 22) as u32).map(|i| value(hash(i))).collect();
    for start in (0..n).step_by(part.len()) {
        let len = part.len().min(n - start);
        buffer.slice(start..start + len)?.write(&part[..len])?;
    }
    Ok(buffer)
}

/// Bits that look random: C. Wellons's lowbias32.
fn hash(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

fn histogram(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = bench.scale(1 << 28, 1 << 20);
    let lengths = bench.scale(vec![1 << 16, 1 << 20, 1 << 28], vec![1 << 16, 1 << 20]);
    for kind in SPREADS {
        let x = repeated(&gpu, largest, |b| (spread(kind, b, 256.0) * 256.0) as u8)?;
        for &n in &lengths {
            for variant in Histogram::variants() {
                // The baselines take long where all elements meet in one word.
                if kind == "random" || n < 1 << 21 || !variant.name.starts_with("global") {
                    count(bench, variant.name, kind, &x, &Histogram::new(n, 256))?;
                }
            }
        }
    }
    for bins in [1024, 8192, 1 << 14, 1 << 16, 1 << 18, 1 << 20] {
        for kind in SPREADS {
            let scale = 4_294_967_296.0;
            let x = repeated(&gpu, largest, |b| (spread(kind, b, bins as f64) * scale) as u32)?;
            let desc = |n| Histogram::new(n, bins).range(0.0, scale);
            for &n in &lengths {
                count(bench, "auto", kind, &x, &desc(n))?;
            }
            for variant in ["coarsened", "aggregated", "multipass", "cached", "partitioned"] {
                if variant != "multipass" || bins <= 1 << 18 {
                    count(bench, variant, kind, &x, &desc(largest))?;
                }
            }
            if kind == "random" {
                count(bench, "global", kind, &x, &desc(largest))?;
            }
        }
    }
    for kind in SPREADS {
        let x = repeated(&gpu, largest, |b| spread(kind, b, 1000.0) as f32)?;
        for &n in &lengths {
            count(bench, "auto", kind, &x, &Histogram::new(n, 1000).range(0.0, 1.0))?;
        }
        let edges: Vec<f64> = (0..=256).map(|i| (f64::from(i) / 256.0).powi(2)).collect();
        count(bench, "auto", &format!("{kind} edges"), &x, &Histogram::with_edges(largest, edges))?;
    }
    Ok(())
}

/// Measures one histogram, if its variant takes that number of bins.
fn count<T: Element>(
    bench: &mut Bench,
    variant: &str,
    kind: &str,
    x: &Buffer<T>,
    desc: &Histogram,
) -> Result<()> {
    let Ok(plan) = desc.clone().variant(variant).plan::<T>(&bench.gpu) else { return Ok(()) };
    let counts = bench.gpu.alloc::<u32>(desc.bins())?;
    let n = plan.program().operands[0].len;
    let size = format!("{} bins {kind} {n}", desc.bins());
    let case = Case { op: "histogram", variant, dtype: T::DTYPE.name(), size, cost: plan.program().cost };
    let input = x.slice(..n)?;
    bench.device(&case, |rec| plan.record(rec, input, &counts));
    Ok(())
}

fn sort(bench: &mut Bench) -> Result<()> {
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
        sort_pairs(bench, &RadixSort::new(n), "auto", "random", &keys, n)?;
    }
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

/// Measures one sort of keys, if the device can run it.
fn sort_keys<T: Element>(
    bench: &mut Bench,
    sort: &RadixSort,
    variant: &str,
    what: &str,
    keys: &Buffer<T>,
    n: usize,
) -> Result<()> {
    let Ok(plan) = sort.plan::<T>(&bench.gpu) else { return Ok(()) };
    let output = bench.gpu.alloc::<T>(n)?;
    let size = format!("keys {n} {what}");
    let case = Case { op: "sort", variant, dtype: T::DTYPE.name(), size, cost: plan.program().cost };
    let input = keys.slice(..n)?;
    bench.device(&case, |rec| plan.record(rec, input, &output));
    Ok(())
}

/// The same with values, which are the keys again.
fn sort_pairs(
    bench: &mut Bench,
    sort: &RadixSort,
    variant: &str,
    what: &str,
    keys: &Buffer<u32>,
    n: usize,
) -> Result<()> {
    let Ok(plan) = sort.clone().with_values().plan::<u32>(&bench.gpu) else { return Ok(()) };
    let (keys_out, values_out) = (bench.gpu.alloc::<u32>(n)?, bench.gpu.alloc::<u32>(n)?);
    let size = format!("pairs {n} {what}");
    let case = Case { op: "sort", variant, dtype: "u32", size, cost: plan.program().cost };
    let input = keys.slice(..n)?;
    bench.device(&case, |rec| plan.with_values(input, &values_out).record(rec, input, &keys_out));
    Ok(())
}

fn scan(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = bench.scale(1 << 28, 1 << 20);
    let (x, y) = (random(&gpu, largest, |b| b)?, gpu.alloc::<u32>(largest)?);
    for n in bench.scale(vec![1 << 16, 1 << 20, 1 << 24, 1 << 28], vec![1 << 16, 1 << 20]) {
        let fast = ["hierarchical", "lookback"];
        // The ladder is for reading, and slow: two sizes show it.
        let wanted = |name| fast.contains(&name) || n == 1 << 20 || n == largest;
        for variant in Scan::variants().iter().filter(|v| wanted(v.name)) {
            one_scan(bench, &Scan::new(Sum, n).exclusive().variant(variant.name), &x, &y, n.to_string())?;
        }
    }
    let last = CustomOp::new(
        "fn op_identity() -> T { return 0u; }
         fn op_combine(a: T, b: T) -> T { return select(b, a, b == 0u); }",
    );
    for rows in bench.scale(vec![1 << 4, 1 << 14, 1 << 22], vec![1 << 10]) {
        let n = largest / rows;
        one_scan(bench, &Scan::rows(Sum, rows, n), &x, &y, format!("rows {rows}x{n}"))?;
    }
    one_scan(bench, &Scan::new(Sum, largest).reverse(), &x, &y, format!("reverse {largest}"))?;
    one_scan(bench, &Scan::new(Max, largest), &x, &y, format!("max {largest}"))?;
    one_scan(bench, &Scan::new(last, largest), &x, &y, format!("custom {largest}"))?;
    drop((x, y));
    let (x, y) = (random(&gpu, largest, centred)?, gpu.alloc::<f32>(largest)?);
    for n in bench.scale(vec![1 << 16, 1 << 20, 1 << 28], vec![1 << 20]) {
        one_scan(bench, &Scan::new(Sum, n).exclusive(), &x, &y, n.to_string())?;
        one_scan(bench, &Scan::new(Sum, n).exclusive().deterministic(), &x, &y, format!("same bits {n}"))?;
    }
    one_scan(bench, &Scan::new(Min, largest), &x, &y, format!("min {largest}"))?;
    drop((x, y));
    let (x, y) = (random(&gpu, largest, |b| f16::from_f32(centred(b)))?, gpu.alloc::<f16>(largest)?);
    one_scan(bench, &Scan::new(Sum, largest).exclusive(), &x, &y, largest.to_string())?;
    #[cfg(feature = "cuda")]
    scan_on_cuda(bench)?;
    Ok(())
}

/// Every variant by CUDA.
#[cfg(feature = "cuda")]
fn scan_on_cuda(bench: &mut Bench) -> Result<()> {
    let Some(cuda) = bench.cuda.clone() else { return Ok(()) };
    let largest = 1 << 28;
    let stream = cuda.stream()?;
    let (x, y) = (random_on_cuda(&cuda, largest, |b| b)?, cuda.alloc::<u32>(largest)?);
    for n in [1 << 16, 1 << 20, 1 << 24, largest] {
        for variant in Scan::cuda_variants().iter().filter(|v| cuda.profile().runs(v.arch)) {
            let plan = Scan::new(Sum, n).exclusive().variant(variant.name).plan::<u32>(&cuda)?;
            let cost = plan.program().cost;
            let case = Case { op: "scan", variant: variant.name, dtype: "u32", size: n.to_string(), cost };
            let (x, y) = (x.slice(..n)?, y.slice(..n)?);
            bench.stream(&case, &stream, |stream| plan.run(stream, x, y));
        }
    }
    Ok(())
}

/// Measures one scan, if the device has the variant. The first row of a size is the exclusive sum.
fn one_scan<T: Element, O: Reducer<T, Output = T>>(
    bench: &mut Bench,
    scan: &Scan<O>,
    x: &Buffer<T>,
    y: &Buffer<T>,
    size: String,
) -> Result<()> {
    let Ok(plan) = scan.plan::<T>(&bench.gpu) else { return Ok(()) };
    let (variant, cost, n) = (plan.program().variant(), plan.program().cost, plan.program().operands[0].len);
    let case = Case { op: "scan", variant, dtype: T::DTYPE.name(), size, cost };
    let (input, output) = (x.slice(..n)?, y.slice(..n)?);
    bench.device(&case, |rec| plan.record(rec, input, output));
    Ok(())
}

fn segmented_scan(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let n = bench.scale(1 << 28, 1 << 20);
    let (x, y) = (random(&gpu, n, centred)?, gpu.alloc::<f32>(n)?);
    for length in [1, 100, 100_000, u32::MAX] {
        let heads = random(&gpu, n, |b| u32::from(b % length == 0))?;
        for variant in SegmentedScan::variants() {
            let Ok(plan) = SegmentedScan::new(Sum, n).variant(variant.name).plan::<f32>(&gpu) else {
                continue;
            };
            let size = if length == u32::MAX {
                format!("{n} one segment")
            } else {
                format!("{n} segments of {length}")
            };
            let case = Case {
                op: "segmented-scan",
                variant: variant.name,
                dtype: "f32",
                size,
                cost: plan.program().cost,
            };
            bench.device(&case, |rec| plan.record(rec, &x, &heads, &y));
        }
    }
    Ok(())
}

/// Average lengths of runs, and tiles from which to choose the policy.
fn reduce_by_key(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = bench.scale(1 << 28, 1 << 20);
    let (x, y) = (random(&gpu, largest, centred)?, gpu.alloc::<f32>(largest)?);
    let (keys_out, count) = (gpu.alloc::<u32>(largest)?, gpu.alloc::<u32>(1)?);
    for length in [8, 1000, u32::MAX] {
        let run = std::cell::Cell::new(0u32);
        let next = |b: u32| {
            run.set(run.get().wrapping_add(u32::from(b.is_multiple_of(length))));
            run.get()
        };
        let keys = random(&gpu, largest, next)?;
        let heads = random(&gpu, largest, |b| u32::from(b % length == 0))?;
        let small = if length == 8 { vec![1 << 16, 1 << 20] } else { Vec::new() };
        for n in small.into_iter().chain([largest]) {
            let what = if length == u32::MAX { "one run".to_owned() } else { format!("runs of {length}") };
            for variant in ReduceByKey::variants() {
                let tiles = [None, Some((256, 4)), Some((512, 2)), Some((512, 4)), Some((1024, 4))];
                let tiles = if length == 8 { bench.scale(&tiles[..], &tiles[..1]) } else { &tiles[..1] };
                for &tile in tiles.iter().filter(|t| t.is_none() || n == largest) {
                    let mut by_key = ReduceByKey::new(Sum, n).variant(variant.name);
                    let by_heads = SegmentedReduce::new(Sum, n).variant(variant.name);
                    let mut size = format!("{n} {what}");
                    if let Some((workgroup_size, quads)) = tile {
                        by_key = by_key.tile(workgroup_size, quads);
                        size += &format!(", tile {workgroup_size}x{quads}");
                    }
                    let Ok(plan) = by_key.plan::<f32>(&gpu) else { continue };
                    let cost = plan.program().cost;
                    let case =
                        |op| Case { op, variant: variant.name, dtype: "f32", size: size.clone(), cost };
                    let (k, v) = (keys.slice(..n)?, x.slice(..n)?);
                    let (ko, vo) = (keys_out.slice(..n)?, y.slice(..n)?);
                    bench.device(&case("reduce-by-key"), |rec| plan.record(rec, k, v, ko, vo, &count));
                    let Ok(plan) = by_heads.plan::<f32>(&gpu) else { continue };
                    if tile.is_some() {
                        continue;
                    }
                    let h = heads.slice(..n)?;
                    bench.device(&case("segmented-reduce"), |rec| plan.record(rec, v, h, vo, &count));
                }
            }
        }
    }
    Ok(())
}

/// Sizes, numbers of best, chunk lengths to choose the policy from, and inputs that are hard on some step.
fn top_k(bench: &mut Bench) -> Result<()> {
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

/// Measures one selection of the largest, if the device can run it.
fn one_top_k<T: Element>(bench: &mut Bench, top: &TopK, x: &Buffer<T>, k: usize, size: String) -> Result<()> {
    let Ok(plan) = top.plan::<T>(&bench.gpu) else { return Ok(()) };
    let (values, indices) = (bench.gpu.alloc::<T>(k)?, bench.gpu.alloc::<u32>(k)?);
    let (variant, cost, n) = (plan.program().variant(), plan.program().cost, plan.program().operands[0].len);
    let case = Case { op: "top-k", variant, dtype: T::DTYPE.name(), size, cost };
    let input = x.slice(..n)?;
    bench.device(&case, |rec| plan.record(rec, input, &values, &indices));
    Ok(())
}
