//! Device-wide primitives.

#[path = "primitives/order.rs"]
mod order;
mod support;

use half::f16;
#[cfg(feature = "cuda")]
use support::random_on_cuda;
use support::{Bench, Case, Operand, centred, half, random};
use tilework::prelude::*;
use tilework::primitives::Reducer;
use tilework::program::{Cost, Op};
use tilework::{Element, Result};

fn main() -> Result<()> {
    support::groups(&[
        ("reduce", reduce),
        ("reduce-state", reduce_state),
        ("scan", scan),
        ("states", states),
        ("segmented-scan", segmented_scan),
        ("reduce-by-key", reduce_by_key),
        ("compact", compact),
        ("histogram", histogram),
        ("sort", order::sort),
        ("orders", order::orders),
        ("offsets", offsets),
        ("top-k", order::top_k),
        ("top-k-rows", order::top_k_rows),
        ("trees", trees),
        ("random", random_numbers),
        ("gather", gather),
        ("scatter", scatter),
        ("bounds", order::bounds),
        ("merges", order::merges),
        ("vectors", vectors),
        ("made", made),
    ])
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
    let half = random(&gpu, largest, half)?;
    one(bench, Sum, "coarsened", &half, 1, largest)?;
    drop(half);
    let bytes = random(&gpu, largest, |b| b as u8)?;
    one(bench, Sum, "coarsened", &bytes, 1, largest)
}

/// Operators over a state, in one row and in many.
fn reduce_state(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let n = bench.scale(1 << 26, 1 << 18);
    let x = random(&gpu, n, centred)?;
    for (rows, n) in [(1, n), (n >> 10, 1 << 10)] {
        for v in Reduce::variants() {
            state(bench, MinMax, v.name, &x, rows, n)?;
            state(bench, MeanVariance::population(), v.name, &x, rows, n)?;
            state(bench, LogSumExp, v.name, &x, rows, n)?;
            // An element is a map of two numbers.
            state(bench, Affine::maps(), v.name, &x, rows, n / 2)?;
        }
    }
    Ok(())
}

/// Measures a reduction by an operator over a state, if the variant takes it.
fn state<O>(bench: &mut Bench, op: O, variant: &str, x: &Buffer<f32>, rows: usize, n: usize) -> Result<()>
where
    O: Reducer<f32, Output = f32>,
{
    let size = format!("{} {rows}x{n}", op.operator().name());
    let op = Reduce::rows(op, rows, n).variant(variant);
    let Ok(program) = Op::<f32>::lower(&op, bench.gpu.profile()) else { return Ok(()) };
    let results = program.operands.last().map_or(0, |operand| operand.len);
    let output = bench.gpu.alloc::<f32>(results)?;
    bench.op::<f32>(&op, size, &[x, &output])
}

/// Selections that keep a random half of the elements, and runs.
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
        let counts = gpu.alloc::<u32>(3)?;
        let by_third = "fn part(x: T) -> u32 { return x % 3u; }";
        for variant in SplitParts::variants().iter().map(|v| v.name) {
            if let Ok(split) = SplitParts::by(n, 3, by_third).variant(variant).plan::<u32>(&gpu) {
                let c = Case { op: "split-parts", variant, dtype: "u32", size: format!("3 of {n}"), cost: cost(8.0) };
                bench.device(&c, |rec| split.record_by(rec, x, y, &counts));
            }
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
        let by_key = UniqueByKey::new(n).variant(variant).plan::<u32>(&gpu)?;
        bench.device(&case("unique-by-key", 13.0), |rec| by_key.record(rec, &x, &x, y, &lengths, &count));
    }
    Ok(())
}

