//! Reductions, histograms, scans and selections of shards.

use super::{LIMIT, cuts, group};
use crate::support::coverage::sample;
use crate::support::{Random, gpu};
use tilework::prelude::*;
use tilework::{ErrorKind, shard};

const LENS: [usize; 4] = [1, 2, 257, 5000];

#[test]
fn integers_have_the_bits_of_one_device() {
    let Some(gpu) = gpu() else { return };
    for n in LENS {
        let all: Vec<u32> = Random::new(n as u64).elements(n);
        let x = gpu.upload(&all).unwrap();
        let k = n.min(20);
        let (best, places) = gpu.top_k(&x, k).unwrap();
        let (best, places) = (best.read().unwrap(), places.read().unwrap());
        let one = (
            gpu.reduce(&x, Sum).unwrap().read().unwrap()[0],
            gpu.reduce(&x, Min).unwrap().read().unwrap()[0],
            gpu.inclusive_scan(&x, Sum).unwrap().read().unwrap(),
            gpu.exclusive_scan(&x, Max).unwrap().read().unwrap(),
            gpu.histogram(&x, 10, 0.0, 4e9).unwrap().read().unwrap(),
        );
        for &p in sample(&[2, 5, 1, 3, 4], 2) {
            let gpus = group(p).unwrap();
            for shards in cuts(&all, p) {
                let results = shard::run(&gpus, LIMIT, |rank| {
                    let own = rank.gpu().upload(&shards[rank.index()])?;
                    let top = rank.top_k(&own, k)?;
                    assert_eq!(top.0, best, "{n} on {p}");
                    assert!(top.1.iter().zip(&places).all(|(a, b)| *a == u64::from(*b)), "{n} on {p}");
                    assert_eq!((rank.reduce(&own, Sum)?, rank.reduce(&own, Min)?), (one.0, one.1));
                    let counts = rank.histogram(&own, 10, 0.0, 4e9)?;
                    assert!(counts.iter().zip(&one.4).all(|(a, b)| *a == u64::from(*b)), "{n} on {p}");
                    Ok((rank.inclusive_scan(&own, Sum)?.read()?, rank.exclusive_scan(&own, Max)?.read()?))
                });
                let (inclusive, exclusive): (Vec<_>, Vec<_>) = results.unwrap().into_iter().unzip();
                assert_eq!(inclusive.concat(), one.2, "{n} on {p}");
                assert_eq!(exclusive.concat(), one.3, "{n} on {p}");
            }
        }
    }
}

/// Whole numbers, which no order of sums rounds.
#[test]
fn floats_are_reduced_and_scanned() {
    let all: Vec<f32> = (0..3000).map(|i| ((i * 37) % 41) as f32 - 20.0).collect();
    let scan: Vec<f32> = all
        .iter()
        .scan(0.0, |sum, x| {
            Some({
                *sum += x;
                *sum
            })
        })
        .collect();
    for p in 1..=4 {
        let Some(gpus) = group(p) else { return };
        for shards in cuts(&all, p) {
            let results = shard::run(&gpus, LIMIT, |rank| {
                let own = rank.gpu().upload(&shards[rank.index()])?;
                assert_eq!(rank.reduce(&own, Max)?, 20.0);
                assert_eq!(rank.reduce(&own, Sum)?, *scan.last().unwrap());
                rank.inclusive_scan(&own, Sum)?.read()
            });
            assert_eq!(results.unwrap().concat(), scan);
        }
    }
}

#[test]
fn no_elements_have_the_identity_or_none() {
    let Some(gpus) = group(3) else { return };
    let sums = shard::run(&gpus, LIMIT, |rank| {
        let none = rank.gpu().alloc::<f32>(0)?;
        assert_eq!(rank.inclusive_scan(&none, Sum)?.len(), 0);
        assert_eq!(rank.histogram(&none, 3, 0.0, 1.0)?, [0, 0, 0]);
        rank.reduce(&none, Sum)
    });
    assert_eq!(sums.unwrap(), [0.0; 3]);
    let refused = shard::run(&gpus, LIMIT, |rank| rank.reduce(&rank.gpu().alloc::<f32>(0)?, Min));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Shape);
}

#[test]
fn rejects_what_does_not_combine() {
    let Some(gpus) = group(2) else { return };
    let kinds = |work: &(dyn Fn(&shard::Rank<shard::Local>) -> tilework::Result<()> + Sync)| {
        let results = shard::run_each(&gpus, LIMIT, work).unwrap();
        results.into_iter().map(|r| r.unwrap_err().kind()).collect::<Vec<_>>()
    };
    let own = |rank: &shard::Rank<shard::Local>| rank.gpu().upload(&[1.0f32, 2.0]);
    assert_eq!(
        kinds(&|rank| rank.reduce::<u32, _, _>(&rank.gpu().upload(&[1u32])?, ArgMax).map(|_| ())),
        [ErrorKind::Unsupported; 2]
    );
    assert_eq!(kinds(&|rank| rank.top_k(&own(rank)?, 5).map(|_| ())), [ErrorKind::InvalidArgument; 2]);
    assert_eq!(kinds(&|rank| rank.top_k(&own(rank)?, 0).map(|_| ())), [ErrorKind::InvalidArgument; 2]);
    assert_eq!(kinds(&|rank| rank.top_k(&own(rank)?, 1 + rank.index()).map(|_| ())), [ErrorKind::InvalidArgument; 2]);
    assert_eq!(
        kinds(&|rank| rank.histogram(&own(rank)?, 4 + rank.index(), 0.0, 1.0).map(|_| ())),
        [ErrorKind::InvalidArgument; 2]
    );
    let bytes = |rank: &shard::Rank<shard::Local>| rank.inclusive_scan(&rank.gpu().upload(&[1u8])?, Max).map(|_| ());
    assert_eq!(kinds(&bytes), [ErrorKind::Unsupported; 2]);
}
