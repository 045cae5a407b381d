//! Streams: their output, the chunks in flight, and how they stop.

use super::{Caller, in_time, open, refused};
use crate::support::{Random, devices, gpu};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tilework::ErrorKind::{self, Callback, Cancelled, DeviceLost, InvalidArgument, Io, Shape};
use tilework::prelude::*;
use tilework::program::Clock;
use tilework::stream::{Cancel, Fill, Outcome, Pipeline, Stage, Timeline};

/// Elements of a chunk.
const LEN: usize = 300;

/// Called in each stage of a chunk, before the stage's own work.
type Meddle<'m> = &'m (dyn Fn(&str, usize) -> Outcome + Sync);

fn nothing(_: &str, _: usize) -> Outcome {
    Ok(())
}

/// Sums of pairs, and a copy of the bytes: two inputs and two outputs of different types. Compares the results that
/// arrived with the expected ones.
fn stream(gpu: &Gpu, pipeline: &mut Pipeline, n: usize, meddle: Meddle<'_>) -> tilework::Result<Timeline> {
    let (x, bytes) = (pipeline.input::<u32>(LEN), pipeline.input::<u8>(LEN));
    let (y, counts) = (pipeline.output::<u32>(LEN), pipeline.output::<u32>(256));
    let a: Vec<u32> = Random::new(n as u64).elements(n);
    let b: Vec<u8> = Random::new(7).elements(n);
    let mut chunks = a.chunks(LEN).zip(b.chunks(LEN));
    let drained = Mutex::new((Vec::new(), [0u32; 256], 0));
    let ran = pipeline.run(
        |chunk| {
            let Some((a, b)) = chunks.next() else { return Ok(false) };
            meddle("fill", chunk.number())?;
            // Replaces the previous contents.
            chunk.write(x, &a[..1])?;
            chunk.write(x, a)?;
            let (first, second) = b.split_at(b.len() / 3);
            let mut space = chunk.space(bytes)?;
            assert!(space.is_empty() && space.room() == LEN);
            space.extend(first)?;
            assert_eq!(space.read(second)?, second.len());
            Ok(true)
        },
        |rec, chunk| {
            meddle("record", chunk.number())?;
            let (x, bytes) = (chunk.input(x)?, chunk.input(bytes)?);
            let (y, counts) = (chunk.output(y, x.len())?, chunk.output(counts, 256)?);
            let double = MapFn::custom("fn map(x: T) -> T { return 2u * x; }");
            Map::new(double, x.len()).plan::<u32>(gpu)?.record(rec, x, y)?;
            Ok(Histogram::new(bytes.len(), 256).plan::<u8>(gpu)?.record(rec, bytes, counts)?)
        },
        |chunk| {
            meddle("drain", chunk.number())?;
            let mut drained = drained.lock().unwrap();
            assert_eq!(chunk.number(), drained.2, "chunks are drained in order");
            drained.2 += 1;
            drained.0.extend_from_slice(chunk.read(y)?);
            drained.1.iter_mut().zip(chunk.read(counts)?).for_each(|(sum, n)| *sum += n);
            Ok(())
        },
    );
    let (doubled, counts, chunks) = drained.into_inner().unwrap();
    let done = (chunks * LEN).min(n);
    let wanted: Vec<u32> = a[..done].iter().map(|x| x.wrapping_mul(2)).collect();
    assert_eq!(doubled, wanted, "{chunks} chunks");
    let mut wanted = [0; 256];
    b[..done].iter().for_each(|b| wanted[usize::from(*b)] += 1);
    assert_eq!(counts, wanted, "{chunks} chunks");
    if let Ok(timeline) = &ran {
        assert_eq!((done, chunks), (n, timeline.chunks));
    }
    ran
}

#[test]
fn all_chunks_come_out_in_order() {
    for device in devices() {
        for in_flight in 1..=4 {
            let sizes: &[usize] = if device.main { &[0, 1, 299, 300, 301, 600, 2000] } else { &[1, 2000] };
            for &n in sizes {
                let mut pipeline = Pipeline::new(&device.gpu, in_flight);
                let timeline = stream(&device.gpu, &mut pipeline, n, &nothing)
                    .unwrap_or_else(|e| panic!("{}: {n} in {in_flight}: {e}", device.label));
                assert_eq!(timeline.chunks, n.div_ceil(LEN));
            }
        }
    }
}