/// Distributions of random numbers.
fn random_numbers(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = bench.scale(1 << 28, 1 << 20);
    let (floats, words) = (gpu.alloc::<f32>(largest)?, gpu.alloc::<u32>(largest)?);
    for n in bench.scale(vec![1 << 20, 1 << 28], vec![1 << 20]) {
        let case = |name: &str, dtype| Case {
            op: "random",
            variant: "philox",
            dtype,
            size: format!("{name} {n}"),
            cost: Cost { flop: 75.0 * n as f64, bytes: 4.0 * n as f64 },
        };
        for (name, distribution) in [
            ("uniform", Distribution::Uniform),
            ("normal", Distribution::Normal { mean: 0.0, deviation: 1.0 }),
            ("log-normal", Distribution::LogNormal { mean: 0.0, deviation: 1.0 }),
            ("exponential", Distribution::Exponential { mean: 1.0 }),
        ] {
            let plan = Random::new(distribution, n).plan::<f32>(&gpu)?;
            let y = floats.slice(..n)?;
            bench.device(&case(name, "f32"), |rec| plan.record(rec, y));
        }
        for (name, distribution) in [
            ("bits", Distribution::Bits),
            ("integers", Distribution::Integers { low: 1, high: 7 }),
            ("poisson", Distribution::Poisson { mean: 10.0 }),
        ] {
            let plan = Random::new(distribution, n).plan::<u32>(&gpu)?;
            let y = words.slice(..n)?;
            bench.device(&case(name, "u32"), |rec| plan.record(rec, y));
        }
        let weights: Vec<f64> = (1..1000).map(|k| 1.0 / f64::from(k)).collect();
        bench.op::<u32>(&Categorical::new(&weights, n), format!("999 weights {n}"), &[&words])?;
    }
    Ok(())
}

/// Random tokens' embeddings, a projection's heads from token order to head order, and rows of 16 and 4 bytes.
fn gather(bench: &mut Bench) -> Result<()> {
    let large = [(30522, 384, 1 << 18), (1 << 20, 64, 1 << 20), (1 << 24, 4, 1 << 24), (1 << 24, 1, 1 << 24)];
    let small = [(1000, 384, 512), (4096, 64, 4096), (4096, 4, 4096), (4096, 1, 4096)];
    for (rows, n, count) in bench.scale(large, small) {
        let numbers: Vec<u32> = (0..count as u32).map(|i| i.wrapping_mul(0x9e37_79b9) % rows as u32).collect();
        let (table, indices) = (random(&bench.gpu, rows * n, centred)?, bench.gpu.upload(&numbers)?);
        let output = bench.gpu.alloc::<f32>(count * n)?;
        let op = Gather::new([rows, n], count);
        bench.op::<f32>(&op, format!("{count} of {rows}x{n}"), &[&table, &indices, &output])?;
    }
    Ok(())
}

/// Rows of 4 and 16 bytes at random places, stored in one pass or two, and added.
fn scatter(bench: &mut Bench) -> Result<()> {
    let count = bench.scale(1 << 24, 1 << 16);
    // A permutation: an odd factor modulo a power of two.
    let numbers: Vec<u32> = (0..count as u32).map(|i| i.wrapping_mul(0x9e37_79b9) % count as u32).collect();
    let indices = bench.gpu.upload(&numbers)?;
    for n in [1, 4] {
        let (x, into) = (random(&bench.gpu, count * n, centred)?, random(&bench.gpu, count * n, centred)?);
        for (name, op) in [("set", ScatterOp::Set), ("add", ScatterOp::Add)] {
            let scatter = Scatter::new(op, [count, n], count);
            bench.op::<f32>(&scatter, format!("{name} {count}x{n}"), &[&x, &indices, &into])?;
        }
        let distinct = Scatter::new(ScatterOp::Set, [count, n], count).distinct();
        bench.op::<f32>(&distinct, format!("distinct {count}x{n}"), &[&x, &indices, &into])?;
    }
    Ok(())
}

