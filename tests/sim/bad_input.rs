//! Invalid input to the simulator: each error says what and where.

use tilework::analysis::Interleaving;
use tilework::program::{DeviceProfile, Grid, Op, Program, Resource};
use tilework::sim::{self, FindingKind, Options, Schedule};
use tilework::{ErrorKind, Reduce, Sum};

const KERNEL: &str = "struct Params { n: u32, factor: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> data: array<vec4<f32>>;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < params.n { data[id.x] *= params.factor; }
}";

fn refused(text: &str, entry: &str, sizes: &[usize], options: &Options) -> (ErrorKind, String) {
    let mut buffers: Vec<_> = sizes.iter().map(|n| vec![0; *n]).collect();
    let error = sim::run_wgsl("k.wgsl", text, entry, [1, 1, 1], &mut buffers, options).unwrap_err();
    (error.kind(), error.to_string())
}

#[test]
fn validation_errors_name_file_and_line() {
    let options = Options::default();
    let (kind, text) = refused("fn f() {\n  let x = 1u + 1.5;\n}", "f", &[], &options);
    assert!(kind == ErrorKind::Shader && text.starts_with("k.wgsl:2:"), "{text}");
    let (kind, text) = refused(KERNEL, "scales", &[16, 16], &options);
    assert!(kind == ErrorKind::Shader && text.contains("`scales`") && text.contains("scale"), "{text}");
    let (kind, text) = refused("#import no/such\n", "f", &[], &options);
    assert!(kind == ErrorKind::Shader && text.starts_with("k.wgsl:1:"), "{text}");
    let texture = "@group(0) @binding(0) var t: texture_2d<f32>;
        @compute @workgroup_size(1) fn f() { _ = textureDimensions(t); }";
    let (kind, text) = refused(texture, "f", &[0], &options);
    assert!(kind == ErrorKind::Unsupported && text.starts_with("k.wgsl:1:"), "{text}");
    let long = "@group(0) @binding(0) var<storage, read_write> x: array<u64>;
        @compute @workgroup_size(1) fn f() { x[0] = x[1]; }";
    let (kind, text) = refused(long, "f", &[16], &options);
    assert!(kind == ErrorKind::Unsupported && text.contains("64-bit"), "{text}");
}

#[test]
fn missing_and_small_buffers_are_reported() {
    let options = Options::default();
    let (kind, text) = refused(KERNEL, "scale", &[16], &options);
    assert!(kind == ErrorKind::Shape && text.contains("1 buffers") && text.contains("params, data"), "{text}");
    let (kind, text) = refused(KERNEL, "scale", &[4, 16], &options);
    assert!(kind == ErrorKind::Shape && text.contains("`params`") && text.contains('8'), "{text}");
    let (kind, text) = refused(KERNEL, "scale", &[16, 8], &options);
    assert!(kind == ErrorKind::Shape && text.contains("`data`") && text.contains("16"), "{text}");
    let immediate = "enable wgpu_immediates; var<immediate> n: u32;
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn f() { x[0] = n; }";
    let immediate = immediate.replace("enable wgpu_immediates; ", "");
    let (kind, text) = refused(&immediate, "f", &[16], &options);
    assert!(kind == ErrorKind::Shape && text.contains("immediates"), "{text}");
    let mut buffers = vec![vec![0; 4]];
    let given = Options { immediates: 7u32.to_le_bytes().to_vec(), ..options };
    assert!(sim::run_wgsl("k.wgsl", &immediate, "f", [1, 1, 1], &mut buffers, &given).unwrap().is_clean());
    assert_eq!(buffers[0], 7u32.to_le_bytes());
}

#[test]
fn operands_of_a_program_are_checked() {
    let program = Op::<f32>::lower(&Reduce::new(Sum, 100), &DeviceProfile::webgpu_defaults()).unwrap();
    let options = Options::default();
    let few = sim::run(&program, &mut [vec![0; 400]], &options).unwrap_err();
    assert!(
        few.kind() == ErrorKind::Shape && few.to_string().contains("1 operands given; the program takes 2"),
        "{few}"
    );
    let small = sim::run(&program, &mut [vec![0; 396], vec![0; 4]], &options).unwrap_err();
    assert!(small.kind() == ErrorKind::Shape && small.to_string().contains("396 bytes"), "{small}");
}

#[test]
fn rejects_options_out_of_range() {
    let default = Options::default;
    for options in [
        Options { subgroup_size: 2, ..default() },
        Options { subgroup_size: 128, ..default() },
        Options { subgroup_size: 12, ..default() },
        Options { sector_bytes: 48, ..default() },
        Options { banks: 0, ..default() },
        Options { max_workgroups: 0, ..default() },
        Options { max_workgroups: u32::MAX, ..default() },
        Options { step_limit: 0, ..default() },
        Options { interleaving: Some(Interleaving { burst: 8, channels: 0, banks: 2 }), ..default() },
    ] {
        let (kind, text) = refused(KERNEL, "scale", &[16, 16], &options);
        assert!(kind == ErrorKind::InvalidArgument && text.contains("k.wgsl"), "{text}");
    }
}

