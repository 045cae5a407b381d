//! Kernels with one error each: the simulator reports it at its line, and nothing if it is repaired.

use std::collections::BTreeSet;
use std::fs;
use tilework::shader::{Spec, Target, expand_text};
use tilework::sim::{self, FindingKind, Options, Report, Schedule};

/// A kernel `kernels/FILE.wgsl`, the flag that breaks it, and its inputs. A comment with the flag marks the line of the
/// error, one with `other` that of the other access.
struct Case {
    file: &'static str,
    flag: &'static str,
    entry: &'static str,
    workgroups: [u32; 3],
    buffers: fn() -> Vec<Vec<u8>>,
    finds: FindingKind,
}

fn words(n: u32) -> Vec<u8> {
    (0..n).flat_map(|i| (i % 10).to_le_bytes()).collect()
}

fn floats(n: u32) -> Vec<u8> {
    (0..n).flat_map(|i| (2.0 - (i % 10) as f32).to_le_bytes()).collect()
}

/// m = 12, k = 6, n = 9, in tiles of 8.
fn matrices() -> Vec<Vec<u8>> {
    let params: Vec<u8> = [12u32, 6, 9, 0].iter().flat_map(|x| x.to_le_bytes()).collect();
    vec![params, floats(72), floats(54), vec![0; 4 * 108]]
}

fn cases() -> Vec<Case> {
    use FindingKind::*;
    let case =
        |file, entry, x, buffers, finds| Case { file, flag: "BROKEN", entry, workgroups: [x, 1, 1], buffers, finds };
    let matmul = |flag, finds| {
        let buffers = matrices;
        Case { file: "matmul", flag, entry: "multiply", workgroups: [2, 2, 1], buffers, finds }
    };
    vec![
        case("reduction_tail", "reduce", 1, || vec![floats(128), floats(1)], Race),
        case("kogge_stone", "scan", 1, || vec![words(64), words(64)], Race),
        matmul("NO_BARRIER", Race),
        matmul("DROPS_TILE", Untouched),
        matmul("NO_ZERO_FILL", Uninitialized),
        case("one_cell", "total", 4, || vec![words(256), words(1)], Race),
        case("wrong_barrier", "turn", 1, || vec![words(64)], Race),
        case("half_words", "fill", 1, || vec![vec![0; 128]], Race),
        case("uninitialized_workgroup", "fill", 1, || vec![words(64)], Uninitialized),
        case("uninitialized_private", "keep", 1, || vec![words(32)], Uninitialized),
        case("uninitialized_pointer", "total", 1, || vec![words(32)], Uninitialized),
        case("out_of_bounds_buffer", "double", 2, || vec![floats(100)], OutOfBounds),
        case("out_of_bounds_array", "count", 1, || vec![words(20)], OutOfBounds),
        case("barrier_in_branch", "swap", 1, || vec![words(64)], NonUniformBarrier),
        case("barrier_after_return", "swap", 1, || vec![words(50)], NonUniformBarrier),
        case("barrier_counts", "wait", 1, || vec![words(64)], NonUniformBarrier),
        case("barrier_rounds", "wait", 1, || vec![words(128)], NonUniformBarrier),
        case("subgroup_barrier", "wait", 1, || vec![words(64)], NonUniformSubgroup),
        case("subgroup_in_branch", "sum", 1, || vec![words(64)], NonUniformSubgroup),
        case("uniform_load", "load", 1, || vec![words(64)], NonUniformLoad),
        case("spin_lock", "add", 1, || vec![vec![0; 4], vec![0; 4]], Livelock),
        case("deadlock", "add", 2, || vec![vec![0; 8], vec![0; 8]], Livelock),
        case("lookback", "scan", 4, || vec![words(256), words(256), vec![0; 16]], Livelock),
        case("second_post", "draw", 4, || vec![vec![0; 8], vec![0; 4]], Livelock),
        case("never_ends", "walk", 1, || vec![words(32)], StepLimit),
        case("division", "mean", 1, || vec![words(32)], Division),
        case("shift", "mask", 1, || vec![words(64)], Shift),
        case("nan", "deviation", 1, || vec![floats(32)], NanBorn),
        case("nan_subgroup", "sum", 1, || vec![floats(64)], NanBorn),
    ]
}

