//! Many threads and many futures at once.

use super::in_time;
use crate::support::{Random, devices, gpu};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;
use tilework::gpu::OwnKernel;
use tilework::{Buffer, Error, ErrorKind, Gpu, Max, Plan, Recorder, Reduce, Sum};

#[test]
fn public_types_are_send_and_sync() {
    fn shared<T: Send + Sync>() {}
    fn cloned<T: Clone>() {}
    fn sent<T: Send>(_: T) {}
    shared::<Gpu>();
    shared::<Buffer<f32>>();
    shared::<Plan<Reduce<Sum>, f32>>();
    shared::<OwnKernel>();
    shared::<Recorder>();
    cloned::<Gpu>();
    cloned::<Buffer<f32>>();
    let Some(gpu) = gpu() else { return };
    let x = gpu.upload(&[1.0f32]).unwrap();
    sent(x.read_async());
}

#[test]
fn four_threads_use_one_gpu() {
    for d in devices().iter().filter(|d| d.main) {
        let gpu = d.gpu.clone();
        in_time(move || {
            std::thread::scope(|scope| {
                for t in 0..4 {
                    let gpu = gpu.clone();
                    scope.spawn(move || {
                        let mut random = Random::new(t);
                        for round in 0..40 {
                            let n = 1 + (random.next() % 3000) as usize;
                            let data: Vec<i32> = random.elements(n);
                            let x = gpu.upload(&data).unwrap();
                            let wrapped = data.iter().fold(0i32, |a, b| a.wrapping_add(*b));
                            let sum = gpu.reduce(&x, Sum).unwrap();
                            let max = gpu.reduce(&x, Max).unwrap();
                            if round % 2 == 0 {
                                assert_eq!(sum.read().unwrap(), [wrapped]);
                            } else {
                                assert_eq!(pollster::block_on(sum.read_async()).unwrap(), [wrapped]);
                            }
                            assert_eq!(max.read().unwrap(), [data.into_iter().max().unwrap()]);
                            if round % 16 == 0 {
                                gpu.trim();
                            }
                        }
                    });
                }
            });
        });
    }
}

/// Polls all futures until they are done.
async fn join<T>(mut futures: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(move |cx| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(done) = future.as_mut().poll(cx)
            {
                *result = Some(done);
            }
        }
        if results.iter().all(Option::is_some) {
            Poll::Ready(results.iter_mut().filter_map(Option::take).collect())
        } else {
            Poll::Pending
        }
    })
    .await
}

#[test]
fn many_futures_on_several_threads_resolve() {
    for d in devices() {
        let gpu = d.gpu.clone();
        in_time(move || {
            std::thread::scope(|scope| {
                for t in 0..3u32 {
                    let gpu = gpu.clone();
                    scope.spawn(move || {
                        let buffers: Vec<_> =
                            (0..40u32).map(|i| gpu.upload(&vec![1000 * t + i; 1 + i as usize]).unwrap()).collect();
                        let futures = buffers.iter().map(|b| Box::pin(b.read_async()) as _).collect();
                        for (i, got) in
                            pollster::block_on(join::<Result<Vec<u32>, Error>>(futures)).into_iter().enumerate()
                        {
                            assert_eq!(got.unwrap(), vec![1000 * t + i as u32; 1 + i]);
                        }
                    });
                }
            });
        });
    }
}

#[test]
fn dropping_a_pending_future_is_harmless() {
    let Some(gpu) = gpu().cloned() else { return };
    in_time(move || {
        let x = gpu.upload(&vec![3u32; 100_000]).unwrap();
        for _ in 0..20 {
            let mut future = Box::pin(x.read_async());
            pollster::block_on(std::future::poll_fn(|cx| {
                let _ = future.as_mut().poll(cx);
                Poll::Ready(())
            }));
            drop(future);
            drop(Box::pin(x.read_async()));
        }
        assert_eq!(pollster::block_on(x.read_async()).unwrap(), vec![3; 100_000]);
        assert_eq!(x.read().unwrap(), vec![3; 100_000]);
    });
}

/// wgpu's own wait with a timeout panics if another thread finishes the work just as the timeout expires.
#[test]
fn waits_that_time_out_do_not_affect_others() {
    let Some(gpu) = super::open(false) else { return };
    in_time(move || {
        let (stop, timed_out) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|s| {
            s.spawn(|| {
                while !stop.load(Relaxed) {
                    match gpu.wait_timeout(Duration::from_micros(20)) {
                        Ok(()) => {}
                        Err(e) if e.kind() == ErrorKind::Timeout => timed_out.store(true, Relaxed),
                        Err(e) => panic!("{e}"),
                    }
                }
            });
            let x = gpu.upload(&vec![1.0f32; 10_000]).unwrap();
            for i in 0.. {
                if i >= 300 && timed_out.load(Relaxed) {
                    break;
                }
                let sum = gpu.reduce(&x, Sum).unwrap();
                let got = if i % 2 == 0 { sum.read() } else { pollster::block_on(sum.read_async()) };
                assert_eq!(got.unwrap(), [10_000.0]);
            }
            stop.store(true, Relaxed);
        });
        assert_eq!(gpu.wait_timeout(Duration::MAX), Ok(()));
    });
}

#[test]
fn the_last_clone_may_be_dropped_anywhere() {
    let Some(gpu) = super::open(false) else { return };
    in_time(move || {
        let x = gpu.upload(&[1.0f32; 1000]).unwrap();
        let sum = gpu.reduce(&x, Sum).unwrap();
        drop((gpu, x));
        let handle = std::thread::spawn(move || pollster::block_on(sum.read_async()).unwrap());
        assert_eq!(handle.join().unwrap(), [1000.0]);
    });
}
