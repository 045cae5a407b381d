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
    let kinds: [(&str, &(dyn Fn(u32) -> u32 + Sync)); 3] =
        [("random", &random), ("skewed", &skewed), ("equal", &|_| 7)];
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
            assert!(sorted.unwrap().concat() == want, "{kind} keys on {ranks} in {pieces} pieces");
        }
    }
}
