//! Elementwise ops.

mod support;

use half::f16;
use support::{Bench, centred, half, random};
use tilework::prelude::*;
use tilework::{DType, Element, Result};

fn main() -> Result<()> {
    support::groups(&[("map", elementwise)])
}

fn elementwise(bench: &mut Bench) -> Result<()> {
    for n in bench.scale(vec![1 << 16, 1 << 20, 1 << 28], vec![1 << 20]) {
        all::<f32>(bench, n, centred)?;
    }
    let n = bench.scale(1 << 28, 1 << 20);
    all::<f16>(bench, n, half)?;
    let (rows, columns) = (n / 4096, 4096);
    let (x, row) = (random(&bench.gpu, n, centred)?, random(&bench.gpu, columns, centred)?);
    let (y, bytes) = (bench.gpu.alloc::<f32>(n)?, bench.gpu.alloc::<u8>(n)?);
    let of = |function| Transform::new([rows, columns], function).input(DType::F32, Broadcast::Each);
    let gate = of(TransformFn::SwiGlu).input(DType::F32, Broadcast::Row);
    bench.op::<f32>(&gate, format!("swiglu {n}"), &[&x, &row, &y])?;
    bench.op::<u8>(&of(TransformFn::Convert), format!("convert {n}"), &[&x, &bytes])
}

fn all<T: Element>(bench: &mut Bench, n: usize, value: fn(u32) -> T) -> Result<()> {
    let gpu = bench.gpu.clone();
    let (x, y, z) = (random(&gpu, n, value)?, random(&gpu, n, value)?, gpu.alloc::<T>(n)?);
    for v in Map::variants() {
        bench.op::<T>(&Map::new(MapFn::Exp, n).variant(v.name), n.to_string(), &[&x, &z])?;
        bench.op::<T>(&Zip::new(ZipFn::Add, n).variant(v.name), n.to_string(), &[&x, &y, &z])?;
        bench.op::<T>(&Axpy::new(n, 1.0e-3).variant(v.name), n.to_string(), &[&x, &y])?;
        bench.op::<T>(&Scal::new(n, 1.0).variant(v.name), n.to_string(), &[&x])?;
    }
    Ok(())
}