/// Reductions of BLAS level 1.
fn vectors(bench: &mut Bench) -> Result<()> {
    let largest = bench.scale(1 << 28, 1 << 20);
    let (x, y) = (random(&bench.gpu, largest, centred)?, random(&bench.gpu, largest, centred)?);
    let (result, position) = (bench.gpu.alloc::<f32>(1)?, bench.gpu.alloc::<u32>(1)?);
    for n in bench.scale(vec![1 << 16, 1 << 28], vec![1 << 16, 1 << 20]) {
        bench.op::<f32>(&Dot::new(n), format!("{n}"), &[&x, &y, &result])?;
        bench.op::<f32>(&Nrm2::new(n), format!("{n}"), &[&x, &result])?;
        bench.op::<f32>(&Asum::new(n), format!("{n}"), &[&x, &result])?;
        bench.op::<f32>(&Iamax::new(n), format!("{n}"), &[&x, &position])?;
        bench.op::<f32>(&Iamin::new(n), format!("{n}"), &[&x, &position])?;
    }
    Ok(())
}

/// Vectors made from another of the same length.
fn made(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 28, 1 << 20);
    let (x, y) = (random(&bench.gpu, n, centred)?, bench.gpu.alloc::<f32>(n)?);
    bench.op::<f32>(&AdjacentDifference::new(n), format!("{n}"), &[&x, &y])?;
    bench.op::<f32>(&Reverse::new(n), format!("{n}"), &[&x, &y])?;
    bench.op::<f32>(&Rotate::new(n, 12345), format!("{n} by 12345"), &[&x, &y])
}

/// Work lists, and trees whose levels are made from them: points in 16 clusters, and a field with ripples.
fn trees(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let n = bench.scale(1 << 24, 1 << 16);
    let (items, flags) = (random(&gpu, n, |b| b)?, random(&gpu, n, |b| (b >> 7) & 1)?);
    let length = gpu.upload(&[n as u32])?;
    let (list, children, wanted) = (gpu.alloc::<u32>(n)?, gpu.alloc::<u32>(1)?, gpu.alloc::<u32>(1)?);
    for variant in Frontier::variants() {
        let op = Frontier::new(n).children(4).variant(variant.name);
        bench.op::<u32>(&op, n.to_string(), &[&items, &flags, &length, &list, &children, &wanted])?;
    }
    drop((items, flags, list));
    let n = bench.scale(1 << 20, 1 << 14);
    let spread = |x: u32| (x % 1009) as f32 * (x / 1009 % 1013) as f32 / (1009.0 * 1013.0);
    let points: Vec<f32> = (0..2 * n as u32)
        .map(|i| (i / 2 % 16 * (3 + 4 * (i % 2)) % 16) as f32 + spread(i.wrapping_mul(0x9e37_79b9) >> 8))
        .collect();
    let points = gpu.upload(&points)?;
    for variant in Quadtree::variants() {
        let op = Quadtree::new(n).depth(12).variant(variant.name);
        let (nodes, count) = (gpu.alloc::<u32>(6 * op.max_nodes())?, gpu.alloc::<u32>(1)?);
        bench.op::<f32>(&op, format!("{n} points"), &[&points, &nodes, &count])?;
    }
    let field = "fn field(p: vec2<f32>) -> f32 {
        let r = distance(p, vec2<f32>(0.3, 0.4));
        return cos(100.0 * r) * exp(-5.0 * r);
    }";
    let depth = bench.scale(10, 6);
    for variant in AdaptiveGrid::variants() {
        let op = AdaptiveGrid::of_function(field).levels(3, depth).variant(variant.name);
        let (nodes, values) = (gpu.alloc::<u32>(4 * op.max_nodes())?, gpu.alloc::<f32>(2 * op.max_nodes())?);
        bench.op::<f32>(&op, format!("levels 3 to {depth}"), &[&nodes, &values, &wanted])?;
    }
    Ok(())
}