#[test]
fn chunks_in_flight_stay_within_the_limit_and_memory_is_constant() {
    for device in devices() {
        for in_flight in [1, 2, 3] {
            let mut pipeline = Pipeline::new(&device.gpu, in_flight);
            assert_eq!(pipeline.memory_bytes(), 0);
            let (filled, drained, most) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
            let count = |stage: &str, _| {
                match stage {
                    "fill" => {
                        let now = filled.fetch_add(1, Ordering::SeqCst) + 1 - drained.load(Ordering::SeqCst);
                        most.fetch_max(now, Ordering::SeqCst);
                    }
                    "drain" => {
                        // A slow consumer.
                        std::thread::sleep(Duration::from_millis(3));
                        drained.fetch_add(1, Ordering::SeqCst);
                    }
                    _ => {}
                }
                Ok(())
            };
            stream(&device.gpu, &mut pipeline, 12 * LEN, &count).unwrap();
            // A drain that has counted itself done still holds its set of buffers.
            let most = most.into_inner();
            assert!(most == in_flight, "{}: {most} of {in_flight} in flight", device.label);
            let held = pipeline.memory_bytes();
            let one = 2 * (LEN * 4) + LEN + 256 * 4;
            assert!(held >= (in_flight * one) as u64, "{held}");
            // Another run allocates nothing.
            let mut left = 4;
            let more = |_: &mut Fill<'_>| {
                left -= 1;
                Ok(left >= 0)
            };
            let ran = pipeline.run(more, |_, _| Ok(()), |_| Ok(()));
            assert_eq!((ran.unwrap().chunks, pipeline.memory_bytes()), (4, held), "{}", device.label);
        }
    }
}

#[test]
fn a_callback_that_fails_stops_the_stream() {
    for device in devices() {
        let gpu = &device.gpu;
        for in_flight in [1, 3] {
            for (stage, at) in [("fill", 0), ("fill", 4), ("record", 4), ("drain", 4), ("drain", 9)] {
                let mut pipeline = Pipeline::new(gpu, in_flight);
                let fail = |now: &str, chunk: usize| -> Outcome {
                    if (now, chunk) == (stage, at) { Err("out of paper".into()) } else { Ok(()) }
                };
                let words = [format!("chunk {at}"), stage.to_owned(), "out of paper".into()];
                let words: Vec<_> = words.iter().map(String::as_str).collect();
                refused(stream(gpu, &mut pipeline, 10 * LEN, &fail), Callback, &words);
                assert_eq!(pipeline.memory_bytes(), 0, "all memory is returned");
            }
        }
        stream(gpu, &mut Pipeline::new(gpu, 2), 5 * LEN, &nothing).unwrap();
    }
}

#[test]
fn staging_and_buffers_are_returned_after_a_failure() {
    for webgpu_defaults in [false, true] {
        let Some(gpu) = open(webgpu_defaults) else { return };
        let allocated = || gpu.device().generate_allocator_report().map(|r| r.total_allocated_bytes);
        let mut seen = Vec::new();
        for round in 0..6 {
            for (stage, in_flight) in [("fill", 3), ("record", 3), ("drain", 3), ("record", 1), ("drain", 1)] {
                let fail = |now: &str, chunk: usize| -> Outcome {
                    if (now, chunk) == (stage, 2) { Err("no".into()) } else { Ok(()) }
                };
                let mut pipeline = Pipeline::new(&gpu, in_flight);
                stream(&gpu, &mut pipeline, 6 * LEN, &fail).unwrap_err();
            }
            gpu.wait().unwrap();
            if round > 0 {
                let memory = gpu.memory();
                seen.push((memory.live, memory.pooled, allocated()));
            }
        }
        assert!(seen.iter().all(|s| *s == seen[0]), "{seen:?}");
    }
}

#[test]
fn errors_keep_their_kind() {
    let Some(gpu) = gpu() else { return };
    for in_flight in [1, 3] {
        let failing = |fail: Meddle<'_>| stream(gpu, &mut Pipeline::new(gpu, in_flight), 900, fail);
        let gone = |_: &str, _| Err(io::Error::new(io::ErrorKind::NotFound, "no such tape").into());
        refused(failing(&gone), Io, &["chunk 0, fill", "no such tape"]);
        let ours = |stage: &str, _: usize| -> Outcome {
            if stage == "record" { Ok(gpu.alloc_zeroed::<u32>(4)?.write(&[1])?) } else { Ok(()) }
        };
        refused(failing(&ours), Shape, &["chunk 0, record", "1 elements"]);
    }
}

#[test]
fn a_callback_that_panics_stops_the_stream_and_panics() {
    let Some(gpu) = open(false) else { return };
    for in_flight in [1, 3] {
        for stage in ["fill", "record", "drain"] {
            let gpu = gpu.clone();
            let caught = in_time(move || {
                let mut pipeline = Pipeline::new(&gpu, in_flight);
                let panic = |now: &str, chunk: usize| {
                    assert!((now, chunk) != (stage, 2), "on purpose");
                    Ok(())
                };
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    stream(&gpu, &mut pipeline, 2000, &panic).map(drop)
                }))
                .map_err(|p| p.downcast_ref::<&str>().is_some_and(|text| text.contains("on purpose")))
            });
            assert!(matches!(caught, Err(true)), "{stage}");
        }
        stream(&gpu, &mut Pipeline::new(&gpu, in_flight), 1000, &nothing).unwrap();
    }
}

