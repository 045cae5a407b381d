//! The sample sort against the sort of one device.

use super::{LIMIT, cuts, group};
use crate::support::{Random, Sample, gpu};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::stream::SortKey;
use tilework::{ErrorKind, shard};

/// Sorts on one device and on 1 to 5 ranks; compares bits and the lengths of shards.
fn check<T: Sample + SortKey>(all: &[T], descending: bool, what: &str)
where
    RadixSort: Op<T>,
    Merge: Op<T>,
    Gather: Op<T>,
{
    let Some(gpu) = gpu() else { return };
    let (keys, sorted) = (gpu.upload(all).unwrap(), gpu.alloc::<T>(all.len()).unwrap());
    let mut rec = gpu.recorder();
    let sort = RadixSort::new(all.len()).when(descending, RadixSort::descending).plan::<T>(gpu).unwrap();
    sort.record(&mut rec, &keys, &sorted).unwrap();
    rec.submit().unwrap();
    let want = sorted.read().unwrap();
    for p in 1..=5 {
        let gpus = group(p).unwrap();
        for shards in cuts(all, p) {
            let results = shard::run(&gpus, LIMIT, |rank| {
                let shard = rank.upload(&shards[rank.index()])?;
                if descending { rank.sort_descending(&shard)?.read() } else { rank.sort(&shard)?.read() }
            });
            let results = results.unwrap();
            let allowed = if p == 1 { all.len() } else { all.len() / p + 1 + all.len() / 1024 };
            assert!(results.iter().all(|shard| shard.len() <= allowed), "{what} on {p}: uneven shards");
            let got = results.concat();
            assert!(
                bytemuck::cast_slice::<T, u8>(&got) == bytemuck::cast_slice::<T, u8>(&want),
                "{what} on {p}: wrong order"
            );
        }
    }
}

#[test]
fn keys_have_the_order_of_one_device() {
    for n in [0, 1, 2, 3, 1000] {
        check::<u32>(&Random::new(n as u64).any(n), n % 2 == 0, &format!("{n} u32"));
        check::<i32>(&Random::new(n as u64).any(n), false, &format!("{n} i32"));
    }
    // Any bits: NaN, infinities and zeros of both signs.
    let mut floats: Vec<f32> = Random::new(1).any(3000);
    for (i, x) in floats.iter_mut().enumerate() {
        match i % 7 {
            0 => *x = 0.0,
            1 => *x = -0.0,
            2 => *x = f32::from_bits(0x7fc0_0000 + i as u32),
            _ => {}
        }
    }
    check::<f32>(&floats, false, "floats");
    check::<f32>(&floats, true, "floats, descending");
}

/// More keys than samples, so that cuts lie between samples.
#[test]
fn cuts_between_samples_are_found() {
    let n = 70_000;
    check::<u32>(&Random::new(5).any(n), false, "random keys");
}

#[test]
fn equal_and_skewed_keys_are_balanced() {
    let n = 50_000;
    check::<u32>(&vec![7; n], false, "equal keys");
    let skewed: Vec<u32> = (0..n as u32).map(|i| if i % 10 < 9 { 3 } else { i }).collect();
    check::<u32>(&skewed, true, "skewed keys");
    let sorted: Vec<u32> = (0..n as u32).collect();
    check::<u32>(&sorted, false, "sorted keys");
}

#[test]
fn rejects_ranks_that_sort_differently() {
    let Some(gpus) = group(2) else { return };
    let results = shard::run_each(&gpus, LIMIT, |rank| {
        let keys = rank.upload(&[1u32, 2])?;
        if rank.index() == 1 { rank.sort_descending(&keys) } else { rank.sort(&keys) }
    });
    assert!(results.unwrap().into_iter().all(|r| r.unwrap_err().kind() == ErrorKind::InvalidArgument));
}
