//! Users' fragments and ops, and which of them run without runtime checks.

use crate::support::{Random, gpu};
use std::collections::BTreeSet;
use tilework::elementwise::{Map, MapFn, Zip, ZipFn};
use tilework::gpu::Arg;
use tilework::program::{DeviceProfile, Op, Program};
use tilework::shader::Target;
use tilework::sim::{Options, run_wgsl};
use tilework::{
    CustomOp, MergeSort, Partition, Plannable, Predicate, Reduce, ReduceByKey, Scan, ScanByKey, SegmentedReduce,
    SegmentedScan, Select,
};

#[path = "fuzz/fuzz_targets/fragments.rs"]
mod pieces;

/// A short version of the fuzz target `fragment`, with the same fragments in every run.
#[test]
fn contained_fragments_only_compute() {
    let mut random = Random::new(1);
    let mut below = |n: usize| random.next() as usize % n;
    let (mut contained, mut checked, mut refused) = (0, 0, 0);
    for _ in 0..4000 {
        match pieces::contained(&pieces::fragment(&mut below)) {
            Some(true) => contained += 1,
            Some(false) => checked += 1,
            None => refused += 1,
        }
    }
    assert!(contained > 400 && checked > 400 && refused > 400, "{contained} {checked} {refused}");
}

/// Programs of every op that takes user text; its functions have `head` before them and `more` in them.
fn programs(head: &str, more: &str) -> Vec<Program> {
    let profile = DeviceProfile::h100();
    let map = MapFn::custom(&format!("{head}\nfn map(x: T) -> T {{ {more}\n return x + T(1); }}"));
    let zip = ZipFn::custom(&format!("{head}\nfn zip(x: T, y: T) -> T {{ {more}\n return x + y; }}"));
    let keep = Predicate::custom(&format!("{head}\nfn keep(x: T) -> bool {{ {more}\n return x > T(1); }}"));
    let less = format!("{head}\nfn less(x: T, b: T) -> bool {{ {more}\n return x < b; }}");
    let op = CustomOp::new(&format!(
        "{head}\nfn op_identity() -> T {{ return T(0); }} fn op_combine(x: T, b: T) -> T {{ {more}\n return x + b; }}"
    ));
    vec![
        Op::<f32>::lower(&Map::new(map.clone(), 100), &profile).unwrap(),
        Op::<f32>::lower(&Map::new(map, 100).in_place(), &profile).unwrap(),
        Op::<f32>::lower(&Zip::new(zip, 100), &profile).unwrap(),
        Op::<f32>::lower(&Select::by(100, keep.clone()), &profile).unwrap(),
        Op::<f32>::lower(&Partition::by(100, keep), &profile).unwrap(),
        Op::<f32>::lower(&MergeSort::new(100_000).less(&less), &profile).unwrap(),
        Op::<f32>::lower(&Reduce::new(op.clone(), 100_000), &profile).unwrap(),
        Op::<f32>::lower(&Scan::new(op.clone(), 100_000), &profile).unwrap(),
        Op::<f32>::lower(&ReduceByKey::new(op.clone(), 100_000), &profile).unwrap(),
        Op::<f32>::lower(&SegmentedReduce::new(op.clone(), 100_000), &profile).unwrap(),
        Op::<f32>::lower(&ScanByKey::new(op.clone(), 100_000), &profile).unwrap(),
        Op::<f32>::lower(&SegmentedScan::new(op, 100_000), &profile).unwrap(),
    ]
}

/// The ops whose kernels with user text run without checks, and those with checks.
fn by_checks(programs: &[Program]) -> [BTreeSet<&'static str>; 2] {
    let (mut without, mut with) = (BTreeSet::new(), BTreeSet::new());
    for program in programs {
        for kernel in program.kernels.iter().filter(|k| k.spec.to_string().contains("=user")) {
            let module = kernel.expand(Target::Naga).unwrap().validate().unwrap();
            let set = if module.users_are_contained() { &mut without } else { &mut with };
            set.insert(program.op);
        }
    }
    [without, with]
}