/// Operators over a state: a copy of pairs has 16 bytes an element.
fn states(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let n = bench.scale(1 << 27, 1 << 20);
    let (x, y) = (random(&gpu, 2 * n, centred)?, gpu.alloc::<f32>(2 * n)?);
    let (keys_out, count) = (gpu.alloc::<u32>(n)?, gpu.alloc::<u32>(1)?);
    let keys = random(&gpu, n, |b| u32::from(b % 100 == 0))?;
    macro_rules! each {
        ($($op:expr),*) => {$({
            let size = format!("{} {n}", Reducer::<f32>::operator(&$op).name());
            bench.op::<f32>(&Reduce::new($op, n), &size, &[&x, &y])?;
            for variant in ["hierarchical", "lookback"] {
                bench.op::<f32>(&Scan::new($op, n).variant(variant), &size, &[&x, &y])?;
                let segmented = SegmentedScan::new($op, n).variant(variant);
                bench.op::<f32>(&segmented, format!("{size} segments of 100"), &[&x, &keys, &y])?;
                let (by_heads, by_key) = (SegmentedReduce::new($op, n), ReduceByKey::new($op, n));
                bench.op::<f32>(&by_heads.variant(variant), &size, &[&x, &keys, &y, &count])?;
                bench.op::<f32>(&by_key.variant(variant), &size, &[&keys, &x, &keys_out, &y, &count])?;
            }
        })*};
    }
    each!(MinMax, MeanVariance::population(), LogSumExp, Affine::maps(), Affine::recurrence());
    // A function of each element before the sum, as Thrust's transform_reduce and transform_inclusive_scan.
    let squares = StateOp::new(
        "struct State { sum: f32 }
         fn state_identity() -> State { return State(0.0); }
         fn state_of(x: T) -> State { return State(x * x); }
         fn state_combine(a: State, b: State) -> State { return State(a.sum + b.sum); }
         fn state_result(s: State) -> T { return s.sum; }",
    )
    .commutative();
    let n = 2 * n;
    bench.op::<f32>(&Reduce::new(squares.clone(), n), format!("squares {n}"), &[&x, &y])?;
    bench.op::<f32>(&Scan::new(squares, n), format!("squares {n}"), &[&x, &y])
}

/// Measures a reduction.
fn one<T: Element, O: Reducer<T>>(
    bench: &mut Bench, op: O, variant: &str, x: &Buffer<T>, rows: usize, n: usize,
) -> Result<()> {
    let name = op.operator().name();
    let size = if rows == 1 { format!("{name} {n}") } else { format!("{name} {rows}x{n}") };
    let output = bench.gpu.alloc::<O::Output>(rows)?;
    bench.op::<T>(&Reduce::rows(op, rows, n).variant(variant), size, &[x, &output])
}

/// Distributions of a histogram's elements: uniform, all equal, or bin k in proportion to 1 / k.
const SPREADS: [&str; 3] = ["random", "equal", "zipf"];

/// Returns a number in [0, 1) with this distribution.
fn spread(kind: &str, bits: u32, bins: f64) -> f64 {
    let fraction = f64::from(bits) / 4_294_967_296.0;
    match kind {
        "random" => fraction,
        "equal" => 0.3,
        // Log-uniform from 1 to the number of bins.
        _ => ((fraction * bins.ln()).exp() - 1.0) / bins,
    }
}

/// As [`random`], but repeats its values, which saves time on the host and does not change a histogram's work.
fn repeated<T: Element>(gpu: &Gpu, n: usize, value: impl Fn(u32) -> T) -> Result<Buffer<T>> {
    let buffer = gpu.alloc::<T>(n)?;
    let part: Vec<T> = (0..n.min(1 << 22) as u32).map(|i| value(hash(i))).collect();
    for start in (0..n).step_by(part.len()) {
        let len = part.len().min(n - start);
        buffer.slice(start..start + len)?.write(&part[..len])?;
    }
    Ok(buffer)
}

/// Pseudo-random bits: C. Wellons's lowbias32.
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
                // The baselines are slow if all elements fall into one word.
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

/// Measures a histogram.
fn count<T: Element>(bench: &mut Bench, variant: &str, kind: &str, x: &Buffer<T>, desc: &Histogram) -> Result<()> {
    let counts = bench.gpu.alloc::<u32>(desc.bins())?;
    let op = desc.clone().variant(variant);
    let Ok(program) = Op::<T>::lower(&op, bench.gpu.profile()) else { return Ok(()) };
    let size = format!("{} bins {kind} {}", desc.bins(), program.operands[0].len);
    bench.op_as::<T>(&op, (variant, ""), size, &[x, &counts])
}

