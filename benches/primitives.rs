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