impl Case {
    /// The kernel's text, with or without its error.
    fn text(&self, broken: bool) -> String {
        let path = format!("{}/tests/sim/kernels/{}.wgsl", env!("CARGO_MANIFEST_DIR"), self.file);
        let spec = Spec::new().flag(self.flag, broken);
        let text = expand_text("k.wgsl", &fs::read_to_string(path).unwrap(), &spec, Target::Naga);
        text.unwrap().text().to_owned()
    }
}

fn run(case: &Case, text: &str, schedule: Schedule, subgroup_size: u32) -> Report {
    let options = Options {
        subgroup_size,
        schedule,
        step_limit: 1 << 16,
        check_nan: true,
        check_untouched: case.finds == FindingKind::Untouched,
        ..Options::default()
    };
    let mut buffers = (case.buffers)();
    sim::run_wgsl("k.wgsl", text, case.entry, case.workgroups, &mut buffers, &options)
        .unwrap_or_else(|e| panic!("{}: {e}", case.file))
}

const SCHEDULES: [Schedule; 4] = [Schedule::InOrder, Schedule::Reverse, Schedule::Random(5), Schedule::Adversarial];

#[test]
fn each_broken_kernel_is_reported_at_its_line() {
    use FindingKind::*;
    for case in cases() {
        let text = case.text(true);
        let mark = format!("<- {}", case.flag);
        let line = text.lines().position(|l| l.contains(&mark)).unwrap() as u32 + 1;
        for schedule in SCHEDULES {
            let (report, label) = (run(&case, &text, schedule, 32), format!("{}, {schedule:?}", case.file));
            // Waiting for another workgroup is correct while that one runs.
            if ["lookback", "second_post"].contains(&case.file) && schedule != Schedule::Adversarial {
                assert!(report.is_clean(), "{label}: {report}");
                continue;
            }
            // An endless loop may be stopped at either of its two lines.
            let last = line + u32::from(case.finds == FindingKind::StepLimit);
            // A thread that never held a lock waits for the first of two.
            let line = line - if case.file == "deadlock" { 2 } else { 0 };
            let mut there =
                report.of(case.finds).filter(|f| f.at.file == "k.wgsl" && (line..=last).contains(&f.at.line));
            let found = there.next();
            let found = found.unwrap_or_else(|| panic!("{label}: no {:?} at {line}:\n{report}", case.finds));
            // Some need two threads: the finding also names the place of the other.
            let takes_two = [Race, SameValueRace, NonUniformBarrier, NonUniformSubgroup].contains(&case.finds);
            assert_eq!(found.other.is_some(), takes_two, "{label}: {found}");
            if let Some((at, other)) = &found.other {
                let marked = text.lines().nth(at.line as usize - 1).unwrap_or_default();
                assert!(marked.contains(&mark) || marked.contains("<- other"), "{label}: {found}");
                assert_ne!(*other, found.thread, "{label}: {found}");
            }
        }
    }
}

#[test]
fn repaired_kernels_are_clean() {
    for case in cases() {
        for schedule in SCHEDULES {
            for subgroup_size in [4, 32, 64] {
                let report = run(&case, &case.text(false), schedule, subgroup_size);
                assert!(report.is_clean(), "{}, {schedule:?}, {subgroup_size}:\n{report}", case.file);
            }
        }
    }
}

#[test]
fn every_broken_kernel_has_a_test() {
    let files = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sim/kernels")).unwrap();
    let files = files.map(|f| f.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned());
    let tested: BTreeSet<_> = cases().iter().map(|c| c.file.to_owned()).collect();
    assert_eq!(files.collect::<BTreeSet<_>>(), tested);
}

#[test]
fn a_finding_names_both_threads() {
    let case = cases().into_iter().find(|c| c.file == "one_cell").unwrap();
    let report = run(&case, &case.text(true), Schedule::InOrder, 32);
    let race = report.of(FindingKind::Race).next().unwrap();
    let (line, other) = race.other.as_ref().unwrap();
    assert_eq!((race.thread.workgroup, other.workgroup), ([1, 0, 0], [0, 0, 0]));
    assert_eq!((race.thread.local, race.thread.global, line), ([0; 3], [64, 0, 0], &race.at));
    let told = race.to_string();
    assert!(told.contains("byte 0 of `sum`") && told.contains("thread (64, 0, 0) of workgroup (1, 0, 0)"), "{told}");
}

