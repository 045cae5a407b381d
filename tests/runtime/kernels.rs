//! Custom kernels: their WGSL, arguments and grids.

use super::{Caller, open, refused};
use crate::support::{devices, gpu};
use tilework::ErrorKind::{Aliasing, Buffer as Wrong, InvalidArgument, Shader, Shape, TooLarge, Unsupported};
use tilework::gpu::Arg;
use tilework::{Plannable, RadixSort, Select};

const SCALE: &str = "
struct Scale { factor: f32, offset: f32 }
@group(0) @binding(0) var<uniform> scale: Scale;
@group(0) @binding(1) var<storage, read> input: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@compute @workgroup_size(64) fn apply(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&output) { output[id.x] = scale.factor * input[id.x] + scale.offset; }
}";

#[test]
fn wgsl_errors_name_file_and_line() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let gpu = caller.gpu();
    let whole = |body: &str| format!("// one\n@compute @workgroup_size(1) fn k() {{\n{body}\n}}\n");
    let cases: &[(String, &[&str])] = &[
        (whole("let x = ;"), &["mine.wgsl:3"]),
        (whole("let x = y;"), &["mine.wgsl:3", "y"]),
        (whole("let x: u32 = 1.5f;"), &["mine.wgsl:3"]),
        (whole("#include nothing"), &["mine.wgsl:3", "#include"]),
        (whole("") + "#import op/adds\n", &["mine.wgsl:5", "op/adds", "op/add,"]),
        (whole("") + "var<storage, read_write> x: array<f32>;", &["mine.wgsl"]),
        (String::new(), &["mine.wgsl", "`k`"]),
        ("}{".into(), &["mine.wgsl:1"]),
        ("\u{0}\u{fffd}🦀".into(), &["mine.wgsl:1"]),
        (whole("").replace("fn k", "fn other"), &["`k`", "other"]),
        ("@fragment fn k() {}".into(), &["@compute"]),
        (
            "@group(1) @binding(0) var<storage, read_write> far: array<u32>;\n".to_owned() + &whole("far[0] = 1u;"),
            &["far", "@group(0)"],
        ),
        ("@group(0) @binding(0) var t: texture_2d<f32>;\n".to_owned() + &whole("_ = t;"), &["buffers only"]),
    ];
    for (text, words) in cases {
        refused(gpu.kernel("mine.wgsl", text, "k"), Shader, words);
    }
    assert_eq!(caller.errors(), 0);
}

#[test]
fn rejects_a_kernel_above_the_limits() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let gpu = caller.gpu();
    let bindings: String =
        (0..9).map(|i| format!("@group(0) @binding({i}) var<storage, read_write> x{i}: array<u32>;\n")).collect();
    let uses: String = (0..9).map(|i| format!("x{i}[0] = 1u;")).collect();
    let many = format!("{bindings}@compute @workgroup_size(1) fn k() {{ {uses} }}");
    refused(gpu.kernel("many.wgsl", &many, "k"), Unsupported, &["9 storage buffers", "8"]);
    let wide = "@compute @workgroup_size(16, 16, 2) fn k() {}";
    refused(gpu.kernel("wide.wgsl", wide, "k"), Unsupported, &["16 x 16 x 2", "256"]);
    let fat = "var<workgroup> wg_x: array<u32, 5000>; @compute @workgroup_size(1) fn k() { wg_x[0] = 1u; }";
    refused(gpu.kernel("fat.wgsl", fat, "k"), Unsupported, &["20000 bytes", "16384"]);
    // An error that only wgpu can detect does not lose the device.
    let far = "@group(0) @binding(70000) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn k() { x[0] = 1u; }";
    let error = gpu.kernel("the lost ark.wgsl", far, "k").unwrap_err();
    assert_ne!(error.kind(), tilework::ErrorKind::DeviceLost, "{error}");
    gpu.probe().unwrap();
    assert_eq!(caller.errors(), 0);
}

