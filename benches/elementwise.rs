//! Elementwise ops.

mod support;

use half::f16;
use support::{Bench, Case, centred, random};
use tilework::prelude::*;
use tilework::program::Cost;
use tilework::{Element, Result};

fn main() -> Result<()> {
    support::each(family)
}

fn family(bench: &mut Bench) -> Result<()> {
    for n in bench.scale(vec![1 << 16, 1 << 20, 1 << 28], vec![1 << 20]) {
        all::<f32>(bench, n, centred)?;
    }
    let n = bench.scale(1 << 28, 1 << 20);
    all::<f16>(bench, n, |b| f16::from_f32(centred(b)))?;
    Ok(())
}

fn all<T: Element>(bench: &mut Bench, n: usize, value: fn(u32) -> T) -> Result<()> {
    let gpu = bench.gpu.clone();
    let (x, y, z) = (random(&gpu, n, value)?, random(&gpu, n, value)?, gpu.alloc::<T>(n)?);
    for v in Map::variants() {
        let map = Map::new(MapFn::Exp, n).variant(v.name).plan::<T>(&gpu)?;
        run(bench, "map", v.name, &x, map.program().cost, |rec| map.record(rec, &x, &z));
        let zip = Zip::new(ZipFn::Add, n).variant(v.name).plan::<T>(&gpu)?;
        run(bench, "zip", v.name, &x, zip.program().cost, |rec| zip.record(rec, &x, &y, &z));
        let axpy = Axpy::new(n, 1.0e-3).variant(v.name).plan::<T>(&gpu)?;
        run(bench, "axpy", v.name, &x, axpy.program().cost, |rec| axpy.record(rec, &x, &y));
    }
    Ok(())
}

fn run<T: Element>(
    bench: &mut Bench,
    op: &str,
    variant: &str,
    x: &Buffer<T>,
    cost: Cost,
    record: impl FnMut(&mut Recorder) -> Result<()>,
) {
    let case = Case { op, variant, dtype: T::DTYPE.name(), size: x.len().to_string(), cost };
    bench.device(&case, record);
}
