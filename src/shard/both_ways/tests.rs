use super::*;
use crate::error::ErrorKind;
use crate::shard::transport::{Call, Combine};
use crate::shard::{Rank, run_each};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Reduces `n` elements of two ranks; the result of each, and whether it was reduced.
fn reduce<T: Element>(
    gpus: &[Gpu], n: [usize; 2], function: &ZipFn, value: impl Fn(usize, usize) -> T + Sync,
) -> Vec<Result<(bool, Vec<T>)>> {
    let work = |rank: &Rank<Local>| {
        let n = n[rank.index()];
        let own: Vec<T> = (0..n).map(|i| value(rank.index(), i)).collect();
        let data = rank.upload(&own)?;
        let call = Call::AllReduce(Combine::Sum);
        let header = Header { number: 1, call, dtype: T::DTYPE, elements: 0, total: n };
        let done = rank.transport().reduce_both_ways(&header, &Slice::from(&data), function)?;
        Ok((done, data.read()?))
    };
    run_each(gpus, LIMIT, work).unwrap()
}

/// Devices that reach memory of the host reduce there, several units and parts of one; others leave the slice alone.
#[test]
fn two_devices_reduce_both_ways_or_not_at_all() {
    if Gpu::adapters().is_empty() {
        return;
    }
    let one = Gpu::new().unwrap();
    for gpus in [vec![one.clone(); 2], vec![one, Gpu::new().unwrap()]] {
        let unit = REGION_BYTES / 4;
        for n in [1, 2, 1001, 4 * unit + 7] {
            let value = |rank: usize, i: usize| (i % 1000) as f32 * if rank == 0 { 1.0 } else { 0.5 };
            for result in reduce(&gpus, [n; 2], &ZipFn::Add, value) {
                let (done, got) = result.unwrap();
                assert_eq!(done, gpus[0].imports_host());
                if done {
                    assert!((0..n).all(|i| got[i] == (i % 1000) as f32 * 1.5), "{n}");
                }
            }
        }
        let value = |rank: usize, i: usize| (i as i32 - 500) * if rank == 0 { 3 } else { -2 };
        for result in reduce(&gpus, [1000; 2], &ZipFn::Max, value) {
            let (done, got) = result.unwrap();
            assert!(!done || (0..1000).all(|i| got[i] == value(0, i).max(value(1, i))));
        }
        // Ranks with different sizes.
        for result in reduce(&gpus, [1000, 999], &ZipFn::Mul, |_, i| i as u32) {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
    }
}
