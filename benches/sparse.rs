//! Sparse matrices.

#![allow(clippy::expect_used, reason = "a benchmark that cannot run panics")]

mod support;

use half::f16;
use support::{Bench, Case, centred, random};
use tilework::DType;
use tilework::Result;
use tilework::io::matrix_market::{self, Matrix};
use tilework::prelude::*;
use tilework::sparse::{
    ConjugateGradient, Coo, Csr, Duplicates, Format, MatrixLayout, PADDING, PageRank, Preconditioner, SparseMatrix,
    Spinsert, Target,
};

/// Makes a matrix with this number of rows.
type Maker = fn(usize) -> Csr;

fn main() -> Result<()> {
    support::groups(&[
        ("spmv", spmv),
        ("formats", formats),
        ("spmv-tiles", spmv_tiles),
        ("spconvert", spconvert),
        ("spinsert", spinsert),
        ("real", real),
        ("solve", solve),
        ("spmm", spmm),
    ])
}

/// The next number of a small generator (Numerical Recipes).
fn next(state: &mut u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> 4
}

/// Makes a square matrix; `columns` adds each row's columns.
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

/// `len` entries in each row, in random columns.
fn scattered(n: usize, len: usize) -> Csr {
    square(n, |_, state, cols| {
        let first = cols.len();
        cols.extend((0..len).map(|_| next(state) % n as u32));
        cols[first..].sort_unstable();
    })
}

/// `len` entries in each row, around the diagonal.
fn banded(n: usize, len: usize) -> Csr {
    square(n, |row, _, cols| {
        let first = row.saturating_sub(len / 2).min(n - len);
        cols.extend((first..first + len).map(|col| col as u32));
    })
}

/// Row lengths follow a Pareto distribution with exponent 1.3 and mean 16 before the longest are cut; the first columns
/// have most entries.
fn power_law(n: usize) -> Csr {
    let unit = |state: &mut u32| (f64::from(next(state)) + 0.5) / f64::from(1 << 28);
    let mut state = 7;
    let weights: Vec<f64> = (0..n).map(|_| unit(&mut state).powf(-1.0 / 1.3)).collect();
    let scale = 16.0 * n as f64 / weights.iter().sum::<f64>();
    square(n, |row, state, cols| {
        let len = ((weights[row] * scale) as usize + 1).min(200_000);
        let mut row: Vec<u32> = (0..len).map(|_| (unit(state).powi(2) * n as f64) as u32).collect();
        row.sort_unstable();
        row.dedup();
        cols.append(&mut row);
    })
}

/// The diagonal, a dense row and a dense column.
fn arrow(n: usize) -> Csr {
    square(n, |row, _, cols| if row == 0 { cols.extend(0..n as u32) } else { cols.extend([0, row as u32]) })
}

/// Every format and variant that fits, on six kinds of matrices.
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
        let formats = ["coo", "csc", "ell", "hybrid", "jds", "sell"];
        every_format(bench, &format!("{n} rows, {name}"), &matrix(n), &formats)?;
    }
    Ok(())
}

/// `rows` x `cols`, with `len(row)` entries in a row, at equal distances.
fn spread(rows: usize, cols: usize, len: impl Fn(usize) -> usize) -> Csr {
    let mut csr = Csr { rows, cols, row_ptrs: vec![0], ..Csr::default() };
    for row in 0..rows {
        let len = len(row).min(cols);
        csr.col_idxs.extend((0..len).map(|i| ((i * cols + row % 7) / len.max(1)).min(cols - 1) as u32));
        csr.row_ptrs.push(csr.col_idxs.len() as u32);
    }
    csr.values = (0..csr.col_idxs.len()).map(|i| centred(i as u32)).collect();
    csr
}