#[test]
fn a_sampled_huge_grid_is_reported_as_sampled() {
    let kernel = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn f(@builtin(workgroup_id) id: vec3<u32>) {
            x[select(0u, 1u, id.y > 0u)] = id.x; }";
    let mut buffers = vec![vec![0; 8]];
    let options = Options { max_workgroups: 5, ..Options::default() };
    let report = sim::run_wgsl("k.wgsl", kernel, "f", [65535, 65535, 1], &mut buffers, &options).unwrap();
    assert!(report.notes[0].contains("5 of its 4294836225 workgroups"), "{report}");
    assert_eq!(buffers[0][4..], 65534u32.to_le_bytes(), "the last workgroup");
    assert!(report.of(FindingKind::Race).next().is_some(), "{report}");
}

#[test]
fn a_grid_above_every_limit_is_reported() {
    let mut buffers = vec![vec![0; 16], vec![0; 16]];
    let options = Options { max_workgroups: 2, ..Options::default() };
    let report = sim::run_wgsl("k.wgsl", KERNEL, "scale", [65_536, 1, 1], &mut buffers, &options).unwrap();
    assert!(report.notes.iter().any(|n| n.contains("65535") && n.contains("65536")), "{report}");
}

#[test]
fn loops_of_barriers_reach_the_step_limit() {
    for (barrier, limited) in [("workgroupBarrier()", true), ("subgroupBarrier()", true), ("return", false)] {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
            @compute @workgroup_size(64) fn f() {{ loop {{ {barrier}; if x[0] == 5u {{ break; }} }} }}"
        );
        for schedule in [Schedule::InOrder, Schedule::Random(1), Schedule::Adversarial] {
            let options = Options { step_limit: 5000, schedule, ..Options::default() };
            let mut buffers = vec![vec![0; 4]];
            let report = sim::run_wgsl("k.wgsl", &text, "f", [2, 1, 1], &mut buffers, &options).unwrap();
            assert_eq!(report.of(FindingKind::StepLimit).count() > 0, limited, "{report}");
            assert_eq!(report.notes.iter().any(|n| n.contains("was stopped")), limited);
        }
    }
}

#[test]
fn rejects_programs_that_need_too_much_memory() {
    let kernel = |variable: &str, size: u32| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
            {variable};
            @compute @workgroup_size({size}) fn f(@builtin(local_invocation_index) i: u32) {{ p[i] = 1u; x[i] = p[i]; }}"
        )
    };
    let options = Options::default();
    for (variable, size, named) in [
        ("var<workgroup> p: array<u32, 500000000>", 64, "2000000000 bytes of workgroup memory in `p`"),
        ("var<private> p: array<u32, 1000000>", 1024, "values per thread takes"),
        ("var<private> p: array<u32, 2000000>", 1, "`p` of 2000000 words"),
    ] {
        let (kind, text) = refused(&kernel(variable, size), "f", &[64], &options);
        assert!(kind == ErrorKind::TooLarge && text.contains(named), "{text}");
    }
    let (kind, text) = refused(&kernel("var<private> p: array<u32, 9>", 1), "f", &[(1 << 30) + 4], &options);
    assert!(kind == ErrorKind::TooLarge && text.contains("1073741828 bytes"), "{text}");
}

#[test]
fn an_empty_grid_does_nothing() {
    let mut buffers = vec![vec![1; 16], vec![1; 16]];
    for schedule in [Schedule::InOrder, Schedule::Random(1), Schedule::Adversarial] {
        let options = Options { schedule, ..Options::default() };
        let report = sim::run_wgsl("k.wgsl", KERNEL, "scale", [0, 1, 1], &mut buffers, &options).unwrap();
        assert!(report.is_clean() && report.totals == sim::Counts::default());
    }
    assert_eq!(buffers[1], vec![1; 16]);
}