#[test]
fn a_stream_is_cancelled_at_any_chunk() {
    const CHUNKS: usize = 5;
    for device in devices() {
        for in_flight in [1, 2, 4] {
            for stage in ["fill", "record", "drain"] {
                for at in 0..CHUNKS {
                    let cancel = Cancel::new();
                    let mut pipeline = Pipeline::new(&device.gpu, in_flight).cancelled_by(&cancel);
                    let called = AtomicUsize::new(0);
                    let meddle = |now: &str, chunk: usize| {
                        if (now, chunk) == (stage, at) {
                            cancel.cancel();
                        } else if cancel.is_cancelled() {
                            called.fetch_add(1, Ordering::SeqCst);
                        }
                        Ok(())
                    };
                    let ran = stream(&device.gpu, &mut pipeline, CHUNKS * LEN, &meddle);
                    let label = format!("{}: {in_flight}, {stage} of chunk {at}", device.label);
                    match ran {
                        // Everything was drained before the token was checked again.
                        Ok(timeline) => {
                            let last = (stage, at, timeline.chunks) == ("drain", CHUNKS - 1, CHUNKS);
                            assert!(last, "{label}");
                        }
                        Err(e) => {
                            assert_eq!(e.kind(), Cancelled, "{label}: {e}");
                            // Each of two threads may have started one more stage.
                            assert!(called.into_inner() <= 2, "{label}");
                        }
                    }
                    let result = stream(&device.gpu, &mut pipeline, LEN, &nothing);
                    refused(result, Cancelled, &["draining 0 chunks"]);
                }
            }
        }
        stream(&device.gpu, &mut Pipeline::new(&device.gpu, 2), 1000, &nothing).unwrap();
    }
}

#[test]
fn another_thread_cancels_a_stream_that_waits() {
    let Some(gpu) = gpu() else { return };
    for in_flight in [1, 3] {
        let cancel = Cancel::new();
        let mut pipeline = Pipeline::new(gpu, in_flight).cancelled_by(&cancel);
        let begin = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(60));
                cancel.cancel();
            });
            let slow = |stage: &str, _: usize| {
                if stage == "drain" {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Ok(())
            };
            refused(stream(gpu, &mut pipeline, 10_000 * LEN, &slow), Cancelled, &["after draining"]);
        });
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    }
}

#[test]
fn losing_a_busy_device_is_an_error() {
    for webgpu_defaults in [false, true] {
        for in_flight in [1, 3] {
            for stage in ["fill", "record", "drain"] {
                let Some(gpu) = open(webgpu_defaults) else { return };
                let ended = in_time(move || {
                    let lose = |now: &str, chunk: usize| {
                        if (now, chunk) == (stage, 2) {
                            gpu.device().destroy();
                        }
                        Ok(())
                    };
                    let mut pipeline = Pipeline::new(&gpu, in_flight);
                    let ran = stream(&gpu, &mut pipeline, 100 * LEN, &lose);
                    let result = stream(&gpu, &mut pipeline, LEN, &nothing);
                    refused(result, DeviceLost, &["lost", "open a new Gpu"]);
                    ran
                });
                refused(ended, DeviceLost, &["open a new Gpu"]);
            }
        }
    }
}

#[test]
fn rejects_wrong_use() {
    let Some(gpu) = gpu() else { return };
    refused(stream(gpu, &mut Pipeline::new(gpu, 0), 10, &nothing), InvalidArgument, &["0 chunks in flight"]);
    let mut other = Pipeline::new(gpu, 1);
    let (their_input, their_output) = (other.input::<u32>(8), other.output::<u32>(8));
    for in_flight in [1, 2] {
        let mut pipeline = Pipeline::new(gpu, in_flight);
        let (x, y) = (pipeline.input::<u32>(8), pipeline.output::<u32>(8));
        let mut run = |which: usize| {
            let mut once = 0;
            pipeline.run(
                |chunk| {
                    once += 1;
                    match which {
                        0 => chunk.write(their_input, &[1])?,
                        1 => chunk.write(x, &[1; 9])?,
                        _ => chunk.write(x, &[1; 8])?,
                    }
                    Ok(once == 1)
                },
                |_, chunk| {
                    match which {
                        2 => drop(chunk.input(their_input)?),
                        3 => drop(chunk.output(their_output, 1)?),
                        4 => drop(chunk.output(y, 9)?),
                        _ => drop(chunk.output(y, 1)?),
                    }
                    Ok(())
                },
                |chunk| {
                    if which == 5 {
                        chunk.read(their_output)?;
                    }
                    assert_eq!(chunk.read(y)?.len(), 1);
                    Ok(())
                },
            )
        };
        refused(run(0), InvalidArgument, &["another pipeline", "fill"]);
        refused(run(1), Shape, &["9 elements", "chunk of 8", "fill"]);
        refused(run(2), InvalidArgument, &["another pipeline", "record"]);
        refused(run(3), InvalidArgument, &["another pipeline", "record"]);
        refused(run(4), Shape, &["record", "9"]);
        refused(run(5), InvalidArgument, &["another pipeline", "drain"]);
        run(6).unwrap();
    }
    let mut large = Pipeline::new(gpu, 2);
    large.input::<u32>(usize::MAX / 8);
    refused(large.run(|_| Ok(false), |_, _| Ok(()), |_| Ok(())), ErrorKind::TooLarge, &["split the data"]);
}