/// Matrices of every kind, in every format: what `Statistics::format` chooses among. And few columns of dense matrices.
fn formats(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 20, 1 << 10);
    let few = bench.scale(300, 30);
    let matrices = [
        (format!("{few} rows, 20000 each"), spread(few, n, |_| 20_000)),
        (format!("{} rows, 200000 each", few / 10), spread(few / 10, n, |_| 200_000)),
        (format!("{} rows, 2000 each", few * 10), spread(few * 10, n, |_| 2000)),
        (format!("{} rows, 300 each", few * 100), spread(few * 100, n, |_| 300)),
        (format!("{few} rows, 0 to 40000"), spread(few, n, |row| row * 40_000 / few)),
        (format!("{n} rows, 3 to 10"), spread(n, n, |row| 3 + row * 5 % 8)),
        (format!("{n} rows, 1 of 4"), spread(n, n, |row| usize::from(row % 4 == 0))),
        (format!("{} rows, 16 each", n / 64), scattered(n / 64, 16)),
        (format!("{n} rows, 5 banded"), banded(n, 5)),
        (format!("{} rows, power law", n / 8), power_law(n / 8)),
        (format!("{} rows, arrow", n / 4), arrow(n / 4)),
        (format!("{} rows, triangle", n / 256), square(n / 256, |row, _, cols| cols.extend(0..=row as u32))),
    ];
    for (name, csr) in &matrices {
        every_format(bench, name, csr, &["coo", "ell", "hybrid", "jds", "sell"])?;
    }
    for at in [0, 1, 2, 9] {
        let (name, csr) = &matrices[at];
        one_product(bench, name, csr, &[1, 2, 4, 8, 32])?;
    }
    Ok(())
}

/// Every variant on a matrix, converted to each format on the device.
fn every_format(bench: &mut Bench, name: &str, csr: &Csr, formats: &[&str]) -> Result<()> {
    let gpu = bench.gpu.clone();
    let a = gpu.upload_matrix(csr)?;
    one_matrix(bench, name, "f32", &a)?;
    for &format in formats {
        let Some(target) = Target::named(format) else { continue };
        // One long row would make all rows long.
        if target != Target::Ell || a.layout().longest * csr.rows <= 4 * csr.entries() {
            one_matrix(bench, name, "f32", &gpu.convert_matrix(&a, target)?)?;
        }
    }
    one_matrix(bench, name, "f16", &gpu.upload_matrix_f16(csr)?)
}

/// Every format and variant that fits, with dense matrices of several widths.
fn spmm(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 20, 1 << 10);
    let csr = scattered(n, 16);
    let name = format!("{n} rows, 16 a row random");
    one_product(bench, &name, &csr, &[32, 128, 33])?;
    one_product(bench, &name, &csr.to_coo()?, &[32])?;
    one_product(bench, &name, &csr.to_csc()?, &[32])?;
    one_product(bench, &name, &csr.to_jds()?, &[32])?;
    one_product(bench, &name, &csr.to_sell(32, 1024)?, &[32])?;
    one_product(bench, &name, &csr.to_hybrid(csr.analyse().hybrid_width)?, &[32])?;
    one_product(bench, &name, &csr.to_ell()?, &[32])?;
    one_product(bench, &format!("{n} rows, power law"), &power_law(n), &[32])
}

/// `Spmm` with one matrix, for both types of values.
fn one_product(bench: &mut Bench, name: &str, matrix: &impl SparseMatrix, columns: &[usize]) -> Result<()> {
    let gpu = bench.gpu.clone();
    for (dtype, a) in [("f32", gpu.upload_matrix(matrix)?), ("f16", gpu.upload_matrix_f16(matrix)?)] {
        let stored = a.layout();
        for &n in columns {
            let (b, c) = (random(&gpu, stored.cols * n, centred)?, gpu.alloc::<f32>(stored.rows * n)?);
            let size = format!("{name}, {n} columns");
            for v in Spmm::variants() {
                // Skip variants of other formats.
                let Ok(plan) = Spmm::new(stored, n).variant(v.name).plan::<f32>(&gpu) else { continue };
                let case = Case { op: "spmm", variant: v.name, dtype, size: size.clone(), cost: plan.program().cost };
                bench.device(&case, |rec| plan.record(rec, &a, &b, &c));
            }
        }
    }
    Ok(())
}