#[test]
fn rejects_wrong_arguments() {
    let (Some(gpu), Some(other)) = (gpu(), open(true)) else { return };
    let kernel = gpu.kernel("scale.wgsl", SCALE, "apply").unwrap();
    let (x, y) = (gpu.upload(&[1.0f32; 128]).unwrap(), gpu.upload(&[5.0f32; 128]).unwrap());
    let scale = [2.0f32, 1.0];
    let (s, a, b) = (Arg::uniform(&scale), Arg::from(&x), Arg::from(&y));
    let mut rec = gpu.recorder();
    let one = [1, 1, 1];
    let result = kernel.record(&mut rec, &[s, a], one);
    refused(result, Shape, &["apply", "2 arguments", "3 bindings", "scale, input, output"]);
    refused(kernel.record(&mut rec, &[s, a, b, b], one), Shape, &["4 arguments"]);
    refused(kernel.record(&mut rec, &[], one), Shape, &[]);
    refused(kernel.record(&mut rec, &[a, s, b], one), Shape, &["input", "Read"]);
    refused(kernel.record(&mut rec, &[b, a, b], one), Aliasing, &["scale", "output"]);
    let raw = |size| {
        let usage = tilework::wgpu::BufferUsages::STORAGE;
        let desc = tilework::wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        gpu.wrap::<f32>(gpu.device().create_buffer(&desc)).unwrap()
    };
    refused(kernel.record(&mut rec, &[(&raw(16)).into(), a, b], one), Wrong, &["scale", "UNIFORM"]);
    let most = gpu.profile().limits.max_uniform_binding as usize / 4;
    refused(gpu.uniform(&vec![0f32; most + 1]), TooLarge, &["largest uniform"]);
    let whole = gpu.uniform(&vec![0f32; most]).unwrap();
    kernel.record(&mut gpu.recorder(), &[(&whole).into(), a, b], one).unwrap();
    let more = gpu.upload(&vec![0f32; most + 1]).unwrap();
    refused(kernel.record(&mut rec, &[(&more).into(), a, b], one), TooLarge, &["scale", "largest uniform"]);
    refused(
        kernel.record(&mut rec, &[(&gpu.uniform::<f32>(&[]).unwrap()).into(), a, b], one),
        Shape,
        &["scale", "0 bytes"],
    );
    refused(kernel.record(&mut rec, &[s, s, b], one), Shape, &["input", "Read"]);
    refused(kernel.record(&mut rec, &[Arg::uniform(&1.0f32), a, b], one), Shape, &["scale", "4 bytes", "8"]);
    refused(kernel.record(&mut rec, &[Arg::Uniform(&[]), a, b], one), Shape, &["0 bytes"]);
    let nothing = gpu.alloc::<f32>(0).unwrap();
    let result = kernel.record(&mut rec, &[s, a, (&nothing).into()], one);
    refused(result, Shape, &["output", "0 bytes", "at least 4"]);
    refused(kernel.record(&mut rec, &[s, a, a], one), Aliasing, &["input", "output", "two buffers"]);
    let (front, back) = (x.slice(..64).unwrap(), x.slice(64..).unwrap());
    refused(kernel.record(&mut rec, &[s, front.into(), back.into()], one), Aliasing, &[]);
    let result = kernel.record(&mut rec, &[s, x.slice(1..2).unwrap().into(), b], one);
    refused(result, Wrong, &["byte 4", "multiple"]);
    let foreign = other.upload(&[1.0f32; 128]).unwrap();
    refused(kernel.record(&mut rec, &[s, (&foreign).into(), b], one), Wrong, &["another Gpu"]);
    refused(kernel.record(&mut other.recorder(), &[s, a, b], one), Wrong, &["another Gpu"]);
    let bytes = gpu.upload(&[1u8; 12]).unwrap();
    refused(kernel.record(&mut rec, &[s, a, bytes.slice(..5).unwrap().into()], one), Wrong, &["4-byte word"]);
    let limit = gpu.profile().limits.max_workgroups_per_dimension;
    for workgroups in [[limit + 1, 1, 1], [1, u32::MAX, 1], [1, 1, limit + 1]] {
        let result = kernel.record(&mut rec, &[s, a, b], workgroups);
        refused(result, TooLarge, &["workgroups", &limit.to_string()]);
    }
    let huge = vec![0u8; gpu.profile().limits.max_uniform_binding as usize + 16];
    let result = kernel.record(&mut rec, &[Arg::Uniform(&huge), a, b], one);
    refused(result, TooLarge, &["scale", "largest uniform"]);
    // A grid without workgroups does nothing.
    kernel.record(&mut rec, &[s, a, b], [0, 1, 1]).unwrap();
    rec.submit().unwrap();
    assert_eq!(y.read().unwrap(), [5.0; 128]);
    let mut rec = gpu.recorder();
    kernel.record(&mut rec, &[s, a, b], [2, 1, 1]).unwrap();
    rec.submit().unwrap();
    assert_eq!(y.read().unwrap(), [3.0; 128]);
}

