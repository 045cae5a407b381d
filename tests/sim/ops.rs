//! Every variant of every op in the simulator, without findings.

use crate::support::Random;
use crate::support::coverage::{all, sample, turn};
use half::f16;
use std::collections::BTreeSet;
use std::time::Instant;
use tilework::program::{DeviceProfile, Kernel, Op, Operand, Operation, Program};
use tilework::sim::{self, FindingKind, Options, Schedule};
use tilework::{DType, ErrorKind, Gemm, MapFn, RadixSort, Reduce, Scan, Sum, Zip, ZipFn};

/// Programs with more elements and operations run only on devices.
const MAX_WORK: f64 = 15_000.0;

/// Valid operands for a program, by their names.
pub(super) fn operands(program: &Program, random: &mut Random) -> Vec<Vec<u8>> {
    let len = |names: &[&str]| program.operands.iter().find(|o| names.contains(&o.name)).map(|o| o.len);
    let entries = len(&["col_idxs", "row_idxs"]);
    program.operands.iter().map(|o| fill(o, entries, random)).collect()
}

/// Fills one operand; `entries` is the number of entries of a sparse matrix.
fn fill(operand: &Operand, entries: Option<usize>, random: &mut Random) -> Vec<u8> {
    let n = operand.len;
    let name = operand.name;
    let mut bytes = Vec::with_capacity(operand.bytes() as usize);
    for i in 0..n {
        let any = random.next();
        let index = match () {
            () if name == "row_ptrs" || name == "col_ptrs" => {
                Some(entries.map_or(3 * i, |entries| i * entries / (n - 1).max(1)) as u32)
            }
            // Three entries per row.
            () if name.ends_with("ptrs") || name == "starts" => Some(3 * i as u32),
            () if name.ends_with("row_idxs") => Some((10 * i / n) as u32),
            () if name == "row_order" => Some(i as u32),
            () if name == "keys" || name == "input" => None,
            () => Some((any % 10) as u32),
        };
        match operand.dtype {
            DType::F32 => bytes.extend((random.unit() as f32).to_le_bytes()),
            DType::F16 => bytes.extend(f16::from_f64(random.unit()).to_le_bytes()),
            DType::U32 => bytes.extend(index.unwrap_or(any as u32).to_le_bytes()),
            DType::I32 => bytes.extend((any as i32).to_le_bytes()),
            DType::U64 => bytes.extend(any.to_le_bytes()),
            _ => bytes.push(any as u8),
        }
    }
    bytes
}

fn work(program: &Program) -> f64 {
    program.operands.iter().map(|o| o.len as f64).sum::<f64>() + program.cost.flop
}

/// Whether a kernel is written for subgroups of this size.
fn fits(kernel: &Kernel, subgroup_size: u32) -> bool {
    subgroup_size >= 32 || !kernel.spec.to_string().contains("LARGE_SUBGROUPS")
}

/// Small programs of the variant with different kernels: at least one, at most `most`.
fn programs(
    op: &Operation, variant: &'static str, profile: &DeviceProfile, most: usize, seen: &mut BTreeSet<String>,
) -> Vec<Program> {
    // The simulator has no 64-bit integers.
    let mut profile = profile.clone();
    profile.features.int64 = false;
    let mut all = match (op.samples)(&profile, variant) {
        Ok(all) => all,
        // Some are written for subgroups of one size.
        Err(e) if e.kind() == ErrorKind::Unsupported => return Vec::new(),
        Err(e) => panic!("{} {variant}: {e}", op.name),
    };
    all.retain(|p| p.kernels.iter().all(|k| fits(k, profile.subgroup_sizes.0)));
    all.sort_by(|a, b| work(a).total_cmp(&work(b)));
    let mut first = true;
    all.retain(|p| {
        let smallest = std::mem::take(&mut first);
        let small = smallest || work(p) <= MAX_WORK;
        small && (p.kernels.iter().filter(|k| seen.insert(format!("{k:?}"))).count() > 0 || smallest)
    });
    all.truncate(most);
    all
}

