//! Device-wide primitives.

mod support;

use half::f16;
use support::{Bench, Case, centred, random};
use tilework::prelude::*;
use tilework::primitives::Reducer;
use tilework::{Element, Result};

fn main() -> Result<()> {
    let Some(mut bench) = Bench::open() else { return Ok(()) };
    reduce(&mut bench)?;
    sort(&mut bench)?;
    bench.finish();
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
    // Tiles to choose the policy from: invocations of a workgroup, keys of an invocation.
    for tile in bench.scale(
        vec![(256, 16), (256, 20), (384, 14), (384, 20), (512, 10), (512, 14), (512, 16), (1024, 6)],
        Vec::new(),
    ) {
        let sort = RadixSort::new(largest).variant("onesweep").tile(tile.0, tile.1);
        let what = format!("random, tile {}x{}", tile.0, tile.1);
        sort_keys(bench, &sort, "onesweep", &what, &keys, largest)?;
        sort_pairs(bench, &sort, "onesweep", &what, &keys, largest)?;
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
    bench.device(&case, |rec| plan.record(rec, input, input, &keys_out, &values_out));
    Ok(())
}