/// `Spmv` with one matrix, in the variants of its format.
fn one_matrix(bench: &mut Bench, name: &str, dtype: &str, a: &DeviceMatrix) -> Result<()> {
    let gpu = bench.gpu.clone();
    let stored = a.layout();
    let (x, y) = (random(&gpu, stored.cols, centred)?, gpu.alloc::<f32>(stored.rows)?);
    for v in Spmv::variants() {
        // The atomic of a long row takes seconds.
        if v.name.ends_with("atomic") && stored.longest > 1 << 12 {
            continue;
        }
        // Skip variants of other formats.
        let Ok(plan) = Spmv::new(stored).variant(v.name).plan::<f32>(&gpu) else { continue };
        let case = Case { op: "spmv", variant: v.name, dtype, size: name.into(), cost: plan.program().cost };
        bench.device(&case, |rec| plan.record(rec, a, &x, &y));
    }
    Ok(())
}

/// Candidates for the policy of variants that balance work.
fn spmv_tiles(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 20, 1 << 12);
    let gpu = bench.gpu.clone();
    let matrices: [(&str, Maker); 3] =
        [("power law", power_law), ("arrow", arrow), ("16 a row banded", |n| banded(n, 16))];
    for (name, matrix) in matrices {
        let csr = gpu.upload_matrix(&matrix(n))?;
        let coo = gpu.convert_matrix(&csr, Target::Coo)?;
        let (x, y) = (random(&gpu, n, centred)?, gpu.alloc::<f32>(n)?);
        for (variant, a, tiles) in [("csr-merge", &csr, &MERGE_TILES[..]), ("coo", &coo, &COO_TILES[..])] {
            for &(workgroup_size, items) in tiles {
                let op = Spmv::new(a.layout()).variant(variant).tile(workgroup_size, items);
                let Ok(plan) = op.plan::<f32>(&gpu) else { continue };
                let (variant, cost) = (format!("{variant} {workgroup_size}x{items}"), plan.program().cost);
                let size = format!("{n} rows, {name}");
                let case = Case { op: "spmv", variant: &variant, dtype: "f32", size, cost };
                bench.device(&case, |rec| plan.record(rec, a, &x, &y));
            }
        }
    }
    Ok(())
}

/// For [`spmv_tiles`].
const MERGE_TILES: [(u32, u32); 9] =
    [(256, 4), (256, 8), (256, 12), (256, 16), (128, 4), (128, 8), (128, 16), (64, 8), (64, 16)];
const COO_TILES: [(u32, u32); 5] = [(256, 3), (256, 5), (128, 3), (128, 5), (64, 5)];

/// Unsorted coordinates to compressed rows, and compressed rows to every format.
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
    one_conversion(bench, &format!("{n} rows, 16 a row random, csc to csr"), &csr.to_csc()?, Target::Csr)
}

fn one_conversion(bench: &mut Bench, name: &str, from: &impl SparseMatrix, to: Target) -> Result<()> {
    let gpu = bench.gpu.clone();
    let a = gpu.upload_matrix(from)?;
    let b = gpu.convert_matrix(&a, to)?;
    for v in Spconvert::variants() {
        let plan = Spconvert::new(a.layout(), b.layout()).variant(v.name).plan::<f32>(&gpu)?;
        let cost = plan.program().cost;
        let case = Case { op: "spconvert", variant: v.name, dtype: "f32", size: name.into(), cost };
        bench.device(&case, |rec| plan.record(rec, &a, &b));
    }
    Ok(())
}

