//! Products of matrices in blocks, against the reference.

use super::{LIMIT, group};
use crate::support::{Random, Sample, assert_close, gpu, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::gemm_bound;
use tilework::shard::{self, Block, Blocks};
use tilework::{Element, ErrorKind, Gpu, reference};

/// The elements of a block of a matrix with `columns` columns.
fn cut<T: Element>(all: &[T], columns: usize, [rows, range]: &Block) -> Vec<T> {
    rows.clone().flat_map(|r| all[r * columns + range.start..r * columns + range.end].to_vec()).collect()
}

fn check<T: Sample + Into<f64>>(shape: [usize; 3])
where
    Gemm: Op<T>,
{
    (1..=6).filter_map(group).for_each(|gpus| check_on::<T>(&gpus, shape));
}

fn check_on<T: Sample + Into<f64>>(gpus: &[Gpu], [m, n, k]: [usize; 3])
where
    Gemm: Op<T>,
{
    let p = gpus.len();
    let mut random = Random::new((m + n + k) as u64);
    let (a, b) = (random.elements::<T>(m * k), random.elements::<T>(k * n));
    let description = Gemm::new(m, n, k);
    let want = reference::gemm(&description, &a, &b, None, &vec![T::default(); m * n]).unwrap();
    let bound = gemm_bound(&description, &a, &b, None, &vec![T::default(); m * n]).unwrap();
    let blocks = Blocks::new(m, n, k, p);
    let results = shard::run(gpus, LIMIT, |rank| {
        let (of_a, of_b) = (blocks.a(rank.index()), blocks.b(rank.index()));
        let (a, b) = (rank.upload(&cut(&a, k, &of_a))?, rank.upload(&cut(&b, n, &of_b))?);
        rank.gemm(&blocks, &a, &b)?.read()
    });
    let results = results.unwrap();
    let mut got = vec![T::default(); m * n];
    for (rank, block) in results.iter().enumerate() {
        let [rows, columns] = blocks.c(rank);
        assert_eq!(block.len(), rows.len() * columns.len());
        for (i, row) in rows.enumerate() {
            let from = &block[i * columns.len()..(i + 1) * columns.len()];
            got[row * n + columns.start..row * n + columns.end].copy_from_slice(from);
        }
    }
    // Parts of k round once each.
    let rounding = if T::DTYPE.size() == 2 { 2f64.powi(-10) * p as f64 * 8.0 } else { 0.0 };
    let bound: Vec<f64> = bound.iter().zip(&want).map(|(b, w)| 2.0 * b + rounding * (1.0 + w.abs())).collect();
    assert_close(&format!("{m} x {n} x {k} of {} on {p}", T::DTYPE), &numbers(&got), &want, &bound);
}

/// Each matrix takes several bindings: of A and C rows are cut, of B k.
#[test]
fn blocks_above_a_binding_are_multiplied_in_bands() {
    const BINDING: u64 = 64 << 10;
    let Some(gpu) = crate::runtime::gpu_with_bindings(BINDING) else { return };
    assert_eq!(gpu.profile().limits.max_storage_binding, BINDING);
    for p in [1, 2] {
        for shape in [[300, 200, 260], [700, 128, 30], [40, 128, 600], [257, 1, 200]] {
            check_on::<f32>(&vec![gpu.clone(); p], shape);
        }
    }
    // No band of 256 rows of k fits.
    let blocks = Blocks::new(1, 20_000, 2, 1);
    let refused = shard::run(&[gpu], LIMIT, |rank| {
        rank.gemm(&blocks, &rank.upload(&[1.0f32; 2])?, &rank.upload(&vec![1.0f32; 40_000])?).map(|_| ())
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn products_match_the_reference() {
    for shape in [[1, 1, 1], [64, 96, 128], [37, 41, 53], [3, 70, 5], [5, 4, 0], [2, 300, 129]] {
        check::<f32>(shape);
    }
    if gpu().is_some_and(|gpu| gpu.profile().features.f16) {
        check::<f16>([37, 41, 53]);
        check::<f16>([16, 64, 128]);
    }
}

#[test]
fn blocks_cover_each_matrix_once() {
    for p in 1..=8 {
        let blocks = Blocks::new(13, 17, 5, p);
        for (rows, columns, of) in
            [(13, 5, Blocks::a as fn(&Blocks, usize) -> Block), (5, 17, Blocks::b), (13, 17, Blocks::c)]
        {
            let mut seen = vec![0; rows * columns];
            for rank in 0..p {
                let [r, c] = of(&blocks, rank);
                r.for_each(|r| c.clone().for_each(|c| seen[r * columns + c] += 1));
            }
            assert!(seen.iter().all(|n| *n == 1), "{p} ranks");
        }
    }
}

#[test]
fn rejects_blocks_of_other_sizes() {
    let Some(gpus) = group(2) else { return };
    let refused = |blocks: Blocks, len: [usize; 2]| {
        let results = shard::run_each(&gpus, LIMIT, |rank| {
            let (a, b) = (rank.upload(&vec![1.0f32; len[rank.index()]])?, rank.upload(&[1.0f32; 8])?);
            rank.gemm(&blocks, &a, &b).map(|_| ())
        });
        results.unwrap().into_iter().map(|r| r.unwrap_err().kind()).collect::<Vec<_>>()
    };
    assert_eq!(refused(Blocks::new(4, 4, 4, 3), [8, 8]), [ErrorKind::Shape; 2]);
    assert_eq!(refused(Blocks::new(4, 4, 4, 2), [7, 9]), [ErrorKind::Shape; 2]);
    let results = shard::run_each(&gpus, LIMIT, |rank| {
        let blocks = Blocks::new(4, 4, 4 + 4 * rank.index(), 2);
        rank.gemm(&blocks, &rank.upload(&[1.0f32; 8])?, &rank.upload(&[1.0f32; 8])?).map(|_| ())
    });
    assert!(results.unwrap().into_iter().all(|r| r.unwrap_err().kind() == ErrorKind::InvalidArgument));
}
