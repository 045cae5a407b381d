//! Programs written by hand, plans and their reports.

use super::{Caller, open, refused};
use crate::support::{devices, gpu};
use half::f16;
use tilework::ErrorKind::{Aliasing, Buffer as Wrong, InvalidArgument, Shader, Shape, TooLarge};
use tilework::analysis::Multiprocessor;
use tilework::attention::{Attention, KvType};
use tilework::dense::ProductTile;
use tilework::nn::{BiasBackward, Rope, Sequential, SoftmaxBackward};
use tilework::program::{
    Access, Binding, Cost, Decision, Determinism, DeviceProfile, Dispatch, Grid, Kernel, Op, Operand, Program,
    Resource, Source,
};
use tilework::quantize::{Cast, Quantize, Scales};
use tilework::shader::Spec;
use tilework::sparse::{Format, MatrixLayout};
use tilework::{
    Blur, Conv2d, ConvTranspose2d, DType, Filter1d, Gather, Gemm, Gemv, Histogram, LayerNorm, LogSoftmax, Map, MapFn,
    Plannable, Pool2d, Pool2dBackward, PoolKind, RadixSort, Reduce, Scan, Select, Slice, Softmax, Spconvert, Spmm,
    Spmv, Sum, TopK, Transpose,
};

fn kernel(text: &str, entry: &'static str) -> Kernel {
    let source = Source::Text { name: "hand.wgsl".into(), text: text.into() };
    Kernel { source, spec: Spec::new(), entry, trusted: true }
}

fn operand(name: &'static str, len: usize, access: Access) -> Operand {
    Operand { name, dtype: DType::U32, len, access }
}

fn program(operands: Vec<Operand>, kernels: Vec<Kernel>, dispatches: Vec<Dispatch>) -> Program {
    Program {
        op: "hand",
        decision: Decision::policy("only", "written by hand"),
        operands,
        constants: Vec::new(),
        scratch: vec![64],
        kernels,
        dispatches,
        cost: Cost::default(),
        determinism: Determinism::SameBits,
        traffic: None,
    }
}

fn dispatch(kernel: usize, params: &[u32], bindings: Vec<Binding>, grid: Grid) -> Dispatch {
    Dispatch { kernel, params: bytemuck::cast_slice(params).to_vec(), fields: &[], bindings, grid }
}

fn bind(resource: Resource, offset: u64, size: u64) -> Binding {
    Binding { resource, offset, size }
}

/// Writes the workgroup counts of the next dispatch to an operand or to scratch.
const COUNT: &str = "
    struct Params { x: u32, y: u32 }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage, read_write> counts: array<u32>;
    @compute @workgroup_size(1) fn count() { counts[1] = params.x; counts[2] = params.y; counts[3] = 1u; }";
/// Each workgroup that runs leaves a mark.
const MARK: &str = "
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(1) fn mark(@builtin(workgroup_id) id: vec3<u32>) { output[id.x + 8u * id.y] = 1u; }";

fn indirect(counts: Resource) -> Program {
    let operands = vec![operand("counts", 4, Access::ReadWrite), operand("output", 64, Access::Write)];
    let grid = Grid::Indirect { resource: counts, offset: 4 };
    let bytes = 16;
    program(
        operands,
        vec![kernel(COUNT, "count"), kernel(MARK, "mark")],
        vec![
            dispatch(0, &[3, 2], vec![bind(counts, 0, bytes)], Grid::Direct([1, 1, 1])),
            dispatch(1, &[], vec![bind(Resource::Operand(1), 0, 256)], grid),
        ],
    )
}

#[test]
fn indirect_counts_are_read_from_a_buffer() {
    for d in devices() {
        let gpu = &d.gpu;
        for counts in [Resource::Operand(0), Resource::Scratch(0)] {
            let executable = gpu.prepare(indirect(counts)).unwrap();
            let (c, out) = (gpu.alloc_zeroed::<u32>(4).unwrap(), gpu.alloc_zeroed::<u32>(64).unwrap());
            let mut rec = gpu.recorder();
            executable.record(&mut rec, &[Slice::from(&c).untyped(), Slice::from(&out).untyped()]).unwrap();
            rec.submit().unwrap();
            let want: Vec<u32> = (0..64).map(|i| u32::from(i % 8 < 3 && i / 8 < 2)).collect();
            assert_eq!(out.read().unwrap(), want, "{} from {counts:?}", d.label);
        }
    }
}

