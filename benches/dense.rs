//! Dense linear algebra.

#[path = "dense/products.rs"]
mod products;
mod support;

use support::{Bench, centred, half, random};
use tilework::dense::{PadAxes, PadMode};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::{Element, Result};

fn main() -> Result<()> {
    support::groups(&[
        ("gemm", products::gemm),
        ("gemm-tiles", products::gemm_tiles),
        ("gemm-split", products::gemm_split),
        ("gemm-coop", products::gemm_coop),
        ("gemm-compile", products::gemm_compile),
        ("gemm-batched", products::gemm_batched),
        ("gemm-batched-forms", products::gemm_batched_forms),
        ("gemv", gemv),
        ("transpose", transpose),
        ("permute-axes", permute_axes),
        ("ger", ger),
        ("trsm", trsm),
        ("trmm", trmm),
        ("syrk", syrk),
        ("syr2k", syr2k),
        ("gemm-grouped", gemm_grouped),
        ("symm", symm),
        ("moves", moves),
        ("complex", complex),
        ("vectors", vectors),
        ("level-2", level_2),
    ])
}

/// Rows that stay, batches of matrices, and axes in reverse.
fn permute_axes(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(512, 64);
    let n = side * side * side;
    let (x, y) = (random(&bench.gpu, n, centred)?, bench.gpu.alloc::<f32>(n)?);
    for axes in [[1, 0, 2], [0, 2, 1], [2, 0, 1], [2, 1, 0]] {
        for variant in PermuteAxes::variants() {
            let op = PermuteAxes::new(&[side; 3], &axes).variant(variant.name);
            bench.op::<f32>(&op, format!("{axes:?} of {side}x{side}x{side}"), &[&x, &y])?;
        }
    }
    Ok(())
}

/// Every other element, columns of a row-major matrix as BLAS's increments read them, a border, and two halves of rows.
fn moves(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(8192, 512);
    let n = side * side;
    let (x, y) = (random(&bench.gpu, n, centred)?, bench.gpu.alloc::<f32>(n)?);
    for (name, shape, strides) in [
        ("every other", [side, side / 2], [side as isize, 2]),
        ("columns", [side, side], [1, side as isize]),
        ("back", [side, side], [-(side as isize), -1]),
    ] {
        let op = StridedCopy::new(n, &shape, &strides).origin(if name == "back" { n - 1 } else { 0 });
        bench.op::<f32>(&op, format!("{name} of {side}x{side}"), &[&x, &y])?;
    }
    let inner = side - 64;
    for mode in [PadMode::Constant(0.0), PadMode::Reflect] {
        let op = PadAxes::new(&[inner; 2], &[[32, 32]; 2], mode);
        bench.op::<f32>(&op, format!("{} {inner}x{inner}", mode.name()), &[&x, &y])?;
    }
    let half = [side, side / 2];
    let op = Concatenate::new(&[&half, &half], 1);
    bench.op::<f32>(&op, format!("rows of {side}x{side}"), &[&x, &x, &y])
}

fn ger(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(16384, 1024);
    let [x, y] = [(); 2].map(|()| random(&bench.gpu, side, centred));
    let a = random(&bench.gpu, side * side, centred)?;
    bench.op::<f32>(&Ger::new(side, side), format!("{side}x{side}"), &[&x?, &y?, &a])
}

/// A triangle whose inverse is of moderate size.
fn triangle(gpu: &Gpu, side: usize) -> Result<Buffer<f32>> {
    let value = |i: usize| {
        let (row, column) = (i / side, i % side);
        if row == column { 2.0 } else { centred((i as u32).wrapping_mul(0x9e37_79b9)) / side as f32 }
    };
    gpu.upload(&(0..side * side).map(value).collect::<Vec<f32>>())
}

/// A square, few right sides, and A on the right.
fn trsm(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(4096, 256);
    let (a, b) = (triangle(&bench.gpu, side)?, random(&bench.gpu, side * side, centred)?);
    for (op, what) in [(Trsm::new(side, side), ""), (Trsm::new(side, side).right().trans(), " right trans")] {
        bench.op::<f32>(&op, format!("{side}x{side}{what}"), &[&a, &b])?;
    }
    let few = random(&bench.gpu, side, centred)?;
    bench.op::<f32>(&Trsm::new(side, 1), format!("{side}x1"), &[&a, &few])
}