#[test]
fn uniforms_keep_their_values_within_one_submission() {
    for d in devices() {
        let gpu = &d.gpu;
        let kernel = gpu.kernel("scale.wgsl", SCALE, "apply").unwrap();
        let x = gpu.upload(&[1.0f32; 64]).unwrap();
        let outputs: Vec<_> = (0..5).map(|_| gpu.alloc::<f32>(64).unwrap()).collect();
        let mut rec = gpu.recorder();
        for (i, y) in outputs.iter().enumerate() {
            let scale = [i as f32, 0.5];
            kernel.record(&mut rec, &[Arg::uniform(&scale), (&x).into(), y.into()], [1, 1, 1]).unwrap();
        }
        rec.submit().unwrap();
        for (i, y) in outputs.iter().enumerate() {
            assert_eq!(y.read().unwrap(), [i as f32 + 0.5; 64], "{}", d.label);
        }
    }
}

#[test]
fn an_index_out_of_bounds_is_harmless() {
    // naga's GLSL backend has no bounds checks, and neither has llvmpipe.
    for d in devices().iter().filter(|d| d.gpu.profile().backend != "gl") {
        let gpu = &d.gpu;
        let wild = "
            struct Params { far: u32 }
            @group(0) @binding(0) var<uniform> params: Params;
            @group(0) @binding(1) var<storage, read_write> data: array<u32>;
            var<workgroup> wg_few: array<u32, 8>;
            @compute @workgroup_size(64) fn wild(@builtin(local_invocation_index) i: u32) {
                wg_few[i + params.far] = i;
                workgroupBarrier();
                data[i * params.far] = data[i + params.far] + wg_few[i * params.far] / (params.far - params.far);
            }";
        let kernel = gpu.kernel("wild.wgsl", wild, "wild").unwrap();
        let data = gpu.upload(&[0u32; 16]).unwrap();
        let neighbours: Vec<_> = (0..8).map(|_| gpu.upload(&[9u32; 64]).unwrap()).collect();
        for far in [1u32, 7, 1 << 20, u32::MAX / 64] {
            let mut rec = gpu.recorder();
            kernel.record(&mut rec, &[Arg::uniform(&far), (&data).into()], [1, 1, 1]).unwrap();
            rec.submit().unwrap();
            gpu.wait().unwrap();
        }
        for n in &neighbours {
            assert_eq!(n.read().unwrap(), [9; 64], "{}", d.label);
        }
        assert_eq!(data.read().unwrap().len(), 16);
    }
}

#[test]
fn a_kernel_accesses_only_its_slice() {
    for d in devices() {
        let gpu = &d.gpu;
        let fill = "
            @group(0) @binding(0) var<storage, read_write> data: array<u32>;
            @compute @workgroup_size(64) fn fill(@builtin(local_invocation_index) i: u32) {
                if i < arrayLength(&data) { data[i] = arrayLength(&data); }
            }";
        let kernel = gpu.kernel("fill.wgsl", fill, "fill").unwrap();
        let data = gpu.upload(&[0u32; 192]).unwrap();
        let mut rec = gpu.recorder();
        kernel.record(&mut rec, &[data.slice(64..74).unwrap().into()], [1, 1, 1]).unwrap();
        rec.submit().unwrap();
        let want: Vec<u32> = (0..192).map(|i| if (64..74).contains(&i) { 10 } else { 0 }).collect();
        assert_eq!(data.read().unwrap(), want, "{}", d.label);
    }
}