#[test]
fn indirect_counts_require_indirect_usage() {
    let Some(gpu) = gpu() else { return };
    let executable = gpu.prepare(indirect(Resource::Operand(0))).unwrap();
    let usage = wgpu::BufferUsages::STORAGE;
    let desc = wgpu::BufferDescriptor { label: None, size: 16, usage, mapped_at_creation: false };
    let c = gpu.wrap::<u32>(gpu.device().create_buffer(&desc)).unwrap();
    let out = gpu.alloc::<u32>(64).unwrap();
    let mut rec = gpu.recorder();
    let operands = [Slice::from(&c).untyped(), Slice::from(&out).untyped()];
    refused(executable.record(&mut rec, &operands), Wrong, &["counts", "INDIRECT"]);
    let both = gpu.alloc::<u32>(512).unwrap();
    let operands = [both.slice(..4).unwrap().untyped(), both.slice(..64).unwrap().untyped()];
    refused(executable.record(&mut rec, &operands), Aliasing, &["counts", "output"]);
    rec.submit().unwrap();
}

#[test]
fn rejects_an_inconsistent_program() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let gpu = caller.gpu();
    let out = Resource::Operand(1);
    let good = || indirect(Resource::Operand(0));
    let bad = |change: &dyn Fn(&mut Program)| {
        let mut p = good();
        change(&mut p);
        gpu.prepare(p)
    };
    gpu.prepare(good()).unwrap();
    refused(bad(&|p| p.dispatches[1].kernel = 2), InvalidArgument, &["hand: dispatch 1", "kernel 2 of 2"]);
    refused(bad(&|p| p.dispatches[1].bindings.clear()), InvalidArgument, &["0 bindings", "output at 1"]);
    refused(bad(&|p| p.dispatches[1].params = vec![0; 4]), InvalidArgument, &["2 bindings"]);
    refused(bad(&|p| p.dispatches[0].params.clear()), InvalidArgument, &["1 bindings", "params at 0"]);
    refused(bad(&|p| p.dispatches[0].params = vec![0; 1 << 20]), InvalidArgument, &["parameters"]);
    for resource in [Resource::Operand(2), Resource::Scratch(1), Resource::Scratch(usize::MAX)] {
        refused(bad(&|p| p.dispatches[1].bindings[0].resource = resource), InvalidArgument, &["output"]);
        let grid = Grid::Indirect { resource, offset: 0 };
        refused(bad(&|p| p.dispatches[1].grid = grid), InvalidArgument, &["counts of hand.wgsl:mark"]);
    }
    for binding in [bind(out, 0, 260), bind(out, 256, 4), bind(out, 4, 16), bind(out, u64::MAX - 255, 256)] {
        refused(bad(&|p| p.dispatches[1].bindings[0] = binding), InvalidArgument, &["output"]);
    }
    refused(bad(&|p| p.dispatches[1].bindings[0].size = u64::MAX), TooLarge, &["largest binding"]);
    for (resource, offset) in [(Resource::Operand(0), 8), (Resource::Operand(0), 2), (out, 0), (out, u64::MAX)] {
        let result = bad(&|p| p.dispatches[1].grid = Grid::Indirect { resource, offset });
        refused(result, InvalidArgument, &["three u32"]);
    }
    refused(bad(&|p| p.dispatches[1].grid = Grid::Direct([1, 65536, 1])), TooLarge, &["65536", "65535"]);
    refused(bad(&|p| p.operands[1].access = Access::Read), InvalidArgument, &["output", "only read"]);
    assert_eq!(caller.errors(), 0);
}

#[test]
fn rejects_scratch_bound_for_reading_and_writing() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let gpu = caller.gpu();
    let text = "
        @group(0) @binding(1) var<storage, read> input: array<u32>;
        @group(0) @binding(2) var<storage, read_write> output: array<u32>;
        @compute @workgroup_size(1) fn k() { output[0] = input[0]; }";
    let s = bind(Resource::Scratch(0), 0, 64);
    let p = program(vec![], vec![kernel(text, "k")], vec![dispatch(0, &[], vec![s, s], Grid::Direct([1, 1, 1]))]);
    refused(gpu.prepare(p), InvalidArgument, &["reads input", "two buffers"]);
    assert_eq!(caller.errors(), 0);
}

