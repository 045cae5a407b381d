//! Ranks that fail: each of the others ends with an error within its time-out.

use super::{LIMIT, group};
use crate::support::{devices, gpu};
use std::cell::Cell;
use std::fs::File;
use std::time::{Duration, Instant};
use tilework::io::matrix_market::{self, Dense, Matrix};
use tilework::prelude::*;
use tilework::shard::{self, Combine, Header, Local, Rank, Transport};
use tilework::sparse::Csr;
use tilework::{ErrorKind, Result};

/// What a faulty link does to the message with this number.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Loses it.
    Lost(usize),
    /// Cuts it short by a byte.
    Cut(usize),
    /// Sends it this late.
    Late(usize, Duration),
    /// Reports a failure, after which the rank ends.
    Dead(usize),
}

/// A link with a fault.
#[derive(Debug)]
struct Faulty {
    inner: Local,
    fault: Fault,
    sent: Cell<usize>,
}

impl Transport for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn timeout(&self) -> Duration {
        self.inner.timeout()
    }

    fn send(&self, to: usize, header: &Header, bytes: &[u8]) -> Result<()> {
        let number = self.sent.replace(self.sent.get() + 1);
        match self.fault {
            Fault::Lost(at) if at == number => Ok(()),
            Fault::Cut(at) if at == number => self.inner.send(to, header, &bytes[..bytes.len().saturating_sub(1)]),
            Fault::Late(at, by) if at == number => {
                std::thread::sleep(by);
                self.inner.send(to, header, bytes)
            }
            // An error of any kind that the caller's code returns.
            Fault::Dead(at) if at == number => Gpu::find_adapter(&GpuOptions {
                adapter: tilework::gpu::AdapterFilter::Index(usize::MAX),
                ..Default::default()
            })
            .map(|_| ()),
            _ => self.inner.send(to, header, bytes),
        }
    }

    fn receive(&self, from: usize, take: &mut dyn FnMut(&Header, &[u8]) -> Result<()>) -> Result<()> {
        self.inner.receive(from, take)
    }
}