#[test]
fn requests_of_a_program_are_bounded() {
    let good = Op::<f32>::lower(&Reduce::new(Sum, 10_000), &DeviceProfile::webgpu_defaults()).unwrap();
    let given = || vec![vec![0; 40_000], vec![0; 4]];
    let refused = |program: &Program, kind: ErrorKind, words: &str| {
        let e = sim::run(program, &mut given(), &Options::default()).unwrap_err();
        assert!(e.kind() == kind && e.to_string().contains(words), "{e}");
    };
    let changed = |change: fn(&mut Program)| {
        let mut program = good.clone();
        change(&mut program);
        program
    };
    let much = changed(|p| p.scratch = vec![u64::MAX; 2]);
    assert_eq!(much.scratch_bytes(), u64::MAX);
    refused(&much, ErrorKind::TooLarge, "bytes in all buffers");
    refused(&changed(|p| p.dispatches[0].bindings[0].size = u64::MAX), ErrorKind::Shape, "is bound to");
    refused(&changed(|p| p.dispatches[0].bindings[0].offset = u64::MAX), ErrorKind::Shape, "is bound to");
    let resource = Resource::Operand(0);
    let counts = good.clone();
    for offset in [u64::MAX, u64::MAX - 11, 40_000 - 8] {
        let mut program = counts.clone();
        program.dispatches[0].grid = Grid::Indirect { resource, offset };
        refused(&program, ErrorKind::InvalidArgument, "lie outside their buffer");
    }
}

#[test]
fn indirect_counts_above_every_limit_are_reported() {
    let mut program = Op::<f32>::lower(&Reduce::new(Sum, 10_000), &DeviceProfile::webgpu_defaults()).unwrap();
    program.dispatches.truncate(1);
    program.dispatches[0].grid = Grid::Indirect { resource: Resource::Operand(0), offset: 8 };
    let run = |counts: [u32; 3]| {
        let mut input = vec![0; 40_000];
        input[8..20].copy_from_slice(counts.map(u32::to_le_bytes).as_flattened());
        sim::run(&program, &mut [input, vec![0; 4]], &Options::default()).unwrap()
    };
    let report = run([70_000, 1, 1]);
    assert!(report.notes[0].contains("ran 4096 of its 70000 workgroups"), "{report}");
    assert!(report.notes[1].contains("its grid is [70000, 1, 1]; devices allow 65535"), "{report}");
    let report = run([u32::MAX; 3]);
    assert!(report.notes[0].contains("4096 of its 79228162458924105385300197375"), "{report}");
    for none in [[0, 1, 1], [u32::MAX, 1, 0]] {
        assert_eq!(run(none).totals, sim::Counts::default());
    }
    assert!(run([1, 1, 1]).notes.is_empty());
}

#[test]
fn the_largest_grid_is_sampled() {
    let mut buffers = vec![vec![0; 16], vec![0; 16]];
    let options = Options { max_workgroups: 3, ..Options::default() };
    let report = sim::run_wgsl("k.wgsl", KERNEL, "scale", [u32::MAX; 3], &mut buffers, &options).unwrap();
    assert!(report.notes[0].contains("3 of its 79228162458924105385300197375 workgroups"), "{report}");
}

#[test]
fn rejects_memory_that_no_device_has() {
    let options = Options::default();
    let kernel = |module: &str, body: &str| {
        format!("{module} @compute @workgroup_size(64) fn f(@builtin(local_invocation_index) i: u32) {{ {body} }}")
    };
    let (kind, text) =
        refused(&kernel("var<workgroup> wg: array<u32, 0x0fffffffu>;", "wg[i] = i;"), "f", &[], &options);
    assert!(kind == ErrorKind::TooLarge && text.contains("1073741820 bytes of workgroup memory in `wg`"), "{text}");
    let many = "var<private> a: array<u32, 900000>; var<private> b: array<u32, 900000>;";
    let (kind, text) = refused(&kernel(many, "a[i] = b[i];"), "f", &[], &options);
    assert!(kind == ErrorKind::TooLarge && text.contains("`b` of 900000 words"), "{text}");
    let wide = "struct S { a: array<bool, 1000000>, b: array<bool, 1000000> }";
    let (kind, text) = refused(&kernel(wide, "var s: S; s.a[i] = true; _ = s.b[i];"), "f", &[], &options);
    assert!(kind == ErrorKind::TooLarge && text.contains("a struct of 2000000 values"), "{text}");
    // A product of three sizes that overflows 64 bits.
    let sizes = "override n: u32 = 4294967295u; @compute @workgroup_size(n, n, n) fn f() {}";
    let (kind, text) = refused(sizes, "f", &[], &options);
    assert!(kind == ErrorKind::TooLarge && text.contains("a workgroup of [4294967295"), "{text}");
}

#[test]
fn an_endless_loop_of_barriers_is_stopped() {
    let kernel = "@compute @workgroup_size(8) fn f() { loop { workgroupBarrier(); } }";
    let options = Options { step_limit: 1000, ..Options::default() };
    for schedule in [Schedule::InOrder, Schedule::Random(1), Schedule::Adversarial] {
        let options = Options { schedule, ..options.clone() };
        let report = sim::run_wgsl("k.wgsl", kernel, "f", [1, 1, 1], &mut [], &options).unwrap();
        assert!(report.of(FindingKind::StepLimit).next().is_some(), "{report}");
    }
}