#[test]
fn constants_are_bound_read_only() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let gpu = caller.gpu();
    let text = "
        @group(0) @binding(1) var<storage, read> table: array<u32>;
        @group(0) @binding(2) var<storage, read_write> output: array<u32>;
        @compute @workgroup_size(1) fn k() { output[0] = table[1]; }";
    let bindings = vec![bind(Resource::Constant(0), 0, 8), bind(Resource::Operand(0), 0, 4)];
    let launch = dispatch(0, &[], bindings, Grid::Direct([1, 1, 1]));
    let mut p = program(vec![operand("output", 1, Access::Write)], vec![kernel(text, "k")], vec![launch]);
    refused(gpu.prepare(p.clone()), InvalidArgument, &["table"]);
    p.constants = vec![vec![0, 0, 0, 0, 42, 0, 0, 0]];
    let executable = gpu.prepare(p.clone()).unwrap();
    let output = gpu.alloc::<u32>(1).unwrap();
    let mut rec = gpu.recorder();
    executable.record(&mut rec, &[Slice::from(&output).untyped()]).unwrap();
    rec.submit().unwrap();
    assert_eq!(output.read().unwrap(), [42]);
    let grid = p.dispatches[0].grid;
    p.dispatches[0].grid = Grid::Indirect { resource: Resource::Constant(0), offset: 0 };
    refused(gpu.prepare(p.clone()), InvalidArgument, &["constant 0", "Grid::Direct"]);
    p.dispatches[0].grid = grid;
    p.constants.push(vec![0; 4]);
    p.dispatches[0].bindings[1].resource = Resource::Constant(1);
    refused(gpu.prepare(p), InvalidArgument, &["output", "constant"]);
    assert_eq!(caller.errors(), 0);
}

#[test]
fn a_modified_program_is_harmless() {
    for d in devices() {
        let gpu = &d.gpu;
        let mut p = Op::<f32>::lower(&Reduce::new(Sum, 1000), gpu.profile()).unwrap();
        assert!(p.kernels[0].trusted);
        for dispatch in &mut p.dispatches {
            // Every size that the kernel trusts now exceeds its buffers, and its loops still end soon.
            dispatch.params.chunks_exact_mut(4).for_each(|p| p.copy_from_slice(&100_000u32.to_le_bytes()));
            dispatch.grid = Grid::Direct([64, 1, 1]);
        }
        let executable = gpu.prepare(p).unwrap();
        assert!(executable.program().kernels.iter().all(|k| !k.trusted));
        let (x, y) = (gpu.upload(&[1.0f32; 1000]).unwrap(), gpu.alloc::<f32>(1).unwrap());
        if gpu.profile().backend == "gl" {
            // naga's GLSL backend has no bounds checks.
            continue;
        }
        let mut rec = gpu.recorder();
        executable.record(&mut rec, &[Slice::from(&x).untyped(), Slice::from(&y).untyped()]).unwrap();
        rec.submit().unwrap();
        gpu.wait().unwrap();
        assert_eq!(x.read().unwrap(), [1.0; 1000], "{}", d.label);
    }
}

#[test]
fn warming_up_compiles_every_kernel_and_reports_the_first_failure() {
    let Some(gpu) = open(false) else { return };
    let lower = |variant: &str| Op::<f32>::lower(&Reduce::new(Sum, 100_000).variant(variant), gpu.profile()).unwrap();
    let good: Vec<_> = ["interleaved", "sequential", "shared", "coarsened"].map(lower).into();
    gpu.warm_up(&good).unwrap();
    gpu.warm_up::<Program>([]).unwrap();
    let broken = |text: &str, name: &str| {
        let source = Source::Text { name: name.into(), text: text.into() };
        let k = Kernel { source, spec: Spec::new(), entry: "k", trusted: false };
        program(vec![], vec![k], vec![])
    };
    // Failures before and after valid kernels, so that every thread meets one.
    let last = Op::<i32>::lower(&Reduce::new(Sum, 50), gpu.profile()).unwrap();
    let programs = [
        &good[0],
        &broken("fn k( {}", "first.wgsl"),
        &broken("oops", "second.wgsl"),
        &broken("oh", "third.wgsl"),
        &last,
    ];
    refused(gpu.warm_up(programs), Shader, &["first.wgsl:1"]);
    let began = std::time::Instant::now();
    Reduce::new(Sum, 50).plan::<i32>(&gpu).unwrap();
    assert!(began.elapsed().as_millis() < 50, "the program after the broken ones was not compiled ahead");
}

