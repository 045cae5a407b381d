//! Products with sparse matrices in shards and conjugate gradients, against one device.

use super::{LIMIT, group};
use crate::support::{Random, assert_close, gpu, numbers};
use std::ops::Range;
use tilework::prelude::*;
use tilework::shard::{self, ShardedCg, balanced_rows};
use tilework::sparse::{Csr, Duplicates, Outcome};
use tilework::{ErrorKind, reference};

/// Some rows of a matrix.
fn rows_of(a: &Csr, rows: &Range<usize>) -> Csr {
    let entries = a.row_ptrs[rows.start] as usize..a.row_ptrs[rows.end] as usize;
    Csr {
        rows: rows.len(),
        cols: a.cols,
        row_ptrs: a.row_ptrs[rows.start..=rows.end].iter().map(|p| p - entries.start as u32).collect(),
        col_idxs: a.col_idxs[entries.clone()].to_vec(),
        values: a.values[entries].to_vec(),
    }
}

/// The matrix of the 7-point stencil on a grid.
fn poisson(side: usize) -> Csr {
    let n = side * side * side;
    let mut a = Csr { rows: n, cols: n, row_ptrs: vec![0], ..Csr::default() };
    for row in 0..n {
        let at = [row / side / side, row / side % side, row % side];
        let steps = [side * side, side, 1];
        let mut entries = vec![(row, 6.0)];
        for (x, step) in at.into_iter().zip(steps) {
            entries.extend((x > 0).then(|| (row - step, -1.0)));
            entries.extend((x + 1 < side).then(|| (row + step, -1.0)));
        }
        entries.sort_by_key(|e| e.0);
        a.col_idxs.extend(entries.iter().map(|e| e.0 as u32));
        a.values.extend(entries.iter().map(|e| e.1));
        a.row_ptrs.push(a.col_idxs.len() as u32);
    }
    a
}

/// A matrix with up to 8 entries in a row anywhere.
fn scattered(n: usize) -> Csr {
    let mut random = Random::new(n as u64);
    let mut list = tilework::sparse::Coo { rows: n, cols: n, ..Default::default() };
    for row in 0..n {
        for _ in 0..random.next() % 9 {
            list.row_idxs.push(row as u32);
            list.col_idxs.push((random.next() % n as u64) as u32);
            list.values.push(random.unit() as f32);
        }
    }
    Csr::from_triplets(&list, Duplicates::Sum).unwrap()
}

/// Balanced rows; one rank with all; empty ranks between others.
fn partitions(a: &Csr, p: usize) -> Vec<Vec<Range<usize>>> {
    let last = (0..p).map(|i| if i + 1 < p { 0..0 } else { 0..a.rows }).collect();
    let ends: Vec<usize> = (0..=p).map(|i| if i == p { a.rows } else { a.rows * (i / 2) / p }).collect();
    let gaps = ends.windows(2).map(|w| w[0]..w[1]).collect();
    vec![balanced_rows(&a.row_ptrs, p), last, gaps]
}

#[test]
fn products_match_the_reference() {
    for a in [poisson(5), scattered(300), scattered(1), poisson(9), scattered(3)] {
        let x: Vec<f32> = Random::new(8).elements(a.rows);
        let zeros = vec![0.0; a.rows];
        let want = reference::spmv(1.0, &a, &x, 0.0, &zeros).unwrap();
        let bound = reference::spmv_bound(1.0, &a, &x, 0.0, &zeros).unwrap();
        for p in 1..=5 {
            let Some(gpus) = group(p) else { return };
            for rows in partitions(&a, p) {
                let results = shard::run(&gpus, LIMIT, |rank| {
                    let mine = rows[rank.index()].clone();
                    let matrix = rank.matrix(&rows_of(&a, &mine))?;
                    let (there, y) = (rank.alloc::<f32>(matrix.vector_len())?, rank.gpu().alloc::<f32>(mine.len())?);
                    if !mine.is_empty() {
                        there.slice(..mine.len())?.write(&matrix.permute(&x[mine])?)?;
                    }
                    // Twice: halos are filled anew.
                    rank.spmv(&matrix, &there, &y)?;
                    rank.spmv(&matrix, &there, &y)?;
                    matrix.restore(&y.read()?)
                });
                let got = results.unwrap().concat();
                assert_close(&format!("{} rows on {p}", a.rows), &numbers(&got), &want, &bound);
            }
        }
    }
}

