//! Quantisation, and products of bytes.

mod support;

use half::f16;
#[cfg(feature = "cuda")]
use support::random_on_cuda;
use support::{Bench, Case, centred, half, random};
use tilework::dense::{ProductTile, ThreadTile};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::quantize::{Cast, Code, Dequantize, GemmInt8, Quantize, Scales};
use tilework::{Element, Result};

fn main() -> Result<()> {
    support::groups(&[
        ("cast", cast),
        ("quantize", quantize),
        ("dequantize", dequantize),
        ("gemm-int8", gemm_int8),
        ("gemm-int8-tiles", gemm_int8_tiles),
    ])
}

/// A matrix, its scales, and the name of the case.
type Matrix = ((usize, usize), Scales, &'static str);

fn matrices(bench: &Bench) -> Vec<Matrix> {
    let large = bench.scale((16384, 4096), (256, 1024));
    vec![
        (large, Scales::Row, ""),
        ((large.0, large.1 - 1), Scales::Row, ""),
        (large, Scales::Group(32), " groups of 32"),
        (large, Scales::Group(64), " groups of 64"),
        (large, Scales::Group(128), " groups of 128"),
        (large, Scales::Tensor, " tensor"),
        ((16 * large.0, large.1 / 16), Scales::Row, ""),
        ((32 * large.0, 128), Scales::Row, ""),
    ]
}

fn cast(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 28, 1 << 18);
    let (x, y) = (random(&bench.gpu, n, centred)?, bench.gpu.alloc::<f16>(n)?);
    bench.op_as::<f32>(&Cast::new(n), ("", "f32-f16"), n.to_string(), &[&x, &y])?;
    bench.op_as::<f16>(&Cast::new(n), ("", "f16-f32"), n.to_string(), &[&y, &x])?;
    Ok(())
}

fn quantize(bench: &mut Bench) -> Result<()> {
    let rows = random(&bench.gpu, bench.scale(16384 * 4096, 32 * 256 * 128), centred)?;
    quantize_to::<i8, f32>(bench, &rows)?;
    quantize_to::<u8, f32>(bench, &rows)?;
    drop(rows);
    let rows = random(&bench.gpu, bench.scale(16384 * 4096, 32 * 256 * 128), half)?;
    quantize_to::<i8, f16>(bench, &rows)?;
    quantize_to::<u8, f16>(bench, &rows)
}

fn quantize_to<Q: Code, T: Element>(bench: &mut Bench, x: &Buffer<T>) -> Result<()>
where
    Quantize<Q>: Op<T>,
{
    let output = bench.gpu.alloc::<Q>(x.len())?;
    let scale = bench.gpu.alloc::<f32>(x.len() / 32)?;
    for ((rows, n), scales, name) in matrices(bench) {
        let op = Quantize::<Q>::new(rows, n).scales(scales);
        let dtype = format!("{}-{}", T::DTYPE, Q::NAME);
        for v in Quantize::<Q>::variants() {
            let op = op.clone().variant(v.name);
            bench.op_as::<T>(&op, ("", &dtype), format!("{rows}x{n}{name}"), &[x, &output, &scale])?;
        }
    }
    Ok(())
}

fn dequantize(bench: &mut Bench) -> Result<()> {
    let len = bench.scale(16384 * 4096, 32 * 256 * 128);
    let bytes = random(&bench.gpu, len, |bits| (bits >> 24) as i8)?;
    let codes = random(&bench.gpu, len, |bits| (bits >> 24) as u8)?;
    dequantize_to::<i8, f32>(bench, &bytes)?;
    dequantize_to::<i8, f16>(bench, &bytes)?;
    dequantize_to::<u8, f32>(bench, &codes)?;
    dequantize_to::<u8, f16>(bench, &codes)
}

fn dequantize_to<Q: Code, T: Element>(bench: &mut Bench, x: &Buffer<Q>) -> Result<()>
where
    Dequantize<Q>: Op<T>,
{
    let output = bench.gpu.alloc::<T>(x.len())?;
    let scale = random(&bench.gpu, x.len() / 32, centred)?;
    for ((rows, n), scales, name) in matrices(bench) {
        let op = Dequantize::<Q>::new(rows, n).scales(scales);
        let dtype = format!("{}-{}", Q::NAME, T::DTYPE);
        bench.op_as::<T>(&op, ("", &dtype), format!("{rows}x{n}{name}"), &[x, &scale, &output])?;
    }
    Ok(())
}

/// The factors and the result of an m x n x k product of bytes.
struct Factors {
    shape: [usize; 3],
    a: Buffer<i8>,
    b: Buffer<i8>,
    c: Buffer<i32>,
}

