//! Collective calls between threads, against what they mean.

use super::{LIMIT, group};
use crate::support::gpu;
use tilework::Gpu;
use tilework::shard::{self, Combine, Exchange, Model, Transport, part, schedule};

/// Lengths around the number of ranks, and above what goes along trees.
const LENS: [usize; 5] = [0, 1, 3, 1000, 20_000];

#[test]
fn all_reduce_gives_all_ranks_the_same_bits() {
    for p in 1..=5 {
        let Some(gpus) = group(p) else { return };
        for n in LENS {
            let of = |rank: usize| (0..n).map(|i| ((i * 31 + rank * 7) % 97) as f32 - 48.0).collect::<Vec<_>>();
            let results = shard::run(&gpus, LIMIT, |rank| {
                let mut all = [Combine::Sum, Combine::Min, Combine::Max].map(|_| of(rank.index()));
                for (data, how) in all.iter_mut().zip([Combine::Sum, Combine::Min, Combine::Max]) {
                    rank.all_reduce(data, how)?;
                }
                let mut product: Vec<u32> = (0..n).map(|i| (i + rank.index()) as u32).collect();
                rank.all_reduce(&mut product, Combine::Prod)?;
                Ok((all, product))
            });
            let given: Vec<_> = (0..p).map(of).collect();
            let want = |i: usize, f: fn(f32, f32) -> f32| given.iter().map(|x| x[i]).reduce(f).unwrap();
            for (all, product) in results.unwrap() {
                for i in 0..n {
                    let wanted = [want(i, |a, b| a + b), want(i, f32::min), want(i, f32::max)];
                    assert_eq!([all[0][i], all[1][i], all[2][i]], wanted, "{p} ranks, {n} elements");
                    let wrapped = (0..p).fold(1u32, |x, r| x.wrapping_mul((i + r) as u32));
                    assert_eq!(product[i], wrapped, "{p} ranks, {n} elements");
                }
            }
        }
    }
}

/// A device that a program opened imports no memory of the host: slices take the ring.
#[test]
fn long_slices_of_callers_devices_are_summed() {
    let (Some(ours), Some(theirs)) = (gpu(), crate::runtime::callers_gpu()) else { return };
    let n = (1 << 20) + 7;
    for gpus in [[ours.clone(), theirs.clone()], [theirs.clone(), theirs]] {
        let sums = shard::run(&gpus, LIMIT, |rank| {
            let own: Vec<u32> = (0..n).map(|i| i + rank.index() as u32).collect();
            let data = rank.upload(&own)?;
            rank.all_reduce_slice(&data, Combine::Sum)?;
            data.read()
        });
        assert!(sums.unwrap().iter().all(|data| (0..n).zip(data).all(|(i, x)| *x == 2 * i + 1)));
    }
}

#[test]
fn minimum_and_maximum_keep_nan() {
    let Some(gpus) = group(3) else { return };
    let results = shard::run(&gpus, LIMIT, |rank| {
        let mut data = vec![if rank.index() == 1 { f32::NAN } else { 1.0 }; 2];
        rank.all_reduce(&mut data[..1], Combine::Min)?;
        rank.all_reduce(&mut data[1..], Combine::Max)?;
        Ok(data)
    });
    assert!(results.unwrap().concat().iter().all(|x| x.is_nan()));
}

#[test]
fn broadcasts_reach_all_ranks_from_each() {
    for p in 1..=5 {
        let Some(gpus) = group(p) else { return };
        for n in LENS {
            let results = shard::run(&gpus, LIMIT, |rank| {
                let mut all = Vec::new();
                for root in 0..p {
                    let mut data = vec![if rank.index() == root { root as u32 + 1 } else { 0 }; n];
                    rank.broadcast(root, &mut data)?;
                    all.extend(data);
                }
                rank.barrier()?;
                Ok(all)
            });
            let want: Vec<u32> = (0..p).flat_map(|root| vec![root as u32 + 1; n]).collect();
            assert!(results.unwrap().iter().all(|all| *all == want), "{p} ranks, {n} elements");
        }
    }
}

