//! Profiles: their entry for each op, the trace for viewers, and their cost when off.

use super::{in_time, open, refused};
use crate::support::{devices, gpu};
use serde_json::Value;
use tilework::ErrorKind::Shape;
use tilework::gpu::{Arg, Clock, OpProfile, Profile};
use tilework::{Axpy, Gpu, MapFn, Plannable, Predicate, Reduce, Select, Sum};

const DOUBLE: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<f32>;
    @compute @workgroup_size(64)
    fn double(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&data) { data[id.x] *= 2.0; }
    }";

/// Sums, a custom kernel, a copy and a clear, some of them repeated.
fn mixed(gpu: &Gpu) -> Profile {
    let n = 1 << 16;
    let x = gpu.upload(&vec![1.0f32; n]).unwrap();
    let (y, z) = (gpu.alloc_zeroed::<f32>(n).unwrap(), gpu.upload(&vec![3.0f32; 500]).unwrap());
    let total = gpu.alloc::<f32>(1).unwrap();
    let (axpy, sum) = (Axpy::new(n, 0.5).plan::<f32>(gpu).unwrap(), Reduce::new(Sum, n).plan::<f32>(gpu).unwrap());
    let double = gpu.kernel("double \"it\".wgsl", DOUBLE, "double").unwrap();
    let profile = gpu
        .profile_work(|rec| {
            for _ in 0..3 {
                axpy.record(rec, &x, &y)?;
                sum.record(rec, &y, &total)?;
            }
            rec.copy(&y, &x)?;
            double.record(rec, &[Arg::from(&x)], [1024, 1, 1])?;
            rec.clear(&z)
        })
        .unwrap();
    // It ran exactly once.
    assert_eq!(total.read().unwrap(), [1.5 * n as f32]);
    assert_eq!((x.read().unwrap()[n - 1], z.read().unwrap()), (3.0, vec![0.0; 500]));
    profile
}

#[test]
fn every_op_and_dispatch_is_listed_and_timed() {
    for d in devices() {
        let (gpu, label) = (&d.gpu, &d.label);
        let profile = mixed(gpu);
        let stamped = gpu.profile().features.timestamps;
        assert_eq!(profile.clock, if stamped { Clock::Device } else { Clock::Wall }, "{label}");
        let names: Vec<_> = profile.ops.iter().map(|op| op.op.as_str()).collect();
        let round = ["axpy", "reduce"];
        let own = "double \"it\".wgsl:double";
        assert_eq!(names, [round, round, round].concat().into_iter().chain(["copy", own, "clear"]).collect::<Vec<_>>());
        // In order, without overlap on the one queue.
        let mut done = 0.0;
        for op in &profile.ops {
            assert!(op.begin >= done && op.seconds > 0.0, "{label}: {op:?} after {done}");
            done = op.begin + op.seconds;
            let mut inner = op.begin;
            for dispatch in &op.dispatches {
                assert_eq!(dispatch.begin.is_some() && dispatch.seconds.is_some(), stamped, "{label}: {op:?}");
                let (Some(begin), Some(seconds)) = (dispatch.begin, dispatch.seconds) else { continue };
                assert!(begin >= inner && begin + seconds <= done * (1.0 + 1e-12), "{label}: {op:?}");
                inner = begin + seconds;
            }
        }
        let [axpy, reduce, .., copy, own, clear] = &profile.ops[..] else { panic!("{label}: {profile:?}") };
        let bytes = |op: &OpProfile| op.cost.map(|c| c.bytes);
        assert_eq!((axpy.dispatches.len(), reduce.dispatches.len(), own.dispatches.len()), (1, 2, 1), "{label}");
        assert_eq!(axpy.dispatches[0].cost, axpy.cost, "the only dispatch is the op");
        assert!(reduce.dispatches.iter().all(|d| d.cost.is_none() && d.bound_bytes > 0), "{label}");
        assert_eq!(reduce.variant, "coarsened");
        assert_eq!(bytes(copy), Some(2.0 * 4.0 * 65536.0));
        assert_eq!((bytes(clear), clear.dispatches.len(), copy.dispatches.len()), (Some(2000.0), 0, 0));
        assert_eq!((own.cost, own.percent_of_roofline), (None, None));
        assert_eq!((own.dispatches[0].bound_bytes, own.dispatches[0].workgroups), (4 * 65536, Some([1024, 1, 1])));
        assert!(axpy.percent_of_roofline.unwrap() > 0.0 && axpy.dispatches[0].kernel.contains("axpy"), "{label}");
        assert!((profile.seconds() - profile.ops.iter().map(|op| op.seconds).sum::<f64>()).abs() < 1e-12);
    }
}

