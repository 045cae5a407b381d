//! Determinism: of an op, and of all ops of a device.

use super::{Caller, refused};
use crate::support::{self, Random, profiles};
use std::collections::BTreeSet;
use tilework::ErrorKind::Unsupported;
use tilework::gpu::{AdapterFilter, CacheDir};
use tilework::nn::{BatchNormBackward, BatchNormTrain};
use tilework::program::{Choice, DecidedBy, Denied, Determinism, DeviceProfile, Op, Program};
use tilework::sparse::{Format, MatrixLayout};
use tilework::{
    DType, Gemm, Gpu, GpuOptions, Plannable, Reduce, ReduceByKey, Result, Scan, ScanByKey, ScanOffsets, Scatter,
    ScatterOp, SegmentedReduce, SegmentedScan, Spmv, Sum,
};

fn varies(program: &Program) -> bool {
    program.determinism == Determinism::RoundingVaries
}

#[test]
fn a_deterministic_profile_excludes_programs_whose_rounding_varies() {
    for profile in profiles() {
        let asked = DeviceProfile { deterministic: true, ..profile.clone() };
        for op in tilework::operations() {
            for v in (op.variants)().iter().filter(|v| v.requires.missing(&profile).is_none()) {
                let what = format!("{} {} for {}", op.name, v.name, profile.name);
                let free = (op.samples)(&profile, v.name).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(free.iter().any(varies), v.any_order, "{what}");
                let same = (op.samples)(&asked, v.name);
                // Samples may leave out cases that a variant rejects.
                if same.as_ref().is_ok_and(|same| v.any_order && !same.iter().any(varies)) {
                    continue;
                }
                if v.any_order {
                    let name = format!("variant `{}`", v.name);
                    let words = [op.name, &name, "`GpuOptions::deterministic` asks", "use `auto`"];
                    refused(same, Unsupported, &words);
                } else {
                    assert_eq!(same.unwrap_or_else(|e| panic!("{what}: {e}")), free, "{what}");
                }
            }
            // Some samples are written for one variant each.
            let auto = (op.samples)(&asked, "auto").unwrap_or_default();
            assert!(!auto.iter().any(varies), "{} for {}", op.name, profile.name);
        }
    }
}

/// Lowers an op as this variant, deterministic or not.
type Lower = Box<dyn Fn(&str, bool) -> Result<Program>>;

/// Every op that has `deterministic()`.
fn switched() -> Vec<Lower> {
    let (format, values) = (Format::Csr, DType::F32);
    let matrix = MatrixLayout { rows: 100, cols: 100, entries: 1000, longest: 20, format, values };
    let mut all: Vec<Lower> = Vec::new();
    macro_rules! op {
        ($($op:expr),* $(,)?) => {$({
            let op = $op;
            all.push(Box::new(move |variant, deterministic| {
                let op = op.clone().variant(variant);
                let op = if deterministic { op.deterministic() } else { op };
                Op::<f32>::lower(&op, &DeviceProfile::h100())
            }));
        })*};
    }
    let n = 1 << 16;
    op!(
        BatchNormTrain::new([2, 3, 64, 64]),
        BatchNormBackward::new([2, 3, 64, 64]),
        Gemm::new(64, 64, 1 << 14),
        Reduce::new(Sum, n),
        ReduceByKey::new(Sum, n),
        Scan::new(Sum, n),
        ScanByKey::new(Sum, n),
        ScanOffsets::new(Sum, n, 9),
        Scatter::new(ScatterOp::Add, [n, 2], n),
        SegmentedReduce::new(Sum, n),
        SegmentedScan::new(Sum, n),
        Spmv::new(matrix),
    );
    all
}

#[test]
fn every_op_with_unordered_variants_can_be_deterministic() {
    let mut seen = BTreeSet::new();
    for lower in switched() {
        let auto = lower("auto", true).unwrap();
        assert!(!varies(&auto), "{}", auto.op);
        let info = tilework::operations().find(|info| info.name == auto.op).unwrap();
        for v in (info.variants)().iter().filter(|v| v.any_order) {
            let name = format!("variant `{}`", v.name);
            let result = lower(v.name, true);
            refused(result, Unsupported, &[info.name, &name, "`deterministic` asks", "use `auto`"]);
        }
        seen.insert(auto.op);
    }
    let any_order = tilework::operations().filter(|info| (info.variants)().iter().any(|v| v.any_order));
    assert_eq!(seen, any_order.map(|info| info.name).collect());
}

