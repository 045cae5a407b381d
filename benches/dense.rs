//! Dense linear algebra.

mod support;

use half::f16;
use support::{Bench, Case, centred, random};
use tilework::prelude::*;
use tilework::program::{In, InOut, Op};
use tilework::{Element, Result};

/// The cases of some ops.
type Group = fn(&mut Bench) -> Result<()>;

fn main() -> Result<()> {
    let Some(mut bench) = Bench::open() else { return Ok(()) };
    let groups: [(&str, Group); 3] = [("gemm", gemm), ("gemv", gemv), ("transpose", transpose)];
    for (name, group) in groups {
        if bench.wants(name) {
            group(&mut bench)?;
        }
    }
    bench.finish();
    Ok(())
}

fn gemm(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    for side in bench.scale(vec![256, 1024, 4096], vec![256]) {
        let (a, b) = (random(&gpu, side * side, centred)?, random(&gpu, side * side, centred)?);
        let c = gpu.alloc::<f32>(side * side)?;
        for v in Gemm::variants() {
            let gemm = Gemm::new(side, side, side).variant(v.name).plan::<f32>(&gpu)?;
            let size = format!("{side}x{side}x{side}");
            let case = Case { op: "gemm", variant: v.name, dtype: "f32", size, cost: gemm.program().cost };
            bench.device(&case, |rec| gemm.record(rec, &a, &b, &c));
        }
    }
    Ok(())
}

/// Square, of no round size, flat and tall; the last two are one long sum and many short ones.
fn gemv(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let shapes = bench.scale(
        vec![
            (256, 256),
            (1024, 1024),
            (4096, 4096),
            (16384, 16384),
            (16383, 16381),
            (64, 1 << 22),
            (1 << 22, 64),
            (1024, 1 << 18),
            (1 << 18, 1024),
            (1, 1 << 27),
            (1 << 25, 4),
        ],
        vec![(256, 256), (2048, 2048), (16, 1 << 18), (1 << 18, 16)],
    );
    let largest = shapes.iter().map(|&(m, k)| m * k).max().unwrap_or(0);
    let longest = shapes.iter().map(|&(m, k)| m.max(k)).max().unwrap_or(0);
    let a = random(&gpu, largest, centred)?;
    let (x, y) = (random(&gpu, longest, centred)?, gpu.alloc::<f32>(longest)?);
    for &(m, k) in &shapes {
        for v in Gemv::variants() {
            // The baseline takes long where a sum is one invocation's.
            if v.name != "naive" || m.max(k) <= 1 << 18 {
                one_gemv(bench, v.name, (m, k), &a, &x, &y)?;
            }
        }
    }
    drop((a, x, y));
    if !gpu.profile().features.f16 {
        return Ok(());
    }
    let (m, k) = bench.scale((16384, 16384), (2048, 2048));
    let half = |n| random(&gpu, n, |b| f16::from_f32(centred(b)));
    one_gemv(bench, "tiled", (m, k), &half(m * k)?, &half(m.max(k))?, &half(m.max(k))?)
}

/// Measures a product both ways.
fn one_gemv<T: Element>(
    bench: &mut Bench,
    variant: &str,
    (m, k): (usize, usize),
    a: &Buffer<T>,
    x: &Buffer<T>,
    y: &Buffer<T>,
) -> Result<()>
where
    Gemv: Op<T, Operands = (In<T>, In<T>, InOut<T>)>,
{
    for trans in [false, true] {
        let Ok(plan) = Gemv::new(m, k).trans(trans).variant(variant).plan::<T>(&bench.gpu) else { continue };
        let size = format!("{m}x{k}{}", if trans { " transposed" } else { "" });
        let case = Case { op: "gemv", variant, dtype: T::DTYPE.name(), size, cost: plan.program().cost };
        let (terms, outputs) = if trans { (m, k) } else { (k, m) };
        let (a, x, y) = (a.slice(..m * k)?, x.slice(..terms)?, y.slice(..outputs)?);
        bench.device(&case, |rec| plan.record(rec, a, x, y));
    }
    Ok(())
}

fn transpose(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let shapes = bench.scale(
        vec![
            (1, 256, 256),
            (1, 1024, 1024),
            (1, 4096, 4096),
            (1, 16384, 16384),
            (1, 16383, 16381),
            (1, 64, 1 << 22),
            (1, 1 << 22, 64),
            (1, 3, 1 << 26),
            (1, 1 << 26, 3),
            (1 << 18, 32, 32),
            (1 << 22, 8, 8),
        ],
        vec![(1, 256, 256), (1, 2048, 2048), (1, 2047, 2045), (4096, 32, 32)],
    );
    transposes(bench, &shapes, |b| b)?;
    let square = bench.scale(vec![(1, 16384, 16384), (1, 16383, 16381)], vec![(1, 2048, 2048)]);
    transposes(bench, &square, |b| b as u8)?;
    transposes(bench, &square, |b| f16::from_f32(centred(b)))?;
    if gpu.profile().features.int64 {
        let square = bench.scale(vec![(1, 8192, 16384)], vec![(1, 1024, 2048)]);
        transposes(bench, &square, u64::from)?;
    }
    Ok(())
}

/// Measures transpositions of one type in all variants. Bits are moved, so u32 stands for f32 too.
fn transposes<T: Element>(
    bench: &mut Bench,
    shapes: &[(usize, usize, usize)],
    value: impl Fn(u32) -> T,
) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = shapes.iter().map(|&(batch, m, n)| batch * m * n).max().unwrap_or(0);
    let (x, y) = (random(&gpu, largest, value)?, gpu.alloc::<T>(largest)?);
    for &(batch, m, n) in shapes {
        let len = batch * m * n;
        for v in Transpose::variants() {
            let plan = Transpose::batched(batch, m, n).variant(v.name).plan::<T>(&gpu)?;
            let size = if batch == 1 { format!("{m}x{n}") } else { format!("{batch}x{m}x{n}") };
            let dtype = if T::DTYPE.size() == 4 { "f32" } else { T::DTYPE.name() };
            let case = Case { op: "transpose", variant: v.name, dtype, size, cost: plan.program().cost };
            let (x, y) = (x.slice(..len)?, y.slice(..len)?);
            bench.device(&case, |rec| plan.record(rec, x, y));
        }
    }
    Ok(())
}