#[test]
fn the_table_merges_equal_ops_and_names_the_clock() {
    for d in devices() {
        let profile = mixed(&d.gpu);
        let text = profile.to_string();
        let line = |word: &str| text.lines().find(|l| l.starts_with(word)).unwrap_or_else(|| panic!("{word}: {text}"));
        assert!(line("9 ops with 10 dispatches on ").contains(&d.gpu.profile().name), "{text}");
        let wall = text.contains("submitting and waiting included");
        assert_eq!(wall, profile.clock == Clock::Wall, "{text}");
        for column in ["workgroups", "times", "us each", "share", "MB", "GB/s", "GFLOP/s", "roofline"] {
            assert!(line("op, its dispatches").contains(column), "{text}");
        }
        let words: Vec<_> = line("reduce, coarsened").split_whitespace().collect();
        assert_eq!(words[2], "3", "{text}");
        assert!(text.contains("\n  primitives/reduce_coarsened:") && text.contains("1024 x 1 x 1"), "{text}");
        // No number is infinite, and no two lines are equal.
        assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
        assert_eq!(text.lines().filter(|l| l.starts_with("reduce, ")).count(), 1, "{text}");
    }
}

#[test]
fn the_trace_is_json_with_nested_events() {
    for d in devices() {
        let profile = mixed(&d.gpu);
        let trace: Value = serde_json::from_str(&profile.chrome_trace()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(events[0]["args"]["name"], d.gpu.profile().name.as_str());
        let of = |category: &str| -> Vec<_> {
            let spans = events.iter().filter(|e| e["cat"] == category).map(|e| {
                assert_eq!((&e["ph"], &e["pid"], &e["tid"]), (&"X".into(), &1.into(), &1.into()));
                let thousand = |at: &Value| (at.as_f64().unwrap() * 1000.0).round() as u64;
                (thousand(&e["ts"]), thousand(&e["ts"]) + thousand(&e["dur"]))
            });
            spans.collect()
        };
        let (ops, dispatches) = (of("op"), of("dispatch"));
        assert_eq!(ops.len(), profile.ops.len());
        assert_eq!(dispatches.len(), if profile.clock == Clock::Device { 10 } else { 0 });
        for spans in [&ops, &dispatches] {
            assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0), "{}: {spans:?}", d.label);
        }
        let inside = |(begin, end): &(u64, u64)| ops.iter().any(|(b, e)| b <= begin && end <= e);
        assert!(dispatches.iter().all(inside), "{}: {dispatches:?} in {ops:?}", d.label);
        let own = events.iter().find(|e| e["name"] == "double \"it\".wgsl:double" && e["cat"] == "op").unwrap();
        assert!(own["args"].get("flop").is_none(), "{own}");
        let axpy = events.iter().find(|e| e["name"] == "axpy").unwrap();
        assert_eq!(axpy["args"]["flop"], 2.0 * 65536.0);
        assert!(axpy["args"]["GB/s"].as_f64().unwrap() > 0.0 && axpy["args"]["variant"].is_string(), "{axpy}");
    }
}

#[test]
fn profiling_no_work_gives_an_empty_table() {
    for d in devices() {
        let gpu = &d.gpu;
        let none = gpu.alloc::<f32>(0).unwrap();
        let profile = gpu
            .profile_work(|rec| {
                // Empty work leaves no trace.
                Axpy::new(0, 2.0).plan::<f32>(gpu)?.record(rec, &none, &gpu.alloc::<f32>(0)?)?;
                rec.clear(&none)
            })
            .unwrap();
        assert!(profile.ops.is_empty() && profile.seconds() == 0.0, "{profile:?}");
        let text = profile.to_string();
        assert!(text.starts_with("0 ops with 0 dispatches on ") && text.lines().count() == 3, "{text}");
        assert!(text.contains(": 0.000 us, "), "{text}");
        let trace: Value = serde_json::from_str(&profile.chrome_trace()).unwrap();
        assert!(trace["traceEvents"].as_array().unwrap().iter().all(|e| e["ph"] == "M"));
    }
}

#[test]
fn errors_in_profiled_work_are_returned() {
    for d in devices() {
        let gpu = &d.gpu;
        let (x, y) = (gpu.upload(&[1.0f32; 100]).unwrap(), gpu.alloc_zeroed::<f32>(100).unwrap());
        let axpy = Axpy::new(100, 1.0).plan::<f32>(gpu).unwrap();
        let short = gpu.alloc::<f32>(99).unwrap();
        let result = gpu.profile_work(|rec| {
            axpy.record(rec, &x, &y)?;
            axpy.record(rec, &x, &short)
        });
        refused(result, Shape, &["axpy", "99"]);
        // With the device clock nothing has run; with the host clock the first op has.
        let ran = if gpu.profile().features.timestamps { 0.0 } else { 1.0 };
        assert_eq!(y.read().unwrap(), [ran; 100], "{}", d.label);
        // A rejected op that the caller ignores does not affect the others.
        let profile = gpu.profile_work(|rec| {
            assert!(axpy.record(rec, &x, &short).is_err() && rec.copy(&x, &short).is_err());
            axpy.record(rec, &x, &y)
        });
        assert_eq!(profile.unwrap().ops.len(), 1, "{}", d.label);
        assert_eq!(y.read().unwrap(), [ran + 1.0; 100], "{}", d.label);
    }
}