/// New entries: behind coordinates, and into free slots of rows that are half full. The entries are padding, so that
/// the slots stay free and every run does the same.
fn spinsert(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let n = bench.scale(1 << 20, 1 << 12);
    let more = n / 4;
    let mut state = 3;
    let rows: Vec<u32> = (0..more).map(|_| next(&mut state) % n as u32).collect();
    let (row_idxs, col_idxs) = (gpu.upload(&rows)?, gpu.upload(&vec![PADDING; more])?);
    let missing = gpu.alloc::<u32>(1)?;
    let (entries, cols) = (16 * n, u32::MAX as usize);
    for (dtype, values) in [("f32", DType::F32), ("f16", DType::F16)] {
        for v in Spinsert::variants() {
            let ell = Format::Ell { width: 32 };
            let format = if v.name == ell.name() { ell } else { Format::Coo { sorted: true } };
            let matrix = MatrixLayout { rows: n, cols, entries, longest: 16, format, values };
            let plan = Spinsert::new(matrix, more).variant(v.name).plan::<f32>(&gpu)?;
            let operands = &plan.program().operands;
            let filled = gpu.upload(&(0..32 * n).map(|i| if i < entries { 1 } else { PADDING }).collect::<Vec<_>>())?;
            let rows = gpu.alloc::<u32>(operands[0].len)?;
            let floats = [gpu.alloc::<f32>(32 * n)?, random(&gpu, more, centred)?];
            let halves = [gpu.alloc_zeroed::<f16>(32 * n)?, gpu.alloc_zeroed::<f16>(more)?];
            let value = |at: usize, len| match values {
                DType::F16 => Ok(halves[at].slice(..len)?.untyped()),
                _ => tilework::Result::Ok(floats[at].slice(..len)?.untyped()),
            };
            let mut slices = vec![];
            for (i, operand) in operands.iter().enumerate().take(operands.len() - 4) {
                slices.push(match operand.name {
                    "row_idxs" => rows.slice(..)?.untyped(),
                    "col_idxs" => filled.slice(..operand.len)?.untyped(),
                    _ => value(0, operands[i].len)?,
                });
            }
            slices.extend([row_idxs.slice(..)?.untyped(), col_idxs.slice(..)?.untyped(), value(1, more)?]);
            slices.push(missing.slice(..)?.untyped());
            let size = format!("{n} rows, 16 a row, {more} more");
            let case = Case { op: "spinsert", variant: v.name, dtype, size, cost: plan.program().cost };
            let executable = plan.into_executable();
            bench.device(&case, |rec| executable.record(rec, &slices));
        }
    }
    Ok(())
}

/// Real matrices from the folder TILEWORK_SPARSE: each alone, where a cache may hold it, and repeated along the
/// diagonal until no cache does. Skips small ones, which measure only a launch.
fn real(bench: &mut Bench) -> Result<()> {
    let Some(folder) = std::env::var_os("TILEWORK_SPARSE") else {
        println!("real: skipped; TILEWORK_SPARSE names the folder of the matrices (.ci/oracles fetches them)");
        return Ok(());
    };
    let listed = std::fs::read_dir(&folder).expect("TILEWORK_SPARSE names a folder");
    let mut paths: Vec<_> = listed.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "mtx"));
    paths.sort();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Matrix::Sparse(triplets) = matrix_market::read_file(&path)? else { continue };
        let csr = Csr::from_triplets(&triplets, Duplicates::Sum)?;
        if csr.entries() < 10_000 {
            continue;
        }
        let formats = ["coo", "ell", "hybrid", "jds", "sell"];
        every_format(bench, &format!("{name}, resident"), &csr, &formats)?;
        let copies = bench.scale(1usize << 23, 1 << 18).div_ceil(csr.entries());
        every_format(bench, &format!("{name}, repeated"), &repeated(&csr, copies), &formats)?;
    }
    Ok(())
}

/// Copies of a matrix along the diagonal.
fn repeated(csr: &Csr, copies: usize) -> Csr {
    let mut all = Csr { rows: csr.rows * copies, cols: csr.cols * copies, row_ptrs: vec![0], ..Csr::default() };
    for copy in 0..copies {
        let (entries, col) = ((copy * csr.entries()) as u32, (copy * csr.cols) as u32);
        all.row_ptrs.extend(csr.row_ptrs[1..].iter().map(|ptr| ptr + entries));
        all.col_idxs.extend(csr.col_idxs.iter().map(|c| c + col));
        all.values.extend(&csr.values);
    }
    all
}