fn scan(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = bench.scale(1 << 28, 1 << 20);
    let (x, y) = (random(&gpu, largest, |b| b)?, gpu.alloc::<u32>(largest)?);
    for n in bench.scale(vec![1 << 16, 1 << 20, 1 << 24, 1 << 28], vec![1 << 16, 1 << 20]) {
        let fast = ["hierarchical", "lookback"];
        // The teaching variants are slow: two sizes suffice.
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
    let (x, y) = (random(&gpu, largest, half)?, gpu.alloc::<f16>(largest)?);
    one_scan(bench, &Scan::new(Sum, largest).exclusive(), &x, &y, largest.to_string())?;
    #[cfg(feature = "cuda")]
    scan_on_cuda(bench)?;
    Ok(())
}

/// Every variant on CUDA.
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

/// Measures a scan. The first row of a size is the exclusive sum.
fn one_scan<T: Element, O: Reducer<T, Output = T>>(
    bench: &mut Bench, scan: &Scan<O>, x: &Buffer<T>, y: &Buffer<T>, size: String,
) -> Result<()> {
    bench.op::<T>(scan, size, &[x, y])
}

fn segmented_scan(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let n = bench.scale(1 << 28, 1 << 20);
    let (x, y) = (random(&gpu, n, centred)?, gpu.alloc::<f32>(n)?);
    for length in [1, 100, 100_000, u32::MAX] {
        let heads = random(&gpu, n, |b| u32::from(b % length == 0))?;
        for variant in SegmentedScan::variants() {
            let size = match length {
                u32::MAX => format!("{n} one segment"),
                _ => format!("{n} segments of {length}"),
            };
            bench.op::<f32>(&SegmentedScan::new(Sum, n).variant(variant.name), size, &[&x, &heads, &y])?;
        }
    }
    for length in [8, 1000] {
        let run = std::cell::Cell::new(0u32);
        let keys = random(&gpu, n, |b| {
            run.set(run.get().wrapping_add(u32::from(b.is_multiple_of(length))));
            run.get()
        })?;
        for variant in ScanByKey::variants() {
            let size = format!("{n} runs of {length}");
            bench.op::<f32>(&ScanByKey::new(Sum, n).variant(variant.name), size, &[&keys, &x, &y])?;
        }
    }
    Ok(())
}

/// Several average lengths of runs, and candidates for the policy of tiles.
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
                    if let Some((workgroup_size, vec4s)) = tile {
                        by_key = by_key.tile(workgroup_size, vec4s);
                        size += &format!(", tile {workgroup_size}x{vec4s}");
                    }
                    let buffers: [&dyn Operand; 5] = [&keys, &x, &keys_out, &y, &count];
                    bench.op::<f32>(&by_key, &size, &buffers)?;
                    if tile.is_none() {
                        bench.op::<f32>(&by_heads, &size, &[&x, &heads, &y, &count])?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Sums and prefixes of segments of 10 and 1000 elements.
fn offsets(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 26, 1 << 18);
    let (x, output) = (random(&bench.gpu, n, centred)?, bench.gpu.alloc::<f32>(n)?);
    for length in [10, 1000] {
        let segments = n / length;
        let offsets: Vec<u32> = (0..=segments).map(|i| (i * length) as u32).collect();
        let (offsets, results) = (bench.gpu.upload(&offsets)?, bench.gpu.alloc::<f32>(segments)?);
        let name = format!("{n} of {length}");
        bench.op::<f32>(&ScanOffsets::new(Sum, n, segments), &name, &[&x, &offsets, &output])?;
        bench.op::<f32>(&ReduceOffsets::new(Sum, n, segments), &name, &[&x, &offsets, &results])?;
    }
    Ok(())
}