fn all_are_clean(subgroup_size: u32, schedule: Schedule, most: usize) {
    let mut seen = BTreeSet::new();
    let mut variants = BTreeSet::new();
    let mut wrong = Vec::new();
    for mut profile in [DeviceProfile::h100(), DeviceProfile::webgpu_defaults()] {
        profile.subgroup_sizes = (subgroup_size, subgroup_size);
        for op in tilework::operations().filter(|op| !op.solver) {
            for variant in (op.variants)().iter().filter(|v| v.requires.missing(&profile).is_none()) {
                // In the default run a variant runs for the first profile that takes it.
                if !all() && variants.contains(&(op.name, variant.name)) {
                    continue;
                }
                for program in programs(op, variant.name, &profile, most, &mut seen) {
                    variants.insert((op.name, variant.name));
                    let what = format!("{} {} for {}", op.name, variant.name, profile.name);
                    let random = &mut Random::new(7);
                    let mut operands = operands(&program, random);
                    let options = Options { subgroup_size, schedule, ..Options::default() };
                    let report = sim::run(&program, &mut operands, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
                    wrong.extend(report.findings.iter().map(|f| format!("{what}: {f}")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
    let missing: Vec<_> = tilework::operations()
        .filter(|op| !op.solver)
        .flat_map(|op| (op.variants)().iter().map(|v| (op.name, v.name, v.requires.cooperative)))
        .filter(|(op, variant, cooperative)| {
            // Matrices of 16 x 16 are for subgroups of 32.
            !variants.contains(&(op, variant)) && (!cooperative || subgroup_size == 32)
        })
        .collect();
    assert!(missing.is_empty(), "nothing of these ran: {missing:?}");
}

#[test]
fn ops_are_clean_with_subgroups_of_4_in_random_order() {
    if all() {
        all_are_clean(4, Schedule::Random(11), 2);
    }
}

#[test]
fn ops_are_clean_with_subgroups_of_4_against_an_adversary() {
    if all() {
        all_are_clean(4, Schedule::Adversarial, 2);
    }
}

#[test]
fn ops_are_clean_with_subgroups_of_32_in_reverse() {
    if all() {
        all_are_clean(32, Schedule::Reverse, 2);
    }
}

#[test]
fn ops_are_clean_with_subgroups_of_32_against_an_adversary() {
    all_are_clean(32, Schedule::Adversarial, if all() { 8 } else { 1 });
}

/// A lookback scan of several tiles.
fn lookback(profile: &DeviceProfile, n: usize) -> Program {
    let scan = Scan::new(Sum, n).exclusive().variant("lookback");
    Op::<u32>::lower(&scan, profile).unwrap()
}

#[test]
fn a_lookback_that_only_waits_livelocks_and_ours_does_not() {
    for (subgroup_size, subgroups) in [(4, false), (32, true)] {
        let mut profile = DeviceProfile::h100();
        profile.subgroup_sizes = (subgroup_size, subgroup_size);
        profile.features.subgroups = subgroups;
        let mut program = lookback(&profile, 20_000);
        assert_eq!(program.variant(), "lookback");
        let input: Vec<u32> = (0..20_000).map(|i| i * i % 1000).collect();
        let run = |program: &Program, schedule| {
            let mut operands = vec![bytemuck::cast_slice(&input).to_vec(), vec![0; 80_000]];
            let options = Options { subgroup_size, schedule, ..Options::default() };
            let report = sim::run(program, &mut operands, &options).unwrap();
            (report, operands)
        };
        let (report, operands) = run(&program, Schedule::Adversarial);
        assert!(report.is_clean(), "{report}");
        let mut sum = 0;
        for (x, got) in input.iter().zip(operands[1].chunks(4)) {
            assert_eq!(got, u32::to_le_bytes(sum));
            sum += x;
        }
        for kernel in program.kernels.iter_mut().filter(|k| k.spec.to_string().contains("SPINS")) {
            kernel.spec = kernel.spec.clone().constant("SPINS", 0xffff_fffeu32);
        }
        assert!(run(&program, Schedule::InOrder).0.is_clean());
        let report = run(&program, Schedule::Adversarial).0;
        let found = report.of(FindingKind::Livelock).next().unwrap_or_else(|| panic!("{report}"));
        assert_eq!(found.at.file, "shaders/primitives/scan_lookback.wgsl");
    }
}

#[test]
fn reads_of_unwritten_scratch_are_found() {
    let n = 5_000;
    let mut program = lookback(&DeviceProfile::webgpu_defaults(), n);
    assert!(program.dispatches.len() > 1 && !program.scratch.is_empty());
    let run = |program: &Program| {
        let mut operands = vec![vec![1; 4 * n], vec![0; 4 * n]];
        // Old contents of zero: from any other, the first tile would look back over as many tiles as they say.
        let options = Options { check_scratch: true, scratch_byte: 0, ..Options::default() };
        sim::run(program, &mut operands, &options).unwrap()
    };
    assert!(run(&program).is_clean());
    // Removes the dispatch that clears the scratch.
    program.dispatches.remove(0);
    let report = run(&program);
    assert!(report.of(FindingKind::Uninitialized).next().is_some(), "{report}");
}

/// Some kernels read past the end of their data and discard the values.
#[test]
fn results_do_not_depend_on_old_scratch_contents() {
    let mut seen = BTreeSet::new();
    let mut ran = 0;
    for profile in sample(&[DeviceProfile::h100(), DeviceProfile::webgpu_defaults()], 1) {
        for op in tilework::operations().filter(|op| !op.solver) {
            for variant in (op.variants)().iter().filter(|v| v.requires.missing(profile).is_none()) {
                for program in programs(op, variant.name, profile, if all() { 3 } else { 1 }, &mut seen) {
                    if program.scratch.is_empty() {
                        continue;
                    }
                    let run = |scratch_byte| {
                        let random = &mut Random::new(5);
                        let mut operands = operands(&program, random);
                        let options = Options { scratch_byte, ..Options::default() };
                        sim::run(&program, &mut operands, &options).unwrap();
                        operands
                    };
                    let first = run(0);
                    for &other in sample(&[0xff, 0x3d], 1) {
                        assert!(run(other) == first, "{} {} for {}", op.name, variant.name, profile.name);
                    }
                    ran += 1;
                }
            }
        }
    }
    assert!(ran > if all() { 40 } else { 10 }, "{ran} programs have scratch");
}

#[test]
fn results_do_not_depend_on_schedule_or_subgroups() {
    let mut results = BTreeSet::new();
    for (i, subgroup_size) in [4, 16, 64].into_iter().enumerate() {
        let mut profile = DeviceProfile::h100();
        profile.subgroup_sizes = (subgroup_size, subgroup_size);
        let sort = RadixSort::new(5000);
        let program = Op::<u32>::lower(&sort, &profile).unwrap();
        let schedules = [Schedule::InOrder, Schedule::Reverse, Schedule::Random(3), Schedule::Stalled];
        for (_, schedule) in schedules.into_iter().enumerate().filter(|(j, _)| turn(i + j, 3)) {
            let random = &mut Random::new(1);
            let mut operands = operands(&program, random);
            let options = Options { subgroup_size, schedule, ..Options::default() };
            let report = sim::run(&program, &mut operands, &options).unwrap();
            assert!(report.is_clean(), "{report}");
            results.insert(operands.swap_remove(1));
        }
    }
    assert_eq!(results.len(), 1);
    let bytes = results.first().unwrap().chunks(4);
    let sorted: Vec<u32> = bytes.map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    assert!(sorted.is_sorted() && sorted.len() == 5000);
}

#[test]
fn measured_counts_match_the_declared_cost() {
    let profile = DeviceProfile::webgpu_defaults();
    for (program, reads, writes) in [
        (Op::<f32>::lower(&Zip::new(ZipFn::Add, 4096), &profile).unwrap(), 2 * 4 * 4096, 4 * 4096),
        (Op::<f32>::lower(&tilework::Map::new(MapFn::Abs, 4096), &profile).unwrap(), 4 * 4096, 4 * 4096),
        (Op::<f32>::lower(&Reduce::new(Sum, 4096), &profile).unwrap(), 4 * 4096, 4),
    ] {
        let random = &mut Random::new(1);
        let mut operands = operands(&program, random);
        let counts = sim::run(&program, &mut operands, &Options::default()).unwrap().totals;
        let scratch = 2 * program.scratch_bytes();
        assert!((reads..=reads + scratch).contains(&counts.read_bytes), "{}: {counts:?}", program.op);
        assert!((writes..=writes + scratch).contains(&counts.written_bytes), "{}: {counts:?}", program.op);
        assert!(counts.coalescing() > 0.95, "{}: {counts:?}", program.op);
    }
}

/// An operation is an instruction of the simulator on one active thread, as in `Counts::active`.
#[test]
#[ignore = "a measurement: run it alone"]
fn operations_per_second() {
    for subgroup_size in [4, 32] {
        let mut profile = DeviceProfile::h100();
        profile.subgroup_sizes = (subgroup_size, subgroup_size);
        let programs = [
            Op::<f32>::lower(&Gemm::new(96, 96, 96), &DeviceProfile::webgpu_defaults()).unwrap(),
            Op::<f32>::lower(&Reduce::new(Sum, 200_000), &profile).unwrap(),
            Op::<u32>::lower(&Scan::new(Sum, 100_000), &profile).unwrap(),
            Op::<u32>::lower(&RadixSort::new(5000), &profile).unwrap(),
        ];
        for program in programs {
            let random = &mut Random::new(1);
            let mut operands = operands(&program, random);
            let options = Options { subgroup_size, ..Options::default() };
            let begin = Instant::now();
            let counts = sim::run(&program, &mut operands, &options).unwrap().totals;
            let rate = counts.active as f64 / begin.elapsed().as_secs_f64();
            println!("{} {}, subgroups of {subgroup_size}: {:.0} million", program.op, program.variant(), rate / 1e6);
            assert!(rate > 20e6);
        }
    }
}