fn trmm(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(4096, 256);
    let (a, b) = (triangle(&bench.gpu, side)?, random(&bench.gpu, side * side, centred)?);
    let c = bench.gpu.alloc::<f32>(side * side)?;
    bench.op::<f32>(&Trmm::new(side, side), format!("{side}x{side}"), &[&a, &b, &c])
}

fn syrk(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(4096, 256);
    let (a, c) = (random(&bench.gpu, side * side, centred)?, bench.gpu.alloc::<f32>(side * side)?);
    for (op, what) in [(Syrk::new(side, side), ""), (Syrk::new(side, side).trans(), " trans")] {
        bench.op::<f32>(&op, format!("{side}x{side}{what}"), &[&a, &c])?;
    }
    Ok(())
}

fn syr2k(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(4096, 256);
    let [a, b] = [0, 1].map(|_| random(&bench.gpu, side * side, centred));
    let (a, b, c) = (a?, b?, bench.gpu.alloc::<f32>(side * side)?);
    bench.op::<f32>(&Syr2k::new(side, side), format!("{side}x{side}"), &[&a, &b, &c])
}

/// Products of 64 shapes between 16 and 528 a side.
fn gemm_grouped(bench: &mut Bench) -> Result<()> {
    let products = bench.scale(64, 4);
    let shapes: Vec<[usize; 3]> = (0..products).map(|i| [1, 5, 11].map(|by| 16 + (i * by * 8) % 513)).collect();
    let len = |of: fn(&[usize; 3]) -> usize| shapes.iter().map(of).sum::<usize>();
    let a = random(&bench.gpu, len(|[m, _, k]| m * k), centred)?;
    let b = random(&bench.gpu, len(|[_, n, k]| k * n), centred)?;
    let c = bench.gpu.alloc::<f32>(len(|[m, n, _]| m * n))?;
    bench.op::<f32>(&GemmGrouped::new(shapes), format!("{products} shapes up to 528"), &[&a, &b, &c])
}

/// Products and sums of complex numbers.
fn complex(bench: &mut Bench) -> Result<()> {
    let (side, n) = (bench.scale(4096, 128), bench.scale(1 << 26, 1 << 16));
    let [a, b] = [0, 1].map(|_| random(&bench.gpu, 2 * side * side, centred));
    let (a, b, c) = (a?, b?, bench.gpu.alloc::<f32>(2 * side * side)?);
    bench.op::<f32>(&Cgemm::new(side, side, side), format!("{side}x{side}x{side}"), &[&a, &b, &c])?;
    let (x, y) = (random(&bench.gpu, 2 * side, centred)?, bench.gpu.alloc::<f32>(2 * side)?);
    for op in [Cgemv::new(side, side), Cgemv::new(side, side).trans()] {
        let what = if op == Cgemv::new(side, side) { "" } else { " trans" };
        bench.op::<f32>(&op, format!("{side}x{side}{what}"), &[&a, &x, &y])?;
    }
    drop((a, b, c));
    let [x, y] = [0, 1].map(|_| random(&bench.gpu, 2 * n, centred));
    let (x, y, result) = (x?, y?, bench.gpu.alloc::<f32>(2)?);
    bench.op::<f32>(&Caxpy::new(n, [0.5, -0.25]), n.to_string(), &[&x, &y])?;
    bench.op::<f32>(&Cdot::new(n), n.to_string(), &[&x, &y, &result])
}

/// Vectors of BLAS's level 1 that two ops share, side by side and apart.
fn vectors(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 26, 1 << 16);
    let (x, y) = (random(&bench.gpu, 4 * n, centred)?, random(&bench.gpu, 4 * n, centred)?);
    let result = bench.gpu.alloc::<f32>(1)?;
    bench.op::<f32>(&Rot::new(n, 0.6, 0.8), n.to_string(), &[&x, &y])?;
    bench.op::<f32>(&Swap::new(n), n.to_string(), &[&x, &y])?;
    bench.op::<f32>(&Dot::new(n).incx(4), format!("{n} every 4th"), &[&x, &y, &result])?;
    bench.op::<f32>(&Axpy::new(n, 1e-3).incx(4).incy(-4), format!("{n} every 4th"), &[&x, &y])
}