#[test]
fn waiting_for_a_running_workgroup_is_not_a_livelock() {
    // The first workgroup works for long before it posts; within a workgroup so does the last subgroup.
    let text = "@group(0) @binding(0) var<storage, read_write> post: atomic<u32>;
        @group(0) @binding(1) var<storage, read_write> sums: array<u32>;
        var<workgroup> wg_post: atomic<u32>;
        fn work(n: u32) -> u32 {
            var sum = 1u;
            for (var i = 0u; i < n; i++) { sum = sum * 3u + i; }
            return sum;
        }
        @compute @workgroup_size(1)
        fn among_workgroups(@builtin(workgroup_id) group: vec3<u32>) {
            if group.x == 0u {
                sums[0] = work(500000u);
                atomicStore(&post, 1u);
            } else {
                while atomicLoad(&post) == 0u {} // wait
                sums[group.x] = 1u;
            }
        }
        @compute @workgroup_size(64)
        fn in_workgroup(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
            if lane < 32u {
                while atomicLoad(&wg_post) == 0u {} // wait
            } else if lane == 63u {
                sums[group.x] = work(100000u);
                atomicStore(&wg_post, 1u);
            }
        }";
    let run = |entry, schedule| {
        let mut buffers = [vec![0; 4], vec![0; 16]];
        let given = if entry == "among_workgroups" { &mut buffers[..] } else { &mut buffers[1..] };
        let options = Options { schedule, zero_initialized: true, ..Options::default() };
        sim::run_wgsl("k.wgsl", text, entry, [4, 1, 1], given, &options).unwrap()
    };
    for schedule in [Schedule::InOrder, Schedule::Reverse, Schedule::Random(3)] {
        let report = run("among_workgroups", schedule);
        assert!(report.is_clean(), "{schedule:?}: {report}");
    }
    for schedule in [Schedule::LastFirst, Schedule::Adversarial] {
        let report = run("among_workgroups", schedule);
        let found = report.of(FindingKind::Livelock).next().unwrap_or_else(|| panic!("{schedule:?}: {report}"));
        assert_eq!(found.at.line, 15);
    }
    for schedule in SCHEDULES {
        let report = run("in_workgroup", schedule);
        assert!(report.is_clean(), "{schedule:?}: {report}");
    }
}

#[test]
fn an_index_out_of_bounds_is_reported_with_its_array() {
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<array<u32, 4>, 3>;
        @compute @workgroup_size(1)
        fn f(@builtin(workgroup_id) id: vec3<u32>) {
            let p = &data[id.x + 5u];
            let q = &data[id.x + 2u][id.x + 9u];
            (*p)[1] = 1u;
            *q = 2u;
        }";
    let mut buffers = vec![vec![0; 48]];
    let report = sim::run_wgsl("k.wgsl", text, "f", [1, 1, 1], &mut buffers, &Options::default()).unwrap();
    let told: Vec<_> = report.findings.iter().map(|f| (f.at.line, f.message.as_str())).collect();
    let write = "a write of element";
    assert_eq!(told, [(6, &*format!("{write} 5 of `data` of 3")), (7, &*format!("{write} 9 of `data` of 4"))]);
}

#[test]
fn repaired_kernels_compute_the_right_results() {
    let all = cases();
    let results = |file: &str, schedule| {
        let case = all.iter().find(|c| c.file == file).unwrap();
        let mut buffers = (case.buffers)();
        let options = Options { schedule, subgroup_size: 8, ..Options::default() };
        sim::run_wgsl("k.wgsl", &case.text(false), case.entry, case.workgroups, &mut buffers, &options).unwrap();
        buffers
    };
    for schedule in SCHEDULES {
        let lookback = results("lookback", schedule);
        let mut sum = 0;
        for (word, got) in lookback[0].chunks(4).zip(lookback[1].chunks(4)) {
            sum += u32::from_le_bytes(word.try_into().unwrap());
            assert_eq!(got, sum.to_le_bytes());
        }
        assert_eq!(results("one_cell", schedule)[1], (0..256u32).map(|i| i % 10).sum::<u32>().to_le_bytes());
        let product = results("matmul", schedule);
        let number = |m: &[u8], i: usize| f32::from_le_bytes(m[4 * i..4 * i + 4].try_into().unwrap());
        for (row, column) in [(0, 0), (11, 8), (7, 8), (8, 7)] {
            let want: f32 =
                (0..6).map(|k| number(&product[1], row * 6 + k) * number(&product[2], k * 9 + column)).sum();
            assert_eq!(number(&product[3], row * 9 + column), want);
        }
    }
}
