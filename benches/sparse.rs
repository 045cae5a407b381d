//! Sparse matrices.

mod support;

use support::{Bench, Case, centred, random};
use tilework::Result;
use tilework::prelude::*;
use tilework::sparse::{Coo, Csr, SparseMatrix, Target};

/// Makes a matrix of so many rows.
type Maker = fn(usize) -> Csr;

fn main() -> Result<()> {
    let Some(mut bench) = Bench::open() else { return Ok(()) };
    if bench.wants("spmv") {
        spmv(&mut bench)?;
    }
    if bench.wants("spconvert") {
        spconvert(&mut bench)?;
    }
    if bench.wants("spmm") {
        spmm(&mut bench)?;
    }
    bench.finish();
    Ok(())
}

/// The next number of a small generator (Numerical Recipes).
fn next(state: &mut u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> 4
}

/// Square, with the columns that `columns` adds for each row.
fn square(n: usize, mut columns: impl FnMut(usize, &mut u32, &mut Vec<u32>)) -> Csr {
    let mut csr = Csr { rows: n, cols: n, row_ptrs: vec![0], ..Csr::default() };
    let mut state = 1;
    for row in 0..n {
        columns(row, &mut state, &mut csr.col_idxs);
        csr.row_ptrs.push(csr.col_idxs.len() as u32);
    }
    csr.values = (0..csr.col_idxs.len()).map(|_| centred(next(&mut state) << 4)).collect();
    csr
}

/// As many entries in each row, in any columns.
fn scattered(n: usize, len: usize) -> Csr {
    square(n, |_, state, cols| {
        let first = cols.len();
        cols.extend((0..len).map(|_| next(state) % n as u32));
        cols[first..].sort_unstable();
    })
}

/// As many entries in each row, beside the diagonal.
fn banded(n: usize, len: usize) -> Csr {
    square(n, |row, _, cols| {
        let first = row.saturating_sub(len / 2).min(n - len);
        cols.extend((first..first + len).map(|col| col as u32));
    })
}

/// Row r, of an order by chance, has as many entries as a power of its place says; the longest has about n / 5.
fn power_law(n: usize) -> Csr {
    let longest = n as f64 / 5.25;
    square(n, |row, state, cols| {
        let place = (row.wrapping_mul(2_654_435_761) % n) as f64 + 1.0;
        let len = (longest / place.powf(0.83)).max(3.0) as usize;
        cols.extend((0..len).map(|_| next(state) % n as u32));
    })
}

/// The diagonal, a dense row and a dense column.
fn arrow(n: usize) -> Csr {
    square(n, |row, _, cols| if row == 0 { cols.extend(0..n as u32) } else { cols.extend([0, row as u32]) })
}

/// Every format and variant that fits, for the matrices that the library is held to.
fn spmv(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 20, 1 << 12);
    let matrices: [(&str, Maker); 6] = [
        ("16 a row random", |n| scattered(n, 16)),
        ("16 a row banded", |n| banded(n, 16)),
        ("64 a row random", |n| scattered(n, 64)),
        ("64 a row banded", |n| banded(n, 64)),
        ("power law", power_law),
        ("arrow", arrow),
    ];
    for (name, matrix) in matrices {
        let csr = matrix(n);
        let name = format!("{n} rows, {name}");
        one_matrix(bench, &name, &csr)?;
        one_matrix(bench, &name, &csr.to_coo())?;
        one_matrix(bench, &name, &csr.to_csc())?;
        one_matrix(bench, &name, &csr.to_jds())?;
        one_matrix(bench, &name, &csr.to_sell(32, 1024)?)?;
        let seen = csr.analyse();
        one_matrix(bench, &name, &csr.to_hybrid(seen.hybrid_width)?)?;
        // A long row makes all of them long.
        if seen.longest * n <= 4 * csr.entries() {
            one_matrix(bench, &name, &csr.to_ell()?)?;
        }
    }
    Ok(())
}