/// Matrices of BLAS's level 2 of which a part is stored.
fn level_2(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(8192, 512);
    let a = triangle(&bench.gpu, n)?;
    let (x, y) = (random(&bench.gpu, n, centred)?, random(&bench.gpu, n, centred)?);
    bench.op::<f32>(&Symv::new(n), format!("{n}"), &[&a, &x, &y])?;
    bench.op::<f32>(&Symv::new(n).packed(), format!("{n} packed"), &[&a, &x, &y])?;
    bench.op::<f32>(&Trmv::new(n), format!("{n}"), &[&a, &x, &y])?;
    bench.op::<f32>(&Trmv::new(n).trans(), format!("{n} trans"), &[&a, &x, &y])?;
    bench.op::<f32>(&Trsv::new(n).unit(), format!("{n}"), &[&a, &x])?;
    bench.op::<f32>(&Syr::new(n).alpha(1e-6), format!("{n}"), &[&x, &a])?;
    bench.op::<f32>(&Syr2::new(n).alpha(1e-6), format!("{n}"), &[&x, &y, &a])?;
    let rows = bench.scale(1 << 22, 1 << 14);
    let band = random(&bench.gpu, 11 * rows, centred)?;
    let (x, y) = (random(&bench.gpu, rows, centred)?, bench.gpu.alloc::<f32>(rows)?);
    bench.op::<f32>(&Gbmv::new(rows, rows, 5, 5), format!("{rows}, 11 diagonals"), &[&band, &x, &y])
}

fn symm(bench: &mut Bench) -> Result<()> {
    let side = bench.scale(4096, 256);
    let (a, b) = (triangle(&bench.gpu, side)?, random(&bench.gpu, side * side, centred)?);
    let c = bench.gpu.alloc::<f32>(side * side)?;
    bench.op::<f32>(&Symm::new(side, side), format!("{side}x{side}"), &[&a, &b, &c])
}

/// Square, odd, wide and tall matrices; one long sum, and many short ones.
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
            // The baseline is slow if a thread computes a long sum.
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
    let halves = |n| random(&gpu, n, half);
    one_gemv(bench, "tiled", (m, k), &halves(m * k)?, &halves(m.max(k))?, &halves(m.max(k))?)
}

/// Measures a product both ways.
fn one_gemv<T: Element>(
    bench: &mut Bench, variant: &str, (m, k): (usize, usize), a: &Buffer<T>, x: &Buffer<T>, y: &Buffer<T>,
) -> Result<()>
where
    Gemv: Op<T>,
{
    for trans in [false, true] {
        let op = Gemv::new(m, k).when(trans, |op| op.trans()).variant(variant);
        bench.op::<T>(&op, format!("{m}x{k}{}", if trans { " transposed" } else { "" }), &[a, x, y])?;
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
    transposes(bench, &square, half)?;
    if gpu.profile().features.int64 {
        let square = bench.scale(vec![(1, 8192, 16384)], vec![(1, 1024, 2048)]);
        transposes(bench, &square, u64::from)?;
    }
    Ok(())
}

/// Measures transpositions of one type with all variants. They move bits, so u32 stands for f32.
fn transposes<T: Element>(bench: &mut Bench, shapes: &[(usize, usize, usize)], value: impl Fn(u32) -> T) -> Result<()> {
    let gpu = bench.gpu.clone();
    let largest = shapes.iter().map(|&(batch, m, n)| batch * m * n).max().unwrap_or(0);
    let (x, y) = (random(&gpu, largest, value)?, gpu.alloc::<T>(largest)?);
    for &(batch, m, n) in shapes {
        for v in Transpose::variants() {
            let op = Transpose::batched(batch, m, n).variant(v.name);
            let size = if batch == 1 { format!("{m}x{n}") } else { format!("{batch}x{m}x{n}") };
            let dtype = if T::DTYPE.size() == 4 { "f32" } else { "" };
            bench.op_as::<T>(&op, ("", dtype), size, &[&x, &y])?;
        }
    }
    Ok(())
}