#[test]
fn dispatch_times_add_up_to_the_total() {
    for d in devices().iter().filter(|d| d.gpu.profile().features.timestamps) {
        let gpu = &d.gpu;
        // Long enough to hide the overhead of a pass.
        let n = 1 << 22;
        let (x, y) = (gpu.upload(&vec![1.0f32; n]).unwrap(), gpu.alloc_zeroed::<f32>(n).unwrap());
        let axpy = Axpy::new(n, 0.5).plan::<f32>(gpu).unwrap();
        let work = |rec: &mut tilework::Recorder| (0..8).try_for_each(|_| axpy.record(rec, &x, &y));
        gpu.time(work).unwrap();
        // The machine may be busy.
        let ratios = (0..5).map(|_| {
            let together = gpu.time(work).unwrap().seconds;
            gpu.profile_work(work).unwrap().seconds() / together
        });
        let ratios: Vec<_> = ratios.collect();
        assert!(ratios.iter().any(|r| (0.5..2.0).contains(r)), "{}: {ratios:?}", d.label);
    }
}

#[test]
fn more_dispatches_than_a_query_set_holds_are_all_timed() {
    let Some(gpu) = gpu() else { return };
    let (x, y) = (gpu.upload(&[1.0f32; 64]).unwrap(), gpu.alloc_zeroed::<f32>(64).unwrap());
    let axpy = Axpy::new(64, 1.0).plan::<f32>(gpu).unwrap();
    // Three sets of 2048 dispatches; a copy's two stamps lie at the end of one.
    let profile = gpu
        .profile_work(|rec| {
            (0..2047).try_for_each(|_| axpy.record(rec, &x, &y))?;
            rec.clear(&y)?;
            (0..2100).try_for_each(|_| axpy.record(rec, &x, &y))
        })
        .unwrap();
    assert_eq!(y.read().unwrap(), [2100.0; 64]);
    assert_eq!(profile.ops.len(), 4148);
    let mut done = 0.0;
    for (i, op) in profile.ops.iter().enumerate() {
        assert!(op.begin >= done && op.seconds >= 0.0, "{i}: {op:?} after {done}");
        done = op.begin + op.seconds;
    }
    if profile.clock == Clock::Device {
        let zeros = profile.ops.iter().filter(|op| op.seconds == 0.0).count();
        assert!(zeros < 400, "{zeros} ops of 4148 took no time at all");
    }
    assert_eq!(profile.to_string().lines().filter(|l| l.starts_with("axpy")).count(), 1);
}

#[test]
fn work_on_device_counts_is_profiled() {
    for d in devices() {
        let gpu = &d.gpu;
        let (x, kept) = (gpu.upload(&[5.0f32, 0.0, 7.0]).unwrap(), gpu.alloc_zeroed::<f32>(3).unwrap());
        let count = gpu.alloc::<u32>(1).unwrap();
        let select = Select::by(3, Predicate::NonZero).plan::<f32>(gpu).unwrap();
        let double = gpu.kernel("double.wgsl", DOUBLE, "double").unwrap();
        let profile = gpu
            .profile_work(|rec| {
                select.record_by(rec, &x, &kept, &count)?;
                double.record_counted(rec, &[Arg::from(&kept)], &count, 64, 3)
            })
            .unwrap();
        assert_eq!(kept.read().unwrap()[..2], [10.0, 14.0]);
        let last = profile.ops.last().unwrap();
        assert_eq!((last.op.as_str(), last.dispatches[0].workgroups), ("double.wgsl:double", None));
        assert!(profile.to_string().contains("indirect"), "{}: {profile}", d.label);
    }
}

/// A device without timestamps waits after each op, also while memory that plans have bound is released.
#[test]
fn waiting_between_ops_does_not_deadlock() {
    let Some(gpu) = open(true) else { return };
    in_time(move || {
        for _ in 0..3 {
            let mut encoder = gpu.device().create_command_encoder(&Default::default());
            let (x, y) = (gpu.upload(&[1.0f32; 256]).unwrap(), gpu.alloc::<f32>(256).unwrap());
            let neg = tilework::Map::new(MapFn::Neg, 256).plan::<f32>(&gpu).unwrap();
            let own = gpu.device().create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 1024,
                usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            let own = gpu.wrap::<f32>(own).unwrap();
            let mut rec = gpu.recorder_in(&mut encoder);
            neg.record(&mut rec, &x, &own).unwrap();
            rec.finish();
            // Its last owner is the submission that the profile waits for.
            drop(own);
            gpu.queue().submit([encoder.finish()]);
            let profile = gpu.profile_work(|rec| {
                let mut encoder = gpu.device().create_command_encoder(&Default::default());
                let z = gpu.wrap::<f32>(gpu.device().create_buffer(&wgpu::BufferDescriptor {
                    label: None,
                    size: 1024,
                    usage: wgpu::BufferUsages::STORAGE,
                    mapped_at_creation: false,
                }))?;
                let mut inner = gpu.recorder_in(&mut encoder);
                neg.record(&mut inner, &x, &z)?;
                inner.finish();
                drop(z);
                gpu.queue().submit([encoder.finish()]);
                neg.record(rec, &x, &y)
            });
            assert_eq!(profile.unwrap().ops.len(), 1);
            assert_eq!(y.read().unwrap(), [-1.0; 256]);
        }
    });
}
