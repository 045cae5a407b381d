//! Tuning and the denylist: on profiles written by hand, and on devices with variants made wrong or slow.

use super::refused;
use crate::support;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tilework::ErrorKind::{DeviceLost, InvalidArgument, Shape, Unsupported};
use tilework::dense::ProductTile;
use tilework::gpu::{AdapterFilter, CacheDir, Tuning};
use tilework::program::{Choice, Denied, DeviceProfile, Grid, Op, Program};
use tilework::tune::{Outcome, Stopped, TuningOptions, tune, tune_with, verify};
use tilework::{
    Attention, Blur, Conv2d, Gemm, Gpu, GpuOptions, Histogram, Image, Map, MapFn, Plannable, RadixSort, Reduce, Result,
    Scan, Select, Softmax, Sum, Zip, ZipFn,
};

const N: usize = 1 << 18;

/// Adds two vectors; some variants compute only a part, others repeat all of it many times.
#[derive(Clone)]
struct Tampered {
    wrong: &'static [&'static str],
    slow: &'static [&'static str],
    variant: &'static str,
}

impl Tampered {
    const fn new(wrong: &'static [&'static str], slow: &'static [&'static str]) -> Self {
        Self { wrong, slow, variant: "auto" }
    }
}

impl Op<f32> for Tampered {
    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let mut program = Op::<f32>::lower(&Zip::new(ZipFn::Add, N).variant(self.variant), profile)?;
        if self.wrong.contains(&program.variant()) {
            program.dispatches.iter_mut().for_each(|d| d.grid = Grid::Direct([1, 1, 1]));
        }
        if self.slow.contains(&program.variant()) {
            program.dispatches = (0..20).flat_map(|_| program.dispatches.clone()).collect();
        }
        Ok(program)
    }
}

/// A cache directory that is deleted when dropped.
struct Cache(PathBuf);

impl Cache {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tilework-tuning-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    /// A device that saves its measurements here.
    fn open(&self, tuning: Tuning) -> Option<Gpu> {
        let name = support::gpu()?.profile().name.clone();
        let (adapter, cache) = (AdapterFilter::Name(name), CacheDir::At(self.0.clone()));
        let options = GpuOptions { adapter, cache, tuning, ..GpuOptions::default() };
        Some(pollster::block_on(Gpu::request(options)).unwrap())
    }