#[test]
fn a_decision_names_the_excluded_variant_and_the_reason() {
    let lower = |op: &Scan| Op::<f32>::lower(op, &DeviceProfile::h100()).unwrap().decision;
    let free = lower(&Scan::new(Sum, 1 << 20));
    let asked = lower(&Scan::new(Sum, 1 << 20).deterministic());
    assert_eq!((free.variant, asked.variant, asked.by), ("lookback", "hierarchical", DecidedBy::Policy));
    assert!(asked.why.contains("`lookback` is skipped") && asked.why.contains("`deterministic` asks"), "{asked:?}");
    let profile = DeviceProfile { deterministic: true, ..DeviceProfile::h100() };
    let by_device = Op::<f32>::lower(&Scan::new(Sum, 1 << 20), &profile).unwrap().decision;
    assert!(by_device.why.contains("`GpuOptions::deterministic` asks"), "{by_device:?}");
    // Without rounding, any order gives the same bits.
    let integers = Op::<u32>::lower(&Scan::new(Sum, 1 << 20), &profile).unwrap().decision;
    assert_eq!(integers, free);
}

#[test]
fn tuning_and_fallbacks_stay_deterministic() {
    let mut profile = DeviceProfile { deterministic: true, ..DeviceProfile::h100() };
    profile.choices.forced.insert("reduce".into(), Choice::variant("atomic", "measured"));
    let sum = Reduce::new(Sum, 1 << 20);
    let floats = Op::<f32>::lower(&sum, &profile).unwrap().decision;
    assert_eq!((floats.variant, floats.by), ("coarsened", DecidedBy::Policy));
    assert!(floats.why.contains("`atomic` is skipped"), "{floats:?}");
    let integers = Op::<u32>::lower(&sum, &profile).unwrap().decision;
    assert_eq!((integers.variant, integers.by), ("atomic", DecidedBy::Tuned));

    let by_key = ReduceByKey::new(Sum, 1 << 20);
    let deny = |variant: &str| Denied {
        op: "reduce-by-key".into(),
        variant: variant.into(),
        row: None,
        why: "element 3 is 0".into(),
    };
    profile.choices.denied.push(deny("hierarchical"));
    let result = Op::<f32>::lower(&by_key, &profile);
    refused(result, Unsupported, &["`hierarchical` failed", "no other variant fits"]);
    profile.deterministic = false;
    assert_eq!(Op::<f32>::lower(&by_key, &profile).unwrap().variant(), "lookback");
}

/// Opens the first adapter as a deterministic device.
fn options() -> Option<GpuOptions> {
    let adapter = AdapterFilter::Name(support::gpu()?.profile().name.clone());
    Some(GpuOptions { adapter, cache: CacheDir::Off, deterministic: true, ..GpuOptions::default() })
}

#[test]
fn a_deterministic_device_repeats_bit_for_bit() {
    let Some(options) = options() else { return };
    let gpu = pollster::block_on(Gpu::request(options)).unwrap();
    let input: Vec<f32> = Random::new(5).elements(300_000);
    let x = gpu.upload(&input).unwrap();
    let y = gpu.alloc::<f32>(input.len()).unwrap();
    let total = gpu.alloc::<f32>(1).unwrap();
    let scan = Scan::new(Sum, input.len()).plan::<f32>(&gpu).unwrap();
    let reduce = Reduce::new(Sum, input.len()).plan::<f32>(&gpu).unwrap();
    assert!(!varies(scan.program()) && !varies(reduce.program()));
    // Processors get that variant in any case.
    let serial = gpu.profile().quirks.serial_workgroups;
    assert!(serial || scan.report().decision.why.contains("`GpuOptions::deterministic` asks"));
    let bits = || {
        let mut rec = gpu.recorder();
        scan.record(&mut rec, &x, &y).unwrap();
        reduce.record(&mut rec, &x, &total).unwrap();
        rec.submit().unwrap();
        let results = [y.read().unwrap(), total.read().unwrap()].concat();
        results.into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    assert!(bits() == bits());
    let by_name = Scan::new(Sum, input.len()).variant("lookback").plan::<f32>(&gpu);
    refused(by_name, Unsupported, &["`lookback`", "`GpuOptions::deterministic` asks"]);
}

#[test]
fn a_callers_device_honours_options_other_than_the_adapter() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let options = GpuOptions { cache: CacheDir::Off, deterministic: true, ..GpuOptions::default() };
    let gpu = Gpu::from_wgpu_with(caller.device.clone(), caller.queue.clone(), &options).unwrap();
    assert!(gpu.profile().deterministic);
    let scan = Scan::new(Sum, 1 << 16).plan::<f32>(&gpu).unwrap();
    assert!(!varies(scan.program()));
}