#[test]
fn gathers_and_exchanges_take_uneven_lengths() {
    for p in 1..=5 {
        let Some(gpus) = group(p) else { return };
        // Rank r has r elements; it sends (r + 2 j) % 4 elements to rank j.
        let counts = |r: usize| (0..p).map(|j| (r + 2 * j) % 4).collect::<Vec<_>>();
        let sent = |r: usize, j: usize| (0..counts(r)[j]).map(move |i| (100 * r + 10 * j + i) as u32);
        let results = shard::run(&gpus, LIMIT, |rank| {
            let r = rank.index();
            let gathered = rank.all_gather(&vec![r as u32; r])?;
            let data: Vec<u32> = (0..p).flat_map(|j| sent(r, j)).collect();
            let scattered = rank.reduce_scatter(&mut (0..7).collect::<Vec<u32>>(), Combine::Sum)?;
            Ok((gathered, rank.all_to_all(&data, &counts(r))?, scattered))
        });
        for (r, ((all, begins), (taken, from), scattered)) in results.unwrap().into_iter().enumerate() {
            assert_eq!(all, (0..p).flat_map(|r| vec![r as u32; r]).collect::<Vec<_>>());
            assert_eq!(begins, (0..=p).map(|r| (0..r).sum()).collect::<Vec<usize>>());
            assert_eq!(taken, (0..p).flat_map(|q| sent(q, r)).collect::<Vec<_>>());
            assert_eq!(from, (0..p).map(|q| counts(q)[r]).collect::<Vec<_>>());
            let want: Vec<u32> = part(7, p, r).map(|i| (i * p) as u32).collect();
            assert_eq!(scattered, want);
        }
    }
}

#[test]
fn slices_travel_between_devices_and_are_reduced_there() {
    // Longer than a staging buffer, and than a piece of a reduction.
    let n = (8 << 20) + 3;
    // One device, and two of which one has two ranks.
    let Some(devices) = [group(2), group(3), group(3)].into_iter().collect::<Option<Vec<_>>>() else { return };
    for (case, mut gpus) in devices.into_iter().enumerate() {
        let p = gpus.len();
        if case == 2 {
            gpus[1] = Gpu::new().unwrap();
        }
        let results = shard::run(&gpus, LIMIT, |rank| {
            let r = rank.index();
            let own = rank.upload(&vec![r as u32 + 1; n])?;
            let other = rank.alloc::<u32>(n)?;
            let mut exchange = Exchange::default();
            // All ranks but the first get the first one's slice.
            let others: Vec<_> = (1..p).collect();
            match r {
                0 => exchange.sends.push((others, own.slice(..)?)),
                _ => exchange.receives.push((0, other.slice(..)?)),
            }
            let started = rank.begin(exchange)?;
            rank.finish(started)?;
            rank.all_reduce_slice(&own, Combine::Sum)?;
            Ok((if r == 0 { vec![1; n] } else { other.read()? }, own.read()?))
        });
        let total = (p * (p + 1) / 2) as u32;
        for (first, sums) in results.unwrap() {
            assert!(first.iter().all(|x| *x == 1) && sums.iter().all(|x| *x == total), "{p} ranks");
        }
    }
}

/// A rank sends as many messages and bytes as the model counts.
#[test]
fn ranks_send_what_the_model_counts() {
    let Some(_) = gpu() else { return };
    for p in 2..=5 {
        let Some(gpus) = group(p) else { return };
        for n in [3, 20_000] {
            let sent = shard::run(&gpus, LIMIT, |rank| {
                rank.all_reduce(&mut vec![1.0f32; n], Combine::Sum)?;
                rank.broadcast(p - 1, &mut vec![1u32; n])?;
                rank.barrier()?;
                assert_eq!((rank.transport().name(), rank.transport().size()), ("local", p));
                Ok(rank.traffic())
            });
            let mut model = Model::new(p, shard::Link::HOST);
            model.run(4, |r| schedule::all_reduce(r, p, n, 4)).unwrap();
            model.run(4, |r| schedule::broadcast(r, p, p - 1, n, 4)).unwrap();
            model.run(1, |r| schedule::barrier(r, p)).unwrap();
            let (counted, sent) = (model.counted(), sent.unwrap());
            assert_eq!(sent.iter().map(|t| t.messages).sum::<u64>(), counted.messages, "{p} ranks, {n}");
            assert_eq!(sent.iter().map(|t| t.bytes).sum::<u64>(), counted.bytes, "{p} ranks, {n}");
        }
    }
}