#[test]
fn a_report_says_what_runs_and_why() {
    let Some(gpu) = gpu() else { return };
    let report = Reduce::new(Sum, 1 << 20).plan::<f32>(gpu).unwrap().report();
    assert_eq!((report.op, report.decision.variant), ("reduce", "coarsened"));
    assert!(!report.decision.why.is_empty() && report.adapter == gpu.profile().name);
    assert_eq!(report.cost, Cost { flop: ((1 << 20) - 1) as f64, bytes: (4 * ((1 << 20) + 1)) as f64 });
    assert!(report.scratch > 0 && report.dispatches.len() == 2);
    let (seconds, predicted) = (report.minimum_seconds().unwrap(), report.predicted_seconds().unwrap());
    assert!(seconds > 0.0 && seconds < predicted && predicted < 1.0, "{seconds} and {predicted}");
    assert_eq!(report.bound(), Some("memory"));
    let (intensity, ridge) = (report.intensity().unwrap(), report.roofline().unwrap().ridge());
    assert!((intensity - 0.25).abs() < 1e-5 && ridge > 0.0, "{intensity} and {ridge}");
    // Partial results are written and read once more.
    assert_eq!(report.facts[0].name, "asked");
    assert!(report.facts[0].value > 1.0 && report.facts[0].value < 1.1, "{:?}", report.facts);
    assert_eq!(report.facts[1].to_string(), "joins 1048575 (at the least)");
    // Two kernels, the second of which combines the results of the first.
    assert_eq!(report.kernels.len(), 2);
    for kernel in &report.kernels {
        assert!(kernel.invocations() >= 64 && kernel.workgroup_bytes > 0 && kernel.barriers > 0, "{kernel:?}");
    }
    assert!((report.percent_of_roofline(seconds).unwrap() - 100.0).abs() < 1e-9);
    let mut report = report;
    let known = report.multiprocessor != Multiprocessor::default();
    assert_eq!(known, !report.to_string().contains("occupancy unknown"));
    report.multiprocessor = Multiprocessor::of_adapter("NVIDIA H100 PCIe").unwrap();
    let text = report.to_string();
    for part in [
        "intensity   0.250 operations a byte (the roofline's ridge is at",
        "workgroups  primitives/reduce_coarsened:",
        "bytes of workgroup memory",
        "on a multiprocessor, 100 % of its warps, by threads",
        "joins 1048575 (at the least)",
        "reduce on",
        "variant     coarsened (",
        "operations",
        "bytes minimum",
        "scratch",
        "dispatches",
        "primitives/reduce_coarsened",
        "workgroups",
        "predicted",
        "GB/s",
        "GFLOP/s",
        "same device, same bits",
        "input f32[1048576]",
        "output f32[1]",
    ] {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    // Measured once on a quiet machine.
    assert_eq!(gpu.ceilings().unwrap(), gpu.ceilings().unwrap());
}

#[test]
fn planning_again_reuses_the_plan() {
    let Some(gpu) = gpu() else { return };
    Reduce::new(Sum, 777).plan::<f32>(gpu).unwrap();
    let began = std::time::Instant::now();
    for _ in 0..1000 {
        Reduce::new(Sum, 777).plan::<f32>(gpu).unwrap();
    }
    // The documentation promises 20 us each; the margin allows for a busy machine.
    assert!(began.elapsed().as_micros() < 1000 * 200, "{:?} for 1000 plans", began.elapsed());
}

/// Runs that each fit one binding would not fit in memory.
#[test]
fn rejects_lengths_that_no_device_holds() {
    for profile in [DeviceProfile::webgpu_defaults(), DeviceProfile::h100()] {
        for n in [1 << 45, 1 << 50, 1 << 59] {
            let all: [tilework::Result<Program>; 11] = [
                Op::<f32>::lower(&Reduce::new(Sum, n), &profile),
                Op::<u8>::lower(&Reduce::rows(Sum, n / 4, 4), &profile),
                Op::<f32>::lower(&Scan::new(Sum, n), &profile),
                Op::<u8>::lower(&Histogram::new(n, 256), &profile),
                Op::<u32>::lower(&RadixSort::new(n), &profile),
                Op::<f32>::lower(&TopK::new(n, 5), &profile),
                Op::<u32>::lower(&Select::new(n), &profile),
                Op::<f32>::lower(&Map::new(MapFn::Abs, n), &profile),
                Op::<f32>::lower(&Softmax::new(n / 4, 4), &profile),
                Op::<f32>::lower(&Cast::new(n), &profile),
                Op::<f32>::lower(&Gemv::new(n / 4, 4), &profile),
            ];
            for (number, refused) in all.into_iter().enumerate() {
                let e = refused.map(|p| p.op).unwrap_err();
                assert!(matches!(e.kind(), TooLarge | InvalidArgument), "{number} of {n}: {e}");
            }
        }
    }
}

#[test]
fn rejects_shapes_whose_size_overflows() {
    const MOST: usize = usize::MAX;
    let net = Sequential::new([MOST, 2, 2]).flatten().linear(2);
    assert_eq!(net.input_len(), MOST);
    let deep = Sequential::new([1, 1, 1 << 30]).linear(1 << 30).linear(1 << 30);
    assert_eq!(deep.parameter_len().unwrap_err().kind(), TooLarge);
    let stored =
        |format| MatrixLayout { rows: MOST, cols: MOST, entries: 1, longest: MOST, format, values: DType::F32 };
    let formats = [
        Format::Csr,
        Format::Csc,
        Format::Jds,
        Format::Sell { slice: 1, places: 1 },
        Format::Ell { width: 1 },
        Format::Coo { sorted: true },
    ];
    for profile in
        [DeviceProfile::webgpu_defaults(), DeviceProfile::swiftshader(), DeviceProfile::mesa(), DeviceProfile::h100()]
    {
        let mut all: Vec<tilework::Result<Program>> = vec![
            Op::<f32>::lower(&Filter1d::new(MOST, &[1.0]), &profile),
            Op::<u8>::lower(&Transpose::new(1, MOST), &profile),
            Op::<f32>::lower(&Reduce::rows(Sum, 1, MOST), &profile),
            Op::<f16>::lower(&LogSoftmax::new(1, MOST), &profile),
            Op::<f32>::lower(&BiasBackward::new([0, 1, MOST]), &profile),
            Op::<f16>::lower(&Cast::new(MOST / 2), &profile),
            // Empty, and yet too large.
            Op::<u8>::lower(&Blur::new([0, MOST, 3], 1), &profile),
            Op::<f32>::lower(&SoftmaxBackward::new(MOST, 0), &profile),
            Op::<f32>::lower(&Rope::new([MOST, 0, 2, 4]), &profile),
            Op::<i8>::lower(&Gather::new([MOST, 0], MOST), &profile),
            Op::<f16>::lower(&Pool2dBackward::new(PoolKind::Weighted(vec![1.0]), [1; 4], [MOST; 2]), &profile),
            Op::<f32>::lower(
                &Gemm::new(8, 8, 8).variant("register").tile(ProductTile { m: u32::MAX, n: 8, k: 8 }),
                &profile,
            ),
            Op::<f32>::lower(&Conv2d::new([1, 1, 4, 4], 1, [MOST, 3]), &profile),
            Op::<f32>::lower(&Pool2d::new(PoolKind::Max, [1, 1, 4, 4], [3, MOST]), &profile),
            Op::<f32>::lower(&Quantize::<i8>::new(2, 2).scales(Scales::Group(0)), &profile),
            // One factor per row, for many short rows.
            Op::<f32>::lower(&Attention::new([1 << 23, 1, 1, 8], [1, 300]).kv(KvType::Int8), &profile),
            Op::<f32>::lower(&LayerNorm::new(1 << 30, 4).variant("parts"), &profile),
            Op::<f32>::lower(&net.forward(1), &profile),
            Op::<f32>::lower(&deep.forward(1), &profile),
        ];
        let long = MatrixLayout { rows: 1, cols: 1, longest: MOST / 3, ..stored(Format::Jds) };
        all.push(Op::<f32>::lower(&Spconvert::new(long, MatrixLayout { format: Format::Csc, ..long }), &profile));
        for format in formats {
            all.push(Op::<f32>::lower(&Spmv::new(stored(format)), &profile));
            all.push(Op::<f32>::lower(&Spmm::new(stored(format), 3), &profile));
            let csr = stored(Format::Csr);
            all.push(Op::<f32>::lower(&Spconvert::new(csr, stored(format)), &profile));
        }
        let bytes = MatrixLayout { rows: 9, cols: 9, longest: 3, values: DType::U8, ..stored(Format::Csr) };
        all.push(Op::<f32>::lower(&Spconvert::new(bytes, bytes), &profile));
        // An image of more than 2^32 elements, on a device that could bind it.
        let mut wide = profile.clone();
        (wide.limits.max_storage_binding, wide.limits.max_buffer_size) = (1 << 50, 1 << 50);
        all.push(Op::<f32>::lower(&ConvTranspose2d::new([1, 1, 40_000, 40_000], 64, [1, 1]), &wide));
        for (number, refused) in all.into_iter().enumerate() {
            let e = refused.map(|p| p.op).unwrap_err();
            assert!(matches!(e.kind(), TooLarge | InvalidArgument | Shape), "{number}: {e}");
        }
    }
}