impl Factors {
    fn new(gpu: &Gpu, [m, n, k]: [usize; 3]) -> Result<Self> {
        let bytes = |len| random(gpu, len, |bits| (bits >> 24) as i8);
        Ok(Self { shape: [m, n, k], a: bytes(m * k)?, b: bytes(k * n)?, c: gpu.alloc(m * n)? })
    }

    fn measure(&self, bench: &mut Bench, variant: &str, form: impl FnOnce(GemmInt8) -> GemmInt8) -> Result<()> {
        let [m, n, k] = self.shape;
        let op = form(GemmInt8::new(m, n, k));
        bench.op_as::<i32>(&op, (variant, "i8"), format!("{m}x{n}x{k}"), &[&self.a, &self.b, &self.c])?;
        Ok(())
    }
}

fn gemm_int8(bench: &mut Bench) -> Result<()> {
    for side in bench.scale(vec![512, 1024, 2048, 4096], vec![256]) {
        let factors = Factors::new(&bench.gpu, [side; 3])?;
        for v in GemmInt8::variants() {
            // At 4096 `naive` takes long.
            if side < 4096 || v.name != "naive" {
                factors.measure(bench, v.name, |gemm| gemm.trans_b().variant(v.name))?;
            }
        }
        factors.measure(bench, "auto", |gemm| gemm.trans_b())?;
    }
    for shape in bench.scale(
        vec![[4096; 3], [8192; 3], [4095, 4097, 4093], [128, 8192, 8192], [16, 4096, 4096]],
        vec![[65, 67, 2049]],
    ) {
        Factors::new(&bench.gpu, shape)?.measure(bench, "auto b", |gemm| gemm)?;
    }
    let side = bench.scale(4096, 256);
    let factors = Factors::new(&bench.gpu, [side; 3])?;
    let scale = random(&bench.gpu, side, centred)?;
    let c = bench.gpu.alloc::<f16>(side * side)?;
    let layer = GemmInt8::new(side, side, side).trans_b().scaled();
    if let Ok(plan) = layer.plan::<f16>(&bench.gpu) {
        let (size, cost) = (format!("{side}x{side}x{side} scaled"), plan.program().cost);
        let case = Case { op: "gemm-int8", variant: "auto", dtype: "i8-f16", size, cost };
        bench.device(&case, |rec| plan.with_scales(&scale, &scale).record(rec, &factors.a, &factors.b, &c));
    }
    #[cfg(feature = "cuda")]
    int8_on_cuda(bench)?;
    Ok(())
}

/// Tensor cores on CUDA: every variant.
#[cfg(feature = "cuda")]
fn int8_on_cuda(bench: &mut Bench) -> Result<()> {
    let Some(cuda) = bench.cuda.clone() else { return Ok(()) };
    let stream = cuda.stream()?;
    for side in bench.scale(vec![512, 1024, 2048, 4096, 8192], vec![256]) {
        let elements = side * side;
        let [a, b] = [0, 1].map(|_| random_on_cuda(&cuda, elements, |bits| bits as i8));
        let (a, b, c) = (a?, b?, cuda.alloc::<i32>(elements)?);
        for variant in GemmInt8::cuda_variants().iter().filter(|v| cuda.profile().runs(v.arch)) {
            let op = GemmInt8::new(side, side, side).trans_b().variant(variant.name);
            let plan = op.plan::<i32>(&cuda)?;
            let (size, cost) = (format!("{side}x{side}x{side}"), plan.program().cost);
            let case = Case { op: "gemm-int8", variant: variant.name, dtype: "i8", size, cost };
            bench.stream(&case, &stream, |stream| plan.run(stream, &a, &b, &c));
        }
    }
    Ok(())
}

/// Tiles to choose from.
fn gemm_int8_tiles(bench: &mut Bench) -> Result<()> {
    let tiles = [
        ([128, 128, 32], [8, 8]),
        ([128, 128, 64], [8, 8]),
        ([128, 128, 16], [8, 8]),
        ([128, 256, 32], [8, 16]),
        ([256, 128, 32], [16, 8]),
        ([64, 128, 32], [8, 8]),
        ([64, 128, 64], [8, 8]),
        ([64, 64, 32], [8, 8]),
        ([64, 64, 32], [8, 4]),
        ([64, 64, 64], [8, 4]),
        ([128, 64, 32], [8, 4]),
        ([32, 64, 64], [4, 4]),
        ([32, 32, 64], [4, 4]),
    ];
    for side in bench.scale(vec![512, 1024, 2048, 4096], vec![256]) {
        let factors = Factors::new(&bench.gpu, [side; 3])?;
        for ([m, n, k], [rows, columns]) in tiles {
            let name = format!("{m}x{n}x{k} by {rows}x{columns}");
            factors.measure(bench, &name, |gemm| {
                gemm.trans_b().variant("double").tile(ProductTile { m, n, k }).thread_tile(ThreadTile { rows, columns })
            })?;
        }
    }
    Ok(())
}