#[test]
fn rows_are_balanced_by_entries() {
    for a in [poisson(8), scattered(1000)] {
        for p in 1..=7 {
            let rows = balanced_rows(&a.row_ptrs, p);
            assert_eq!((rows.len(), rows[0].start, rows[p - 1].end), (p, 0, a.rows));
            assert!(rows.windows(2).all(|w| w[0].end == w[1].start));
            let work = |r: &Range<usize>| r.len() + (a.row_ptrs[r.end] - a.row_ptrs[r.start]) as usize;
            let mean = work(&(0..a.rows)) / p;
            assert!(rows.iter().all(|r| work(r).abs_diff(mean) <= 20), "{p}: {rows:?}");
        }
    }
    assert_eq!(balanced_rows(&[0], 3), [0..0, 0..0, 0..0]);
    assert_eq!(balanced_rows(&[0, 2], 3).iter().map(|r| r.len()).sum::<usize>(), 1);
}

#[test]
fn solutions_match_those_of_one_device() {
    let Some(gpu) = gpu() else { return };
    let a = poisson(9);
    let truth: Vec<f32> = Random::new(3).elements(a.rows);
    let b: Vec<f32> = reference::spmv(1.0, &a, &truth, 0.0, &truth).unwrap().into_iter().map(|x| x as f32).collect();
    let there = gpu.upload_matrix(&a).unwrap();
    let method = ConjugateGradient::new(there.layout()).tolerance(1e-5);
    let (b_there, x) = (gpu.upload(&b).unwrap(), gpu.alloc_zeroed::<f32>(a.rows).unwrap());
    let one = gpu.conjugate_gradient(&method).unwrap().solve(&there, &b_there, &x, |_, _| ()).unwrap();
    for p in 1..=4 {
        for rows in partitions(&a, p) {
            let results = shard::run(&group(p).unwrap(), LIMIT, |rank| {
                let mine = rows[rank.index()].clone();
                let matrix = rank.matrix(&rows_of(&a, &mine))?;
                let (mut x, mut told) = (vec![0.0; mine.len()], 0);
                let options = ShardedCg::default();
                let solution = rank.conjugate_gradient(&options, &matrix, &b[mine], &mut x, |i, residual| {
                    assert!(i == told && residual >= 0.0);
                    told += 1;
                })?;
                assert_eq!(solution.history.len(), told);
                Ok((solution, x))
            });
            let (solutions, parts): (Vec<_>, Vec<_>) = results.unwrap().into_iter().unzip();
            for solution in &solutions {
                assert_eq!(solution.outcome, Outcome::Converged, "{p}: {solution}");
                assert!(solution.iterations.abs_diff(one.iterations) <= 3, "{p}: {solution} and {one}");
                assert_eq!(solution, &solutions[0]);
            }
            let error = parts.concat().iter().zip(&truth).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(error < 1e-3, "{p}: {error}");
        }
    }
}

#[test]
fn failures_have_an_outcome() {
    let Some(gpus) = group(2) else { return };
    let solve = |values: [f32; 2], b: [f32; 2], options: ShardedCg| {
        let results = shard::run(&gpus, LIMIT, |rank| {
            let r = rank.index();
            let rows =
                Csr { rows: 1, cols: 2, row_ptrs: vec![0, 1], col_idxs: vec![r as u32], values: vec![values[r]] };
            let matrix = rank.matrix(&rows)?;
            let mut x = [0.0];
            rank.conjugate_gradient(&options, &matrix, &b[r..=r], &mut x, |_, _| ()).map(|s| (s, x[0]))
        });
        results.map(|r| (r[0].0.clone(), [r[0].1, r[1].1]))
    };
    let options = ShardedCg::default();
    let (none, x) = solve([1.0, 2.0], [0.0, 0.0], options).unwrap();
    assert_eq!((none.outcome, none.iterations, x), (Outcome::Converged, 0, [0.0, 0.0]));
    let (bad, _) = solve([1.0, -5.0], [1.0, 1.0], options).unwrap();
    assert!(matches!(bad.outcome, Outcome::NotPositiveDefinite(c) if c < 0.0), "{bad}");
    let (infinite, _) = solve([1.0, f32::NAN], [1.0, 1.0], options).unwrap();
    assert_eq!(infinite.outcome, Outcome::NotFinite);
    let (limited, _) = solve([1.0, 2.0], [1.0, 1.0], options.iterations(1)).unwrap();
    assert_eq!((limited.outcome, limited.iterations), (Outcome::Limit, 1));
    for bad in [options.tolerance(-1.0), options.iterations(0)] {
        assert_eq!(solve([1.0, 1.0], [1.0, 1.0], bad).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn rejects_matrices_that_are_not_square() {
    let Some(gpus) = group(2) else { return };
    let rows = Csr { rows: 2, cols: 3, row_ptrs: vec![0, 0, 0], ..Csr::default() };
    let results = shard::run_each(&gpus, LIMIT, |rank| rank.matrix(&rows).map(|_| ()));
    assert!(results.unwrap().into_iter().all(|r| r.unwrap_err().kind() == ErrorKind::Shape));
}