#[test]
fn user_text_of_every_op_is_inspected_like_naga_reads_it() {
    let all = BTreeSet::from([
        "map",
        "zip",
        "select",
        "partition",
        "merge-sort",
        "reduce",
        "scan",
        "scan-by-key",
        "reduce-by-key",
        "segmented-reduce",
        "segmented-scan",
    ]);
    let none = BTreeSet::new();
    for end in ["\n", "\r", "\r\n", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"] {
        let ours = programs(&format!("// a comment{end}/* {end} */"), &format!("let c = x * x; // {end}"));
        assert_eq!(by_checks(&ours), [all.clone(), none.clone()], "{end:?}");
        let writes = programs(&format!("//{end}var<workgroup> w: array<T, 4>;"), "w[u32(x)] = T(7);");
        assert_eq!(by_checks(&writes), [none.clone(), all.clone()], "{end:?}");
        let indexes = programs("", &format!("//{end}var v = array<T, 4>(); v[u32(x)] = x;"));
        assert_eq!(by_checks(&indexes), [none.clone(), all.clone()], "{end:?}");
        let renames = programs(&format!("//{end}alias cosh = f32;"), "");
        assert_eq!(by_checks(&renames), [none.clone(), all.clone()], "{end:?}");
    }
}

/// The library's sum of two vectors, as a user may modify it.
struct Theirs;

impl Op<f32> for Theirs {
    fn lower(&self, profile: &DeviceProfile) -> tilework::Result<Program> {
        let mut program = Op::<f32>::lower(&Zip::new(ZipFn::Add, 1000), profile)?;
        program.kernels.iter_mut().for_each(|kernel| kernel.trusted = true);
        Ok(program)
    }
}

#[test]
fn a_users_op_runs_with_checks() {
    let Some(gpu) = gpu() else { return };
    let trusted = |program: Program| program.kernels.iter().map(|k| k.trusted).collect::<Vec<_>>();
    let ours = Zip::new(ZipFn::Add, 1000);
    assert!(trusted(gpu.lower::<f32, _>(&ours).unwrap()).iter().all(|t| *t));
    assert!(trusted(gpu.lower::<f32, _>(&Theirs).unwrap()).iter().all(|t| !*t));
    assert!(trusted(Theirs.plan::<f32>(gpu).unwrap().program().clone()).iter().all(|t| !*t));
    assert!(trusted(ours.plan::<f32>(gpu).unwrap().program().clone()).iter().all(|t| *t));
}

/// Calls and types at the maximum depth, through the simulator and the driver.
#[test]
fn the_longest_call_chains_compile_and_run() {
    let link = |i: usize, of: &str| of.replace("THIS", &format!("a{i}")).replace("NEXT", &format!("a{}", i + 1));
    for (of, last, body) in [
        ("fn THIS(x: i32) -> i32 { return NEXT(x + 1); }", "fn THIS(x: i32) -> i32 { return x; }", "out[0] = a0(1);"),
        ("const THIS = NEXT + 1;", "const THIS = 1;", "out[0] = a0;"),
        ("struct THIS { x: NEXT }", "struct THIS { x: i32 }", "var z: a0; out[0] = 990; let y = z;"),
        ("alias THIS = array<NEXT, 1>;", "alias THIS = i32;", "var z: a0; out[0] = 990; let y = z;"),
    ] {
        let chain: Vec<_> = (0..990).map(|i| link(i, if i < 989 { of } else { last })).collect();
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<i32>;
            {}
            @compute @workgroup_size(1) fn main() {{ {body} }}",
            chain.join("\n")
        );
        let mut buffers = vec![vec![0; 4]];
        let simulated = run_wgsl("k.wgsl", &text, "main", [1, 1, 1], &mut buffers, &Options::default());
        if simulated.is_ok() {
            assert_eq!(buffers[0], 990i32.to_ne_bytes(), "{of}");
        }
        let Some(gpu) = gpu() else { continue };
        let out = gpu.upload(&[0i32]).unwrap();
        let mut rec = gpu.recorder();
        gpu.kernel("k.wgsl", &text, "main").unwrap().record(&mut rec, &[Arg::from(&out)], [1, 1, 1]).unwrap();
        rec.submit().unwrap();
        assert_eq!(out.read().unwrap(), [990], "{of}");
    }
}
