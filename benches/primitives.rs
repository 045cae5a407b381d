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
    scan(&mut bench)?;
    segmented_scan(&mut bench)?;
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

fn scan(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = bench.scale(1 << 28, 1 << 20);
    let (x, y) = (random(&gpu, largest, |b| b)?, gpu.alloc::<u32>(largest)?);
    for n in bench.scale(vec![1 << 16, 1 << 20, 1 << 24, 1 << 28], vec![1 << 16, 1 << 20]) {
        for variant in Scan::variants() {
            one_scan(bench, &Scan::new(Sum, n).exclusive(true).variant(variant.name), &x, &y, n.to_string())?;
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
    one_scan(bench, &Scan::new(Sum, largest).reverse(true), &x, &y, format!("reverse {largest}"))?;
    one_scan(bench, &Scan::new(Max, largest), &x, &y, format!("max {largest}"))?;
    one_scan(bench, &Scan::new(last, largest), &x, &y, format!("custom {largest}"))?;
    drop((x, y));
    let (x, y) = (random(&gpu, largest, centred)?, gpu.alloc::<f32>(largest)?);
    for n in bench.scale(vec![1 << 16, 1 << 20, 1 << 28], vec![1 << 20]) {
        one_scan(bench, &Scan::new(Sum, n).exclusive(true), &x, &y, n.to_string())?;
        one_scan(
            bench,
            &Scan::new(Sum, n).exclusive(true).deterministic(true),
            &x,
            &y,
            format!("same bits {n}"),
        )?;
    }
    one_scan(bench, &Scan::new(Min, largest), &x, &y, format!("min {largest}"))?;
    drop((x, y));
    let (x, y) = (random(&gpu, largest, |b| f16::from_f32(centred(b)))?, gpu.alloc::<f16>(largest)?);
    one_scan(bench, &Scan::new(Sum, largest).exclusive(true), &x, &y, largest.to_string())
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
    let (variant, cost, n) = (plan.program().variant, plan.program().cost, plan.program().operands[0].len);
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