#[test]
fn a_kernel_reports_its_bindings() {
    let Some(gpu) = gpu() else { return };
    let kernel = gpu.kernel("scale.wgsl", SCALE, "apply").unwrap();
    let interface = kernel.interface();
    assert_eq!((interface.entry.as_str(), interface.workgroup_size), ("apply", [64, 1, 1]));
    let bound: Vec<_> = interface.bindings.iter().map(|b| (b.index, b.name.as_str(), b.min_size)).collect();
    assert_eq!(bound, [(0, "scale", 8), (1, "input", 4), (2, "output", 4)]);
    let imported = "#import workgroup/index
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn k(@builtin(workgroup_id) id: vec3<u32>) { x[workgroup_index(id)] = 1u; }";
    gpu.kernel("imports.wgsl", imported, "k").unwrap();
}

/// Doubles `count` elements, 64 per workgroup.
const DOUBLE: &str = "
    #import workgroup/index
    @group(0) @binding(0) var<storage, read> count: array<u32>;
    @group(0) @binding(1) var<storage, read_write> data: array<u32>;
    @compute @workgroup_size(64)
    fn double(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
        let i = 64u * workgroup_index(group) + lane;
        if i < count[0] { data[i] *= 2u; }
    }";

#[test]
fn a_kernel_runs_over_elements_selected_on_the_device() {
    for d in devices() {
        let gpu = &d.gpu;
        let double = gpu.kernel("double.wgsl", DOUBLE, "double").unwrap();
        for (n, every) in [(1000, 3), (1000, 1), (70_000, 2), (1000, 1001)] {
            let x: Vec<u32> = (0..n).collect();
            let flags: Vec<u32> = x.iter().map(|i| u32::from(i % every == every - 1)).collect();
            let (dx, df) = (gpu.upload(&x).unwrap(), gpu.upload(&flags).unwrap());
            let (kept, count) = (gpu.upload(&vec![7u32; n as usize]).unwrap(), gpu.alloc::<u32>(1).unwrap());
            let sorted = gpu.upload(&vec![7u32; n as usize]).unwrap();
            let select = Select::new(n as usize).plan::<u32>(gpu).unwrap();
            let sort = RadixSort::new(n as usize).descending().counted().plan::<u32>(gpu).unwrap();
            let mut rec = gpu.recorder();
            select.record(&mut rec, &dx, &df, &kept, &count).unwrap();
            let args = [Arg::from(&count), Arg::from(&kept)];
            double.record_counted(&mut rec, &args, &count, 64, n as usize).unwrap();
            sort.with_length(&count).record(&mut rec, &kept, &sorted).unwrap();
            rec.submit().unwrap();
            let mut want: Vec<u32> = x.iter().filter(|i| *i % every == every - 1).map(|i| 2 * i).collect();
            let k = want.len();
            let got = kept.read().unwrap();
            assert_eq!(got[..k], want, "{}: {n}", d.label);
            assert!(got[k..].iter().all(|x| *x == 7), "{}: {n}, past the count", d.label);
            want.reverse();
            assert_eq!(sorted.read().unwrap()[..k], want, "{}: {n}, sorted", d.label);
        }
    }
}