    /// Files with this extension.
    fn files(&self, kind: &str) -> Vec<PathBuf> {
        let homes = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|e| e.path());
        let all = homes.flat_map(|home| fs::read_dir(home).into_iter().flatten().flatten().map(|e| e.path()));
        let of = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(kind);
        all.filter(of).collect()
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Searches to the end, whatever the roofline predicts.
fn thorough() -> TuningOptions {
    TuningOptions { budget: Duration::from_secs(60), near_roofline: 0.0, ..TuningOptions::default() }
}

fn denied(op: &str, variant: &str) -> Denied {
    Denied { op: op.into(), variant: variant.into(), row: None, why: "element 3 is 0".into() }
}

#[test]
fn a_forced_variant_is_used_if_it_fits() {
    let sum = Reduce::new(Sum, 1 << 20);
    for mut profile in support::profiles() {
        profile.choices.forced.insert("reduce".into(), Choice::variant("subgroup", "because"));
        let program = Op::<f32>::lower(&sum, &profile).unwrap();
        assert_eq!(program.variant() == "subgroup", profile.features.subgroups, "{}", profile.name);
        assert_eq!(program.decision.why == "because", profile.features.subgroups, "{}", profile.name);
        // A variant selected by name stays, and other ops are not affected.
        assert_eq!(Op::<f32>::lower(&sum.clone().variant("shared"), &profile).unwrap().variant(), "shared");
        let scan = Op::<f32>::lower(&Scan::new(Sum, 1000), &profile).unwrap();
        assert_ne!(scan.decision.why, "because");
        profile.choices.forced.insert("reduce".into(), Choice::variant("no such variant", "because"));
        assert_ne!(Op::<f32>::lower(&sum, &profile).unwrap().decision.why, "because");
    }
}

#[test]
fn a_forced_row_is_used_if_it_fits() {
    let gemm = Gemm::new(4096, 4096, 4096);
    let why = |row: &str, profile: &DeviceProfile| {
        let mut profile = profile.clone();
        let choice = Choice { row: Some(row.into()), ..Choice::variant("double", "because") };
        profile.choices.forced.insert("gemm".into(), choice);
        Op::<f32>::lower(&gemm, &profile).unwrap().decision.why
    };
    let h100 = DeviceProfile::h100();
    assert!(why("32x32x16 by 4x4", &h100).starts_with("because; tile 32 x 32 x 16 by 4 x 4"));
    assert!(why("128x128x8 by 8x8", &h100).contains("tile 128 x 128 x 8"));
    // The policy decides if the table has no such row.
    assert!(why("7x7x7 by 1x1", &h100).contains("tile 128 x 128 x 8"));
    assert!(why("32x32x16 by 4x4", &DeviceProfile::mesa()).contains("tile 16 x 16 x 4"));
    // The caller's choice takes precedence.
    let mut profile = h100.clone();
    let choice = Choice { row: Some("32x32x16 by 4x4".into()), ..Choice::variant("double", "because") };
    profile.choices.forced.insert("gemm".into(), choice);
    let asked = gemm.clone().variant("double").tile(ProductTile { m: 64, n: 64, k: 16 });
    assert!(!Op::<f32>::lower(&asked, &profile).unwrap().decision.why.contains("32 x 32"));

    let conv = Conv2d::new([8, 64, 56, 56], 64, [3, 3]);
    let kernels = |row: Option<&str>| {
        let mut profile = h100.clone();
        let choice = Choice { row: row.map(Into::into), ..Choice::variant("implicit", "because") };
        profile.choices.forced.insert("conv".into(), choice);
        Op::<f32>::lower(&conv, &profile).unwrap().kernels
    };
    assert_ne!(kernels(None), kernels(Some("16x64x8 by 4x4")));
    assert_eq!(kernels(None), kernels(Some("none of them")));
}

#[test]
fn denied_variants_are_never_chosen_and_rejected_by_name() {
    let sum = Reduce::new(Sum, 1 << 20);
    for mut profile in support::profiles() {
        let default = Op::<f32>::lower(&sum, &profile).unwrap().variant();
        profile.choices.denied.push(denied("reduce", default));
        let program = Op::<f32>::lower(&sum, &profile).unwrap();
        assert_ne!(program.variant(), default);
        assert!(
            program.decision.why.contains(&format!("`{default}` failed on this driver")),
            "{}",
            program.decision.why
        );
        let asked = Op::<f32>::lower(&sum.clone().variant(default), &profile);
        refused(asked, Unsupported, &["reduce", default, "element 3 is 0", "clear_cache", "auto"]);
        // Nor when forced.
        profile.choices.forced.insert("reduce".into(), Choice::variant(default, "because"));
        assert_ne!(Op::<f32>::lower(&sum, &profile).unwrap().variant(), default);
        // Another op with the same variants is not affected.
        assert!(!Op::<f32>::lower(&Scan::new(Sum, 1000), &profile).unwrap().decision.why.contains("failed"));
        for variant in Reduce::<Sum>::variants() {
            profile.choices.denied.push(denied("reduce", variant.name));
        }
        refused(Op::<f32>::lower(&sum, &profile), Unsupported, &["no other variant fits", "clear_cache"]);
    }
}

#[test]
fn every_op_has_a_fallback_for_a_denied_variant() {
    for profile in support::profiles() {
        let gemm = |profile: &DeviceProfile| Op::<f32>::lower(&Gemm::new(500, 400, 300), profile);
        let softmax = |profile: &DeviceProfile| Op::<f32>::lower(&Softmax::new(50, 400), profile);
        let map = |profile: &DeviceProfile| Op::<f32>::lower(&Map::new(MapFn::Abs, 400), profile);
        let conv =
            |profile: &DeviceProfile| Op::<f32>::lower(&Conv2d::new([2, 8, 20, 20], 8, [3, 3]).pad([1, 1]), profile);
        type Lower<'a> = &'a dyn Fn(&DeviceProfile) -> Result<Program>;
        let lowerings: [Lower<'_>; 4] = [&gemm, &softmax, &map, &conv];
        for lower in lowerings {
            let default = lower(&profile).unwrap();
            let mut profile = profile.clone();
            profile.choices.denied.push(denied(default.op, default.variant()));
            let other = lower(&profile).unwrap_or_else(|e| panic!("{} on {}: {e}", default.op, profile.name));
            assert!(other.variant() != default.variant() && other.operands == default.operands);
        }
    }
}

#[test]
fn a_denied_row_is_skipped() {
    let mut profile = DeviceProfile::h100();
    let row = Some("128x128x8 by 8x8".to_owned());
    profile.choices.denied.push(Denied { row, ..denied("gemm", "double") });
    let program = Op::<f32>::lower(&Gemm::new(4096, 4096, 4096), &profile).unwrap();
    assert!(
        program.variant() == "double" && !program.decision.why.contains("tile 128 x 128 x 8 by 8 x 8"),
        "{}",
        program.decision.why
    );
}

#[test]
fn the_faster_variant_wins_and_is_kept() {
    let cache = Cache::new("wins");
    let Some(gpu) = cache.open(Tuning::Cached) else { return };
    let op = Tampered::new(&[], &["vec4"]);
    assert_eq!(op.plan::<f32>(&gpu).unwrap().program().variant(), "vec4");
    // Another process without measurements.
    let other = cache.open(Tuning::Cached).unwrap();
    assert_eq!(op.plan::<f32>(&other).unwrap().program().variant(), "vec4");
    let report = tune::<f32, _>(&gpu, &op, &thorough()).unwrap();
    assert_eq!((report.op, report.default.variant, report.stopped), ("zip", "vec4", Stopped::Done), "{report}");
    assert!(report.best.variant != "vec4" && report.gain() > 2.0, "{report}");
    assert_eq!(report.tried.len(), 2, "{report}");
    assert!(report.tried.iter().all(|(_, o)| matches!(o, Outcome::Measured(s) if *s > 0.0)), "{report}");
    assert!(report.denied.is_empty() && report.to_string().contains("best: "));

    let tuned = op.plan::<f32>(&gpu).unwrap();
    assert_eq!(tuned.program().variant(), report.best.variant);
    let why = tuned.report().decision.why;
    assert!(why.starts_with("tuned on this device: ") && why.ends_with(" us of the default"), "{why}");
    // Its result is correct.
    let (x, y) = (gpu.upload(&vec![1.5f32; N]).unwrap(), gpu.upload(&vec![2.0f32; N]).unwrap());
    let z = gpu.alloc::<f32>(N).unwrap();
    let mut rec = gpu.recorder();
    let operands = [&x, &y, &z].map(|x| tilework::Slice::from(x).untyped());
    tuned.into_executable().record(&mut rec, &operands).unwrap();
    rec.submit().unwrap();
    assert!(z.read().unwrap().iter().all(|z| *z == 3.5));

    // A size of the same class has the same winner; another class or a variant selected by name has none.
    let near = Zip::new(ZipFn::Add, N - 1024).plan::<f32>(&gpu).unwrap();
    assert_eq!(near.program().variant(), report.best.variant);
    assert_eq!(Zip::new(ZipFn::Add, 2 * N).plan::<f32>(&gpu).unwrap().program().variant(), "vec4");
    assert_eq!(Zip::new(ZipFn::Mul, N).plan::<f32>(&gpu).unwrap().program().variant(), "vec4");
    let named = Tampered { variant: "vec4", ..op.clone() };
    assert_eq!(named.plan::<f32>(&gpu).unwrap().program().variant(), "vec4");
    refused(tune::<f32, _>(&gpu, &named, &thorough()), InvalidArgument, &["vec4", "by name"]);

    // Entries of another process replace nothing.
    tune::<f32, _>(&other, &Zip::new(ZipFn::Mul, 1000), &thorough()).unwrap();

    // The next run of the program uses it, unless tuning is off.
    let variant = |tuning| {
        let gpu = cache.open(tuning).unwrap();
        op.plan::<f32>(&gpu).unwrap().program().variant()
    };
    assert_eq!(variant(Tuning::Cached), report.best.variant);
    assert_eq!(variant(Tuning::Measure), report.best.variant);
    assert_eq!(variant(Tuning::Off), "vec4");

    // A malformed file is ignored.
    let files = cache.files("tuning");
    assert_eq!(files.len(), 1);
    let whole = fs::read(&files[0]).unwrap();
    for damaged in [&whole[..whole.len() / 2], b"", b"tilework learned 1\nzip"] {
        fs::write(&files[0], damaged).unwrap();
        assert_eq!(variant(Tuning::Cached), "vec4");
    }
    fs::write(&files[0], &whole).unwrap();
    assert_eq!(variant(Tuning::Cached), report.best.variant);
    gpu.clear_cache();
    assert_eq!(variant(Tuning::Cached), "vec4");
    assert_eq!(op.plan::<f32>(&gpu).unwrap().program().variant(), "vec4");
}

#[test]
fn warm_up_and_streams_use_tuned_choices() {
    let cache = Cache::new("everywhere");
    let Some(gpu) = cache.open(Tuning::Cached) else { return };
    let op = Tampered::new(&[], &["vec4"]);
    let best = tune::<f32, _>(&gpu, &op, &thorough()).unwrap().best.variant;
    assert_ne!(best, "vec4");
    let kernels = |gpu: &Gpu| gpu.cache().found + gpu.cache().compiled;

    // The library's own op, whose kernels run without checks.
    let zip = Zip::new(ZipFn::Add, N);
    let warm = cache.open(Tuning::Cached).unwrap();
    let program = warm.lower::<f32, _>(&zip).unwrap();
    assert_eq!((program.variant(), kernels(&warm)), (best, 0));
    warm.warm_up([program]).unwrap();
    assert_eq!(kernels(&warm), 1);
    assert_eq!(zip.plan::<f32>(&warm).unwrap().program().variant(), best);
    // Vectors of this length, as a single op takes them.
    let (x, y) = (vec![1.5f32; 2 * N], vec![2.0f32; 2 * N]);
    let sums = warm.streamed().chunk(N).zip(&x[..], &y[..], ZipFn::Add).unwrap();
    assert!(sums.len() == 2 * N && sums.iter().all(|z| *z == 3.5));
    assert_eq!(kernels(&warm), 1, "another variant than the tuned one was made ready");
}

#[test]
fn a_variant_that_loses_the_device_is_denied() {
    /// Its variant `plain` destroys the device.
    struct Ends(Gpu);
    impl Op<f32> for Ends {
        fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
            let program = Op::<f32>::lower(&Zip::new(ZipFn::Add, N), profile)?;
            if program.variant() == "plain" {
                self.0.device().destroy();
            }
            Ok(program)
        }
    }
    for save in [true, false] {
        let cache = Cache::new("ends");
        let Some(gpu) = cache.open(Tuning::Cached) else { return };
        let options = TuningOptions { save, ..thorough() };
        let found = tune::<f32, _>(&gpu, &Ends(gpu.clone()), &options);
        let kept = if save { "it is denied from now on" } else { "this is not saved" };
        refused(found, DeviceLost, &["tune: zip: `plain` lost the device", kept]);
        assert_eq!(gpu.denied().len(), 1);
        // The next run of the program skips it.
        let next = cache.open(Tuning::Cached).unwrap();
        assert_eq!(next.denied(), if save { gpu.denied() } else { Vec::new() });
        if save {
            let by_name = Zip::new(ZipFn::Add, 10).variant("plain");
            refused(by_name.plan::<f32>(&next), Unsupported, &["zip", "plain", "was lost", "clear_cache"]);
            let report = tune::<f32, _>(&next, &Ends(next.clone()), &options).unwrap();
            let plain = report.tried.iter().find(|(c, _)| c.variant == "plain").unwrap();
            assert!(matches!(&plain.1, Outcome::Skipped(why) if why.contains("before")), "{report}");
        }
        // If the device was lost before, no variant is denied.
        refused(tune::<f32, _>(&gpu, &Tampered::new(&[], &[]), &options), DeviceLost, &[]);
        assert_eq!(gpu.denied().len(), 1);
    }
}

#[test]
fn a_wrong_variant_is_denied() {
    let cache = Cache::new("wrong");
    let Some(gpu) = cache.open(Tuning::Cached) else { return };
    let op = Tampered::new(&["plain"], &["vec4"]);
    let report = tune::<f32, _>(&gpu, &op, &thorough()).unwrap();
    let plain = report.tried.iter().find(|(c, _)| c.variant == "plain").unwrap();
    assert!(matches!(&plain.1, Outcome::Wrong(why) if why.contains("is NaN, not")), "{report}");
    assert_eq!(report.best.variant, "grid-stride", "{report}");
    let list = gpu.denied();
    assert_eq!(list, report.denied);
    assert!(list.len() == 1 && list[0].to_string().starts_with("zip plain: element "), "{list:?}");
    let by_name = Zip::new(ZipFn::Add, 10).variant("plain");
    refused(by_name.plan::<f32>(&gpu), Unsupported, &["zip", "plain", &gpu.profile().driver, "clear_cache"]);

    // It is not run a second time.
    let again = tune::<f32, _>(&gpu, &op, &thorough()).unwrap();
    let plain = again.tried.iter().find(|(c, _)| c.variant == "plain").unwrap();
    assert!(matches!(&plain.1, Outcome::Skipped(why) if why.contains("before")), "{again}");
    assert!(again.denied.is_empty());

    // Nor in the next run of the program, with tuning or without.
    for tuning in [Tuning::Off, Tuning::Cached] {
        let next = cache.open(tuning).unwrap();
        assert_eq!(next.denied(), list);
        refused(by_name.plan::<f32>(&next), Unsupported, &["plain"]);
    }
    gpu.clear_cache();
    assert!(gpu.denied().is_empty() && cache.open(Tuning::Cached).unwrap().denied().is_empty());
    by_name.plan::<f32>(&gpu).unwrap();
}

#[test]
fn a_default_that_disagrees_with_all_others_is_denied() {
    let cache = Cache::new("default");
    let Some(gpu) = cache.open(Tuning::Cached) else { return };
    let op = Tampered::new(&["vec4"], &[]);
    let report = verify::<f32, _>(&gpu, &op, &thorough()).unwrap();
    let names: Vec<_> = report.denied.iter().map(|d| d.variant.as_str()).collect();
    assert_eq!(names, ["vec4"], "{report}");
    assert_ne!(report.default.variant, "vec4");
    assert!(report.tried.iter().any(|(_, o)| *o == Outcome::Right), "{report}");
    let plan = op.plan::<f32>(&gpu).unwrap();
    assert!(plan.program().variant() != "vec4" && plan.program().decision.why.contains("failed on this driver"));
    // Nothing was measured, so nothing is saved.
    assert!(cache.files("tuning").is_empty() && cache.files("denied").len() == 1);
}

#[test]
fn planning_measures_if_allowed() {
    let cache = Cache::new("measure");
    let Some(gpu) = cache.open(Tuning::Measure) else { return };
    assert_eq!(gpu.tuning(), Tuning::Measure);
    let op = Tampered::new(&[], &["vec4"]);
    let plan = op.plan::<f32>(&gpu).unwrap();
    assert_ne!(plan.program().variant(), "vec4");
    assert!(plan.program().decision.why.starts_with("tuned on this device"), "{}", plan.program().decision.why);
    // The result is saved and looked up from then on.
    let kept = cache.files("tuning");
    assert_eq!(kept.len(), 1);
    let written = gpu.cache().written;
    assert_eq!(op.plan::<f32>(&gpu).unwrap().program().variant(), plan.program().variant());
    assert_eq!(gpu.cache().written, written);
    // Variants selected by name, empty ops, and ops with structured operands are planned as usual.
    let named = Tampered { variant: "vec4", ..op };
    assert_eq!(named.plan::<f32>(&gpu).unwrap().program().variant(), "vec4");
    Zip::new(ZipFn::Add, 0).plan::<f32>(&gpu).unwrap();
    assert_eq!(gpu.cache().written, written);
}

#[test]
fn searches_end_early_or_in_time() {
    let cache = Cache::new("early");
    let Some(gpu) = cache.open(Tuning::Cached) else { return };
    let op = Tampered::new(&["plain", "grid-stride"], &["vec4"]);
    let at_once = TuningOptions { budget: Duration::ZERO, near_roofline: 0.0, ..TuningOptions::default() };
    let report = tune::<f32, _>(&gpu, &op, &at_once).unwrap();
    assert_eq!((report.stopped, report.tried.len()), (Stopped::Budget, 0), "{report}");
    assert!(report.best == report.default && report.default_seconds > 0.0);
    // A provisional result is not saved.
    assert!(cache.files("tuning").is_empty());
    // Everything is close enough to such a roofline, so the wrong variants are not even run.
    let near = TuningOptions { near_roofline: 1e12, ..thorough() };
    let report = tune::<f32, _>(&gpu, &op, &near).unwrap();
    assert_eq!((report.stopped, report.tried.len()), (Stopped::NearRoofline, 0), "{report}");
    assert!(report.percent_of_roofline().unwrap() > 0.0 && gpu.denied().is_empty());
    // No kernel is short enough for this budget.
    let short = TuningOptions { max_text: Some(10), save: false, ..thorough() };
    let report = tune::<f32, _>(&gpu, &op, &short).unwrap();
    let slow = |o: &Outcome| matches!(o, Outcome::Skipped(why) if why.contains("compile slowly"));
    assert!(report.tried.len() == 2 && report.tried.iter().all(|(_, o)| slow(o)), "{report}");
}

#[test]
fn nothing_is_saved_unless_requested() {
    let cache = Cache::new("unsaved");
    let Some(gpu) = cache.open(Tuning::Cached) else { return };
    let op = Tampered::new(&["plain"], &["vec4"]);
    let report = tune::<f32, _>(&gpu, &op, &TuningOptions { save: false, ..thorough() }).unwrap();
    assert!(report.best.variant == "grid-stride" && gpu.denied().len() == 1, "{report}");
    assert_eq!(op.plan::<f32>(&gpu).unwrap().program().variant(), "grid-stride");
    assert!(cache.files("tuning").is_empty() && cache.files("denied").is_empty());
}

#[test]
fn tuning_only_reads_the_callers_operands() {
    let cache = Cache::new("given");
    let Some(gpu) = cache.open(Tuning::Cached) else { return };
    let (x, y) = (gpu.upload(&vec![1.5f32; N]).unwrap(), gpu.upload(&vec![2.0f32; N]).unwrap());
    let z = gpu.upload(&vec![7.0f32; N]).unwrap();
    let op = Tampered::new(&[], &["vec4"]);
    let operands = [&x, &y, &z].map(|b| b.slice(..).unwrap().untyped());
    let report = tune_with::<f32, _>(&gpu, &op, &operands, &thorough()).unwrap();
    // The slowed variant is several times as slow; other tests share the processor.
    assert!(report.gain() > 1.2 && report.denied.is_empty(), "{report}");
    assert!(z.read().unwrap().iter().all(|z| *z == 7.0));
    let result = tune_with::<f32, _>(&gpu, &op, &operands[..2], &thorough());
    refused(result, Shape, &["2 operands given; the plan wants 3"]);
    let short = [x.slice(1..).unwrap().untyped(), operands[1], operands[2]];
    refused(tune_with::<f32, _>(&gpu, &op, &short, &thorough()), Shape, &["zip", "elements"]);
}

#[test]
fn every_variant_of_tunable_ops_verifies_here() {
    let cache = Cache::new("all");
    let Some(gpu) = cache.open(Tuning::Cached) else { return };
    let options = TuningOptions { save: false, ..thorough() };
    let reports = [
        verify::<f32, _>(&gpu, &Gemm::new(65, 70, 80), &options),
        verify::<f32, _>(&gpu, &Reduce::new(Sum, 5000), &options),
        verify::<f32, _>(&gpu, &Scan::new(Sum, 5000), &options),
        verify::<f32, _>(&gpu, &Softmax::new(7, 300), &options),
        verify::<f32, _>(&gpu, &Conv2d::new([1, 4, 12, 12], 4, [3, 3]).pad([1, 1]), &options),
        verify::<f32, _>(&gpu, &Attention::new([1, 2, 40, 32], [2, 50]), &options),
        verify::<u8, _>(&gpu, &Blur::new(Image::new([40, 30], 1), 3), &options),
        verify::<u32, _>(&gpu, &Histogram::new(5000, 100), &options),
        verify::<u32, _>(&gpu, &RadixSort::new(5000), &options),
    ];
    for report in reports {
        let report = report.unwrap();
        let ran = report.tried.iter().filter(|(_, o)| *o == Outcome::Right).count();
        // OpenGL has only one variant of `sort`.
        assert!(report.denied.is_empty() && (ran > 0 || gpu.profile().backend == "gl"), "{report}");
        assert!(report.tried.iter().all(|(_, o)| !matches!(o, Outcome::Wrong(_))), "{report}");
    }
    let select = tune::<f32, _>(&gpu, &Select::new(100), &options);
    refused(select, Unsupported, &["select", "tune_with"]);
}
