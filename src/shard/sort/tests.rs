use super::{Separators, number};
use crate::{Gpu, shard};
use std::time::Duration;

/// Pieces of any number give the order of one device, also where keys are equal or a rank has none.
#[test]
fn exchanges_in_pieces_keep_the_order() {
    if Gpu::adapters().is_empty() {
        return;
    }
    let gpu = Gpu::new().unwrap();
    let n = 30_011u32;
    let random = |i: u32| i.wrapping_mul(2_654_435_761) ^ (i >> 3);
    let skewed = |i: u32| if i % 10 < 9 { 3 } else { i };
    let kinds: [(&str, &(dyn Fn(u32) -> u32 + Sync)); 4] =
        [("random", &random), ("skewed", &skewed), ("equal", &|_| 7), ("sorted", &|i| i)];
    for (kind, key) in kinds {
        let all: Vec<u32> = (0..n).map(key).collect();
        let mut want = all.clone();
        want.sort_unstable();
        for (ranks, pieces) in [(2, 4), (3, 3), (4, 2)] {
            // The first rank has half, the second nothing.
            let begin = |rank: usize| match rank {
                0 => 0,
                1 | 2 => all.len() / 2,
                rank if rank == ranks => all.len(),
                rank => all.len() * (rank + 2) / (ranks + 3),
            };
            let end = |rank: usize| if rank + 1 == ranks { all.len() } else { begin(rank + 1) };
            let gpus = vec![gpu.clone(); ranks];
            let sorted = shard::run(&gpus, Duration::from_secs(120), |rank| {
                let mine = &all[begin(rank.index())..end(rank.index())];
                let mine = rank.upload(mine)?;
                rank.sort_in_pieces(crate::Slice::from(&mine), false, |_| pieces)?.read()
            });
            let sorted = sorted.unwrap();
            let most = all.len().div_ceil(ranks) + all.len() / 1024;
            assert!(sorted.iter().all(|shard| shard.len() <= most), "{kind} keys on {ranks}: uneven shards");
            assert!(sorted.concat() == want, "{kind} keys on {ranks} in {pieces} pieces");
        }
    }
}

/// Cuts are exact among equal keys, and else at the nearest number.
#[test]
fn cuts_split_equal_keys_by_rank() {
    // Rank 0: 1 5 5 5 9; rank 1: 5 5 7.
    let separators =
        Separators { numbers: vec![5, 7], bounds: vec![vec![[1, 4], [4, 4]], vec![[0, 2], [2, 3]]], lens: vec![5, 3] };
    let wanted = [[0, 0], [1, 0], [2, 0], [3, 0], [4, 0], [4, 1], [4, 2], [4, 3], [5, 3]];
    for (target, want) in wanted.iter().enumerate() {
        assert_eq!(separators.cut(target), want, "{target}");
    }
    let nothing = Separators { numbers: Vec::new(), bounds: vec![Vec::new(); 2], lens: vec![4, 5] };
    assert_eq!([0, 4, 5, 9].map(|target| nothing.cut(target)), [[0, 0], [0, 0], [4, 5], [4, 5]].map(Vec::from));
}

/// The host numbers keys as kernels do.
#[test]
fn numbers_follow_the_order_of_keys() {
    let floats = [f32::NEG_INFINITY, -1.0, -0.0, 0.0, 1e-40, 2.0, f32::INFINITY, f32::NAN];
    let ascending = floats.map(|x| number(x, false));
    assert!(ascending.is_sorted_by(|a, b| a < b) && ascending[7] == u32::MAX);
    let descending = floats.map(|x| number(x, true));
    assert!(descending[..7].is_sorted_by(|a, b| a > b) && descending[7] == u32::MAX);
    assert_eq!([-1i32, 0, 1].map(|x| number(x, false)), [(1 << 31) - 1, 1 << 31, (1 << 31) + 1]);
    assert_eq!(number(7u32, true), !7);
}