/// The negative Laplacian on n x n points.
fn laplacian(n: usize) -> Csr {
    let points = n * n;
    let mut csr = Csr { rows: points, cols: points, row_ptrs: vec![0], ..Csr::default() };
    for point in 0..points {
        let (x, y) = (point % n, point / n);
        let near = [
            (y > 0).then(|| point - n),
            (x > 0).then(|| point - 1),
            Some(point),
            (x + 1 < n).then(|| point + 1),
            (y + 1 < n).then(|| point + n),
        ];
        for col in near.into_iter().flatten() {
            csr.col_idxs.push(col as u32);
            csr.values.push(if col == point { 4.0 } else { -1.0 });
        }
        csr.row_ptrs.push(csr.col_idxs.len() as u32);
    }
    csr
}

/// A batch of iterations of each solver on an n x n grid in two formats, including the negligible start. Also a whole
/// solution, timed on the host.
fn solve(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1024, 64);
    let batch = bench.scale(64, 16);
    let csr = laplacian(n);
    let gpu = bench.gpu.clone();
    // Each entry is a link of equal weight.
    let t = Csr { values: vec![1.0; csr.entries()], ..csr.clone() }.transitions()?;
    let rows = n * n;
    let (b, x) = (random(&gpu, rows, centred)?, gpu.alloc_zeroed::<f32>(rows)?);
    let size = |format: &str| format!("{n} x {n} grid, {format}, {batch} iterations");
    for (format, a, t) in [
        ("csr", gpu.upload_matrix(&csr)?, gpu.upload_matrix(&t)?),
        ("ell", gpu.upload_matrix(&csr.to_ell()?)?, gpu.upload_matrix(&t.to_ell()?)?),
    ] {
        let cg = ConjugateGradient::new(a.layout()).tolerance(0.0).check_every(batch);
        for (variant, cg) in [("cg", cg.clone()), ("cg-jacobi", cg.clone().preconditioner(Preconditioner::Jacobi))] {
            let solver = gpu.conjugate_gradient(&cg)?;
            let case = Case { op: "solve", variant, dtype: "f32", size: size(format), cost: solver.program().cost };
            bench.device(&case, |rec| {
                // Start from the same guess, so that no run converges.
                rec.clear(&x)?;
                solver.record_start(rec, &a, &b, &x)?;
                solver.record_steps(rec, &a, &b, &x)
            });
            let iterations = 8 * batch;
            let solver = gpu.conjugate_gradient(&cg.iterations(iterations).check_every(16))?;
            bench.host(&format!("solve/{variant}/{n} x {n} grid, {format}, {iterations} iterations"), || {
                let mut rec = gpu.recorder();
                rec.clear(&x).and_then(|()| rec.submit()).expect("clears");
                let solution = solver.solve(&a, &b, &x, |_, _| ()).expect("runs");
                assert_eq!(solution.iterations, iterations);
            });
        }
        let power = gpu.power_iteration(&PowerIteration::new(a.layout()).tolerance(0.0).check_every(batch))?;
        let cost = power.program().cost;
        let case = Case { op: "solve", variant: "power-iteration", dtype: "f32", size: size(format), cost };
        bench.device(&case, |rec| {
            rec.copy(&b, &x)?;
            power.record_start(rec, &a, &x)?;
            power.record_steps(rec, &a, &x)
        });
        let rank = gpu.page_rank(&PageRank::new(t.layout()).tolerance(0.0).check_every(batch))?;
        let cost = rank.program().cost;
        let case = Case { op: "solve", variant: "page-rank", dtype: "f32", size: size(format), cost };
        bench.device(&case, |rec| {
            rank.record_start(rec, &t, None, &x)?;
            rank.record_steps(rec, &t, None, &x)
        });
    }
    Ok(())
}
