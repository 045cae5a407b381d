//! Elementwise ops.

mod support;

use half::f16;
use support::{Bench, centred, half, random};
use tilework::prelude::*;
use tilework::{Element, Result};

fn main() -> Result<()> {
    support::groups(&[("map", elementwise)])
}

fn elementwise(bench: &mut Bench) -> Result<()> {
    for n in bench.scale(vec![1 << 16, 1 << 20, 1 << 28], vec![1 << 20]) {
        all::<f32>(bench, n, centred)?;
    }
    let n = bench.scale(1 << 28, 1 << 20);
    all::<f16>(bench, n, half)
}

fn all<T: Element>(bench: &mut Bench, n: usize, value: fn(u32) -> T) -> Result<()> {
    let gpu = bench.gpu.clone();
    let (x, y, z) = (random(&gpu, n, value)?, random(&gpu, n, value)?, gpu.alloc::<T>(n)?);
    for v in Map::variants() {
        bench.op::<T>(&Map::new(MapFn::Exp, n).variant(v.name), n.to_string(), &[&x, &z])?;
        bench.op::<T>(&Zip::new(ZipFn::Add, n).variant(v.name), n.to_string(), &[&x, &y, &z])?;
        bench.op::<T>(&Axpy::new(n, 1.0e-3).variant(v.name), n.to_string(), &[&x, &y])?;
    }
    Ok(())
}