#[test]
fn a_count_starts_the_needed_workgroups_up_to_the_maximum() {
    // Each workgroup adds 1, so the sum is the number of workgroups.
    let tally = "
        @group(0) @binding(0) var<storage, read_write> sum: atomic<u32>;
        @compute @workgroup_size(1) fn tally() { atomicAdd(&sum, 1u); }";
    for d in devices() {
        let gpu = &d.gpu;
        let tally = gpu.kernel("tally.wgsl", tally, "tally").unwrap();
        // Count, items per workgroup, maximum, workgroups: a folded grid has whole rows.
        for (count, items, most, want) in [
            (0, 64, 1000, 0),
            (1, 64, 1000, 1),
            (64, 64, 1000, 1),
            (65, 64, 1000, 2),
            (u32::MAX, 64, 640, 10),
            (u32::MAX, u32::MAX, u32::MAX as usize, 1),
            (u32::MAX, 1000, 0, 0),
            (32_768, 1, 1 << 20, 32_768),
            (32_769, 1, 1 << 20, 65_536),
        ] {
            let (sum, n) = (gpu.alloc_zeroed::<u32>(1).unwrap(), gpu.upload(&[count]).unwrap());
            let mut rec = gpu.recorder();
            tally.record_counted(&mut rec, &[Arg::from(&sum)], &n, items, most).unwrap();
            rec.submit().unwrap();
            assert_eq!(sum.read().unwrap(), [want], "{}: {count} by {items}, at most {most}", d.label);
        }
        let (sum, n) = (gpu.upload(&[0u32]).unwrap(), gpu.upload(&[9u32, 9]).unwrap());
        let mut rec = gpu.recorder();
        let args = [Arg::from(&sum)];
        let one = n.slice(..1).unwrap();
        let result = tally.record_counted(&mut rec, &args, one, 0, 9);
        refused(result, InvalidArgument, &["items_per_workgroup is 0"]);
        refused(tally.record_counted(&mut rec, &args, &n, 1, 9), Shape, &["count", "2 elements"]);
        refused(tally.record_counted(&mut rec, &args, one, 1, 1 << 32), TooLarge, &["max_items"]);
        refused(tally.record_counted(&mut rec, &[], one, 1, 9), Shape, &["0 arguments"]);
        rec.submit().unwrap();
        assert_eq!(sum.read().unwrap(), [0], "{}", d.label);
    }
}

#[test]
fn a_count_beyond_the_capacity_keeps_elements_after_it() {
    // Four children for each counted parent, 16 parents per workgroup: the count needs no multiplication.
    let children = "
        #import workgroup/index
        @group(0) @binding(0) var<storage, read> count: array<u32>;
        @group(0) @binding(1) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(64)
        fn children(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
            let i = 64u * workgroup_index(group) + lane;
            let parent = i / 4u;
            if parent < count[0] && i < arrayLength(&data) { data[i] = 1u + parent; }
        }";
    for d in devices() {
        let gpu = &d.gpu;
        let kernel = gpu.kernel("children.wgsl", children, "children").unwrap();
        // Capacities in parents: one, a partial workgroup, one workgroup more than a row of the grid.
        for (capacity, extra) in [(0, 0), (1, 0), (41, 0), (41, 30), (16 * 32_769, 1)] {
            if capacity > 1000 && !d.main {
                continue;
            }
            let len = 4 * capacity + extra;
            for count in [0, 1, capacity as u32, capacity as u32 + 1, u32::MAX / 4 + 1, u32::MAX] {
                let data = gpu.upload(&vec![0u32; len + 100]).unwrap();
                let n = gpu.upload(&[count]).unwrap();
                let mut rec = gpu.recorder();
                let room = data.slice(..len.max(1)).unwrap();
                let args = [Arg::from(&n), Arg::from(room)];
                kernel.record_counted(&mut rec, &args, &n, 16, capacity).unwrap();
                rec.submit().unwrap();
                let got = data.read().unwrap();
                // The last workgroup, and the last row of a folded grid, may reach beyond the capacity,
                // up to the end of the binding.
                let parents = capacity.min(count as usize);
                let workgroups = parents.div_ceil(16);
                let row = if workgroups > 32_768 { 32_768 } else { 1 };
                let end = 4 * parents;
                let reach = len.min(4 * count as usize).min(64 * workgroups.next_multiple_of(row));
                let what = format!("{}: {count} of {capacity} and {extra}", d.label);
                assert!(got[..end].iter().enumerate().all(|(i, x)| *x == 1 + i as u32 / 4), "{what}");
                assert!(got[reach..].iter().all(|x| *x == 0), "{what}: past it");
            }
        }
    }
}