#[test]
fn timeline_events_share_one_clock() {
    // A software driver has no staging, except on a caller's device without mappable storage buffers.
    let stamped = Caller::with(wgpu::Limits::default(), wgpu::Features::TIMESTAMP_QUERY).map(|c| c.gpu());
    let others = devices().iter().map(|device| (&device.gpu, &device.label[..]));
    for (gpu, label) in stamped.iter().map(|gpu| (gpu, "a caller's with timestamps")).chain(others) {
        for in_flight in [1, 3] {
            let mut pipeline = Pipeline::new(gpu, in_flight);
            let timeline = stream(gpu, &mut pipeline, 8 * LEN, &nothing).unwrap();
            let of_uploads = timeline.events.iter().filter(|e| e.stage == Stage::Upload).count();
            if label.starts_with("a caller's") && gpu.profile().features.timestamps {
                assert_eq!((of_uploads, timeline.clock), (8, Clock::Device));
            }
            let label = format!("{label}, {in_flight} in flight");
            let slack = timeline.uncertainty + 1e-6;
            assert!(slack < 0.5, "{label}: {slack}");
            let span = |chunk, stage| {
                let found = timeline.events.iter().find(|e| (e.chunk, e.stage) == (chunk, stage));
                let e = found.unwrap_or_else(|| panic!("{label}: no {stage} of {chunk}"));
                assert!(e.begin >= -slack && e.begin <= e.end + 1e-9, "{label}: {e:?}");
                assert!(e.end <= timeline.seconds + slack, "{label}: {e:?}");
                (e.begin, e.end)
            };
            for chunk in 0..8 {
                let [fill, submit, device, drain] =
                    [Stage::Fill, Stage::Submit, Stage::Device, Stage::Drain].map(|s| span(chunk, s));
                assert!(fill.1 <= submit.0 && submit.0 <= device.0 + slack, "{label}");
                assert!(device.1 <= drain.0 + slack, "{label}: {device:?} {drain:?}");
                if chunk > 0 {
                    for stage in [Stage::Fill, Stage::Submit, Stage::Device, Stage::Drain] {
                        assert!(
                            span(chunk - 1, stage).1 <= span(chunk, stage).0 + slack,
                            "{label}: {stage} of {chunk}"
                        );
                    }
                    if in_flight == 1 {
                        assert!(span(chunk - 1, Stage::Drain).1 <= fill.0, "{label}");
                    }
                }
            }
            assert!(timeline.period().is_some_and(|p| p > 0.0 && p < timeline.seconds));
            assert!(timeline.busy(Stage::Fill) <= timeline.seconds);
        }
    }
}

#[test]
fn a_chunk_that_ends_within_a_word_is_exact() {
    let Some(gpu) = gpu() else { return };
    let data: Vec<u8> = (0..11).collect();
    let (mut chunks, mut got) = (data.chunks(8), Vec::new());
    let mut pipeline = Pipeline::new(gpu, 2);
    let (x, y, z) = (pipeline.input::<u8>(8), pipeline.output::<u8>(8), pipeline.output::<u8>(8));
    let run = pipeline.run(
        |chunk| {
            let Some(part) = chunks.next() else { return Ok(false) };
            chunk.write(x, part)?;
            Ok(true)
        },
        |rec, chunk| {
            let x = chunk.input(x)?;
            rec.copy(x, chunk.output(y, x.len())?)?;
            Ok(rec.fill(chunk.output(z, x.len())?, 7)?)
        },
        |chunk| {
            got.extend_from_slice(chunk.read(y)?);
            assert!(chunk.read(z)?.iter().all(|z| *z == 7));
            Ok(())
        },
    );
    run.unwrap();
    assert_eq!(got, data);
}