/// Runs `work` on `p` ranks, of which rank 1 has a fault, and returns the results.
fn faulty<R: Send>(
    p: usize, limit: Duration, fault: Fault, work: impl Fn(&Rank<Faulty>) -> Result<R> + Sync,
) -> Vec<Result<R>> {
    let gpu = gpu().unwrap();
    let ranks = Local::group(p, limit).unwrap();
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = ranks
            .into_iter()
            .map(|inner| {
                scope.spawn(move || {
                    let fault = if inner.rank() == 1 { fault } else { Fault::None };
                    work(&Rank::new(Faulty { inner, fault, sent: Cell::new(0) }, gpu))
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// Every call, on host and device.
fn work(rank: &Rank<Faulty>) -> Result<Vec<u32>> {
    let own: Vec<u32> = (0..100).map(|i| (i * 77 + rank.index() as u32) % 101).collect();
    rank.all_reduce(&mut own.clone(), Combine::Sum)?;
    let sorted = rank.sort(&rank.upload(&own)?)?;
    rank.barrier()?;
    rank.reduce(&sorted, Sum)?;
    sorted.read()
}

#[test]
fn every_rank_ends_with_an_error_in_time() {
    if gpu().is_none() {
        return;
    }
    let limit = Duration::from_millis(300);
    // So many messages each rank sends without a fault.
    let all = faulty(3, LIMIT, Fault::None, |rank| {
        work(rank)?;
        Ok(rank.transport().sent.get())
    });
    let messages = *all[1].as_ref().unwrap();
    assert!(messages > 10);
    for number in (0..messages).step_by(3).chain([messages - 1]) {
        for fault in [Fault::Lost(number), Fault::Cut(number), Fault::Dead(number)] {
            let start = Instant::now();
            let results = faulty(3, limit, fault, work);
            let took = start.elapsed();
            assert!(took < 20 * limit + Duration::from_secs(20), "{fault:?} took {took:?}");
            let errors: Vec<_> = results.iter().filter_map(|r| r.as_ref().err()).map(|e| e.kind()).collect();
            // A message without elements cannot be cut.
            if let (Fault::Cut(_), true) = (fault, errors.is_empty()) {
                continue;
            }
            assert!(!errors.is_empty(), "{fault:?}: no rank noticed");
            let expected = [
                ErrorKind::Timeout,
                ErrorKind::Io,
                ErrorKind::Malformed,
                ErrorKind::InvalidArgument,
                ErrorKind::NoAdapter,
            ];
            assert!(errors.iter().all(|kind| expected.contains(kind)), "{fault:?}: {errors:?}");
        }
    }
}

#[test]
fn a_late_rank_is_waited_for_up_to_the_limit() {
    if gpu().is_none() {
        return;
    }
    let late = Fault::Late(0, Duration::from_millis(400));
    let sum = |rank: &Rank<Faulty>| {
        let mut data = [1u32];
        rank.all_reduce(&mut data, Combine::Sum)?;
        Ok(data[0])
    };
    for result in faulty(3, Duration::from_secs(60), late, sum) {
        assert_eq!(result.unwrap(), 3);
    }
    let kinds: Vec<_> =
        faulty(3, Duration::from_millis(50), late, sum).into_iter().map(|r| r.unwrap_err().kind()).collect();
    assert!(kinds.contains(&ErrorKind::Timeout), "{kinds:?}");
}

/// A rank whose device is lost, before a call or between two.
#[test]
fn a_lost_device_ends_all_ranks() {
    let Some(device) = devices().first() else { return };
    let matrix = |rank: usize| Csr {
        rows: 2,
        cols: 4,
        row_ptrs: vec![0, 2, 4],
        col_idxs: if rank == 0 { vec![0, 3, 1, 2] } else { vec![1, 2, 0, 3] },
        values: if rank == 0 { vec![4.0, 1.0, 4.0, 1.0] } else { vec![1.0, 4.0, 1.0, 4.0] },
    };
    type Job<'a> = &'a (dyn Fn(&Rank<Local>) -> Result<()> + Sync);
    let jobs: [(&str, Job<'_>); 4] = [
        ("sort", &|rank| rank.sort(&rank.upload(&[3u32; 1000])?).map(|_| ())),
        ("all-reduce", &|rank| rank.all_reduce_slice(&rank.upload(&[1.0f32; 3000])?, Combine::Sum)),
        ("gemm", &|rank| {
            let blocks = shard::Blocks::new(4, 4, 4, 2);
            rank.gemm(&blocks, &rank.upload(&[1.0f32; 8])?, &rank.upload(&[1.0f32; 8])?).map(|_| ())
        }),
        ("cg", &|rank| {
            let a = rank.matrix(&matrix(rank.index()))?;
            let mut x = [0.0; 2];
            let solve = &shard::ShardedCg::default();
            rank.conjugate_gradient(solve, &a, &[1.0, 2.0], &mut x, |_, _| ()).map(|_| ())
        }),
    ];
    let limit = Duration::from_secs(2);
    for (name, job) in jobs {
        let gpus = [device.again().gpu, device.again().gpu];
        let start = Instant::now();
        let results = shard::run_each(&gpus, limit, |rank| {
            job(rank)?;
            if rank.index() == 1 {
                rank.gpu().device().destroy();
            }
            job(rank)
        });
        let kinds: Vec<_> = results.unwrap().into_iter().map(|r| r.expect_err(name)).map(|e| e.kind()).collect();
        // A rank that still copies from the lost device says so.
        let told = [ErrorKind::Io, ErrorKind::Timeout, ErrorKind::DeviceLost];
        assert!(told.contains(&kinds[0]), "{name}: {kinds:?}");
        assert_eq!(kinds[1], ErrorKind::DeviceLost, "{name}");
        assert!(start.elapsed() < Duration::from_secs(30), "{name}");
    }
}

/// A rank that cannot write its results.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_on_one_rank_ends_all_ranks() {
    let Some(gpus) = group(3) else { return };
    let start = Instant::now();
    let results = shard::run_each(&gpus, Duration::from_secs(2), |rank| {
        let values = rank.sort(&rank.upload(&[3.0f32, 1.0, 2.0])?)?.read()?;
        let disk = if rank.index() == 1 { "/dev/full" } else { "/dev/null" };
        let file = File::options().write(true).open(disk).unwrap();
        matrix_market::write(file, &Matrix::Dense(Dense { rows: 1, cols: values.len(), values }))?;
        rank.barrier()
    });
    let errors: Vec<_> = results.unwrap().into_iter().map(Result::unwrap_err).collect();
    assert!(errors[1].kind() == ErrorKind::Io && errors[1].to_string().contains("No space left"), "{}", errors[1]);
    assert!(errors.iter().all(|e| [ErrorKind::Io, ErrorKind::Timeout].contains(&e.kind())), "{errors:?}");
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_rank_that_panics_is_an_error() {
    let Some(gpus) = group(2) else { return };
    let failed = shard::run(&gpus, LIMIT, |rank| {
        assert!(rank.index() == 0, "on purpose");
        rank.barrier()
    });
    let error = failed.unwrap_err();
    assert!(error.kind() == ErrorKind::Callback && error.to_string().contains("rank 1 has panicked"), "{error}");
}

#[test]
fn ranks_that_make_different_calls_are_told() {
    let Some(gpus) = group(2) else { return };
    let told = |work: &(dyn Fn(&Rank<Local>) -> Result<()> + Sync)| {
        let results = shard::run_each(&gpus, Duration::from_secs(5), work).unwrap();
        let errors = results.into_iter().filter_map(Result::err);
        errors.map(|e| (e.kind(), e.to_string())).find(|(kind, _)| *kind == ErrorKind::InvalidArgument).unwrap().1
    };
    let types = told(&|rank| match rank.index() {
        0 => rank.all_reduce(&mut [1.0f32; 4], Combine::Sum),
        _ => rank.all_reduce(&mut [1u32; 4], Combine::Sum),
    });
    assert!(types.contains("4 f32") && types.contains("4 u32"), "{types}");
    let sizes = told(&|rank| rank.all_reduce(&mut vec![1u32; 4 + rank.index()], Combine::Sum));
    assert!(sizes.contains("4 u32") && sizes.contains("5 u32"), "{sizes}");
    let calls = told(&|rank| match rank.index() {
        0 => rank.barrier(),
        _ => rank.broadcast(0, &mut [0u8; 0]),
    });
    assert!(calls.contains("barrier") && calls.contains("broadcast"), "{calls}");
    let nobody = shard::run(&gpus, LIMIT, |rank| rank.broadcast(2, &mut [0u32])).unwrap_err();
    assert!(nobody.kind() == ErrorKind::InvalidArgument && nobody.to_string().contains("no rank 2"), "{nobody}");
}

/// Two ranks on one device, or a machine without NCCL, CUDA or the variable: the same error on every rank, at once.
#[cfg(all(feature = "nccl", target_os = "linux"))]
#[test]
fn nccl_that_cannot_start_is_an_error_on_every_rank() {
    let Some(gpus) = group(2) else { return };
    let start = Instant::now();
    let error = shard::run_nccl(&gpus, Duration::from_secs(20), |rank| rank.barrier()).unwrap_err();
    let kinds = [ErrorKind::Unsupported, ErrorKind::InvalidArgument, ErrorKind::NoAdapter];
    assert!(kinds.contains(&error.kind()) && error.to_string().contains("nccl"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(15));
}