/// Every format and variant that fits, and dense matrices of so many columns.
fn spmm(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 20, 1 << 10);
    let csr = scattered(n, 16);
    let name = format!("{n} rows, 16 a row random");
    one_product(bench, &name, &csr, &[32, 128, 33])?;
    one_product(bench, &name, &csr.to_coo(), &[32])?;
    one_product(bench, &name, &csr.to_csc(), &[32])?;
    one_product(bench, &name, &csr.to_jds(), &[32])?;
    one_product(bench, &name, &csr.to_sell(32, 1024)?, &[32])?;
    one_product(bench, &name, &csr.to_hybrid(csr.analyse().hybrid_width)?, &[32])?;
    one_product(bench, &name, &csr.to_ell()?, &[32])?;
    one_product(bench, &format!("{n} rows, power law"), &power_law(n), &[32])
}

/// `Spmm` with one matrix, its values of each type.
fn one_product(bench: &mut Bench, name: &str, matrix: &impl SparseMatrix, columns: &[usize]) -> Result<()> {
    let gpu = bench.gpu.clone();
    for (dtype, a) in [("f32", gpu.upload_matrix(matrix)?), ("f16", gpu.upload_matrix_f16(matrix)?)] {
        let stored = a.stored();
        for &n in columns {
            let (b, c) = (random(&gpu, stored.cols * n, centred)?, gpu.alloc::<f32>(stored.rows * n)?);
            let size = format!("{name}, {n} columns");
            for v in Spmm::variants() {
                // Those of other formats are left out.
                let Ok(plan) = Spmm::new(stored, n).variant(v.name).plan::<f32>(&gpu) else { continue };
                let case = Case {
                    op: "spmm",
                    variant: v.name,
                    dtype,
                    size: size.clone(),
                    cost: plan.program().cost,
                };
                bench.device(&case, |rec| plan.record(rec, &a, &b, &c));
            }
        }
    }
    Ok(())
}

/// `Spmv` with one matrix, its values of each type.
fn one_matrix(bench: &mut Bench, name: &str, matrix: &impl SparseMatrix) -> Result<()> {
    let gpu = bench.gpu.clone();
    for (dtype, a) in [("f32", gpu.upload_matrix(matrix)?), ("f16", gpu.upload_matrix_f16(matrix)?)] {
        let stored = a.stored();
        let (x, y) = (random(&gpu, stored.cols, centred)?, gpu.alloc::<f32>(stored.rows)?);
        for v in Spmv::variants() {
            // Those of other formats are left out.
            let Ok(plan) = Spmv::new(stored).variant(v.name).plan::<f32>(&gpu) else { continue };
            let case =
                Case { op: "spmv", variant: v.name, dtype, size: name.into(), cost: plan.program().cost };
            bench.device(&case, |rec| plan.record(rec, &a, &x, &y));
        }
    }
    Ok(())
}

/// Coordinates in no order to compressed rows, and compressed rows to every format.
fn spconvert(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 20, 1 << 12);
    let len = 16 * n;
    let mut state = 1;
    let mut index = || (0..len).map(|_| next(&mut state) % n as u32).collect::<Vec<_>>();
    let (row_idxs, col_idxs) = (index(), index());
    let coo = Coo { rows: n, cols: n, row_idxs, col_idxs, values: vec![1.0; len] };
    one_conversion(bench, &format!("{len} entries in no order to csr"), &coo, Target::Csr)?;
    let csr = scattered(n, 16);
    for name in ["coo", "csc", "ell", "hybrid", "jds", "sell"] {
        let Some(target) = Target::named(name) else { continue };
        one_conversion(bench, &format!("{n} rows, 16 a row random, csr to {name}"), &csr, target)?;
    }
    one_conversion(bench, &format!("{n} rows, 16 a row random, csc to csr"), &csr.to_csc(), Target::Csr)
}

fn one_conversion(bench: &mut Bench, name: &str, from: &impl SparseMatrix, to: Target) -> Result<()> {
    let gpu = bench.gpu.clone();
    let a = gpu.upload_matrix(from)?;
    let b = gpu.convert_matrix(&a, to)?;
    for v in Spconvert::variants() {
        let plan = Spconvert::new(a.stored(), b.stored()).variant(v.name).plan::<f32>(&gpu)?;
        let cost = plan.program().cost;
        let case = Case { op: "spconvert", variant: v.name, dtype: "f32", size: name.into(), cost };
        bench.device(&case, |rec| plan.record(rec, &a, &b));
    }
    Ok(())
}
