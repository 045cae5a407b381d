//! Shaders without a device: variants reach every file, every kernel validates and translates to each target that its
//! variant declares, and each kernel's `Params` matches the Rust struct.

use crate::support::coverage::{all, in_turn, sample, turn};
use crate::support::{Random, profiles};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::OnceLock;
use tilework::program::{DeviceProfile, Kernel, Operation, Program, Source, Translation};
use tilework::shader::{self, BindingKind, Interface, Module, Target};

/// A sample of a variant, lowered for a profile.
struct LoweredSample {
    what: String,
    program: Program,
    profile: DeviceProfile,
    translations: &'static [Translation],
}

/// A kernel that validates, and the variant that has it.
struct ValidKernel {
    what: String,
    kernel: Kernel,
    translations: &'static [Translation],
    /// The files that its text comes from.
    files: BTreeSet<String>,
    interface: Interface,
}

fn samples_of(op: &'static Operation, profile: &DeviceProfile) -> Vec<LoweredSample> {
    let fitting = (op.variants)().iter().filter(|v| v.requires.missing(profile).is_none());
    fitting
        .flat_map(|v| {
            let samples = (op.samples)(profile, v.name).unwrap_or_else(|e| panic!("{} {}: {e}", op.name, v.name));
            assert!(!samples.is_empty(), "{} {} has no samples", op.name, v.name);
            let what = format!("{} {} for {}", op.name, v.name, profile.name);
            samples.into_iter().map(move |program| LoweredSample {
                what: what.clone(),
                program,
                profile: profile.clone(),
                translations: v.translations,
            })
        })
        .collect()
}

/// The samples of every variant for each profile.
fn samples() -> &'static [LoweredSample] {
    static SAMPLES: OnceLock<Vec<LoweredSample>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let profiles = profiles();
        let profiles = sample(&profiles, 2).iter();
        profiles.flat_map(|p| tilework::operations().flat_map(move |op| samples_of(op, p))).collect()
    })
}

/// Every distinct kernel of the samples and of the runtime, by its description.
fn kernels() -> &'static BTreeMap<String, ValidKernel> {
    static KERNELS: OnceLock<BTreeMap<String, ValidKernel>> = OnceLock::new();
    KERNELS.get_or_init(|| {
        let mut kernels = BTreeMap::new();
        for sample in samples() {
            for kernel in &sample.program.kernels {
                kernels.entry(format!("{kernel:?}")).or_insert_with(|| {
                    let what = format!("{}: {} [{}]", sample.what, kernel.label(), kernel.spec);
                    validated(what, kernel.clone(), sample.translations)
                });
            }
        }
        let plain = shader::Spec::new;
        for (file, entry, spec) in [
            ("probe/probe_copy", "probe_copy", plain()),
            ("probe/probe_fma", "probe_fma", plain()),
            ("dispatch/fold_count", "fold_count", plain()),
            ("dispatch/fill_words", "fill_words", plain()),
            ("dispatch/move_slice", "move_slice", plain()),
            ("dispatch/move_slice", "move_slice", plain().flag("BACK", true)),
        ] {
            let kernel = Kernel::library(file, entry, spec);
            kernels.insert(format!("{kernel:?}"), validated(file.into(), kernel, Translation::ALL));
        }
        kernels
    })
}

fn validated(what: String, kernel: Kernel, translations: &'static [Translation]) -> ValidKernel {
    let text = kernel.expand(Target::Naga).unwrap_or_else(|e| panic!("{what}: {e}"));
    let lines = 1..=text.text().lines().count() as u32;
    let files = lines.map(|line| text.origin(line).0.to_owned()).collect();
    let module = text.validate().unwrap_or_else(|e| panic!("{what}: {e}"));
    let interface = module.interface(kernel.entry).unwrap_or_else(|e| panic!("{what}: {e}"));
    ValidKernel { what, kernel, translations, files, interface }
}

fn interface(kernel: &Kernel) -> &'static Interface {
    &kernels()[&format!("{kernel:?}")].interface
}

#[test]
fn variants_reach_every_file() {
    let reached: BTreeSet<_> = kernels().values().flat_map(|kernel| &kernel.files).collect();
    // The block level is for kernels of users: `tests/block.rs` runs each of its files.
    let is_block_level = |name: &str| shader::source(name).is_some_and(|text| text.contains("\n// You declare"));
    let missed: Vec<_> = shader::names()
        .filter(|name| !is_block_level(name) && !reached.contains(&format!("shaders/{name}.wgsl")))
        .collect();
    assert!(missed.is_empty(), "no variant reaches {missed:?}");
}

#[test]
fn every_kernel_translates_to_each_target_it_declares() {
    if !all() {
        return;
    }
    for (at, ValidKernel { what, kernel, translations, .. }) in kernels().values().enumerate() {
        let module = kernel.expand(Target::Naga).unwrap().validate().unwrap();
        for (_, target) in translations.iter().enumerate().filter(|(i, _)| in_turn(at + i, translations.len())) {
            let done = match target {
                Translation::SpirV => spirv(&module, kernel.entry),
                Translation::Msl => msl(&module),
                Translation::Hlsl => hlsl(&module),
                Translation::Tint => continue, // in a test of its own: it needs Node
            };
            done.unwrap_or_else(|e| panic!("{what}: {target:?}: {e}"));
        }
    }
}

fn spirv(module: &Module, entry: &str) -> Result<(), String> {
    let (module, info) = module.naga();
    let options = naga::back::spv::Options { lang_version: (1, 3), ..Default::default() };
    let pipeline =
        naga::back::spv::PipelineOptions { shader_stage: naga::ShaderStage::Compute, entry_point: entry.into() };
    naga::back::spv::write_vec(module, info, &options, Some(&pipeline)).map(drop).map_err(|e| e.to_string())
}

fn msl(module: &Module) -> Result<(), String> {
    let (module, info) = module.naga();
    let options = naga::back::msl::Options { lang_version: (2, 4), fake_missing_bindings: true, ..Default::default() };
    naga::back::msl::write_string(module, info, &options, &Default::default()).map(drop).map_err(|e| e.to_string())
}

fn hlsl(module: &Module) -> Result<(), String> {
    let (module, info) = module.naga();
    let options = naga::back::hlsl::Options {
        shader_model: naga::back::hlsl::ShaderModel::V6_4,
        fake_missing_bindings: true,
        ..Default::default()
    };
    let mut text = String::new();
    let pipeline = Default::default();
    naga::back::hlsl::Writer::new(&mut text, &options, &pipeline)
        .write(module, info, None)
        .map(drop)
        .map_err(|e| e.to_string())
}

#[test]
fn params_and_bindings_agree_with_rust() {
    let in_part = samples().iter().enumerate().filter(|(i, _)| turn(*i, 3)).map(|(_, sample)| sample);
    for LoweredSample { what, program, .. } in in_part {
        for dispatch in &program.dispatches {
            let kernel = &program.kernels[dispatch.kernel];
            let interface = interface(kernel);
            let what = format!("{what}: {}", kernel.label());
            let params = &interface.bindings[0];
            assert_eq!((params.index, params.kind), (0, BindingKind::Uniform), "{what}");
            let shader: Vec<_> =
                params.members.iter().map(|m| (m.name.as_str(), m.offset as usize, m.size as usize)).collect();
            assert_eq!(shader, dispatch.fields, "{what}: struct Params");
            assert_eq!(params.min_size as usize, dispatch.params.len(), "{what}: size of Params");
            let indices: Vec<_> = interface.bindings.iter().skip(1).map(|b| b.index).collect();
            let wanted: Vec<_> = (1..=dispatch.bindings.len() as u32).collect();
            assert_eq!(indices, wanted, "{what}: bindings");
            for (binding, info) in dispatch.bindings.iter().zip(&interface.bindings[1..]) {
                // A uniform is whole vec4s.
                let unit = if info.kind == BindingKind::Uniform { 16 } else { 4 };
                assert!(
                    binding.size.next_multiple_of(unit).max(unit) >= info.min_size,
                    "{what}: {} is too small",
                    info.name
                );
                assert_eq!(binding.offset % 256, 0, "{what}: {}", info.name);
            }
        }
    }
}

#[test]
fn programs_stay_within_the_limits_of_their_device() {
    for LoweredSample { what, program, profile, .. } in samples() {
        let limits = &profile.limits;
        for dispatch in &program.dispatches {
            if let tilework::program::Grid::Direct(grid) = dispatch.grid {
                assert!(grid.iter().all(|n| *n <= limits.max_workgroups_per_dimension), "{what}: {grid:?}");
            }
            let bound = &interface(&program.kernels[dispatch.kernel]).bindings;
            let storage = bound.iter().filter(|b| b.kind != BindingKind::Uniform).count();
            assert!(storage <= limits.max_storage_buffers as usize, "{what}");
            for b in &dispatch.bindings {
                assert!(b.size <= limits.max_storage_binding, "{what}: a binding of {} bytes", b.size);
            }
        }
        for kernel in &program.kernels {
            let interface = interface(kernel);
            let threads: u32 = interface.workgroup_size.iter().product();
            assert!(interface.workgroup_bytes <= limits.max_workgroup_bytes, "{what}: {}", kernel.label());
            assert!(threads <= limits.max_invocations, "{what}: {}", kernel.label());
        }
    }
}

#[test]
fn naga_errors_point_at_the_original_line() {
    let text = "#import workgroup/index\nfn f() -> u32 { return workgroup_index(vec3<u32>()); }\nfn g() -> u32 { return nothing; }\n";
    let expanded = shader::expand_text("mine.wgsl", text, &shader::Spec::new(), Target::Naga).unwrap();
    let e = expanded.validate().unwrap_err();
    assert!(e.to_string().starts_with("mine.wgsl:3: "), "{e}");
    let late =
        "@group(0) @binding(0) var<storage, read> x: array<u32>;\n@compute @workgroup_size(1)\nfn f() { x[0] = 1u; }\n";
    let e = shader::expand_text("late.wgsl", late, &shader::Spec::new(), Target::Naga).unwrap().validate().unwrap_err();
    assert!(e.to_string().starts_with("late.wgsl:"), "{e}");
}

/// Tint, the browsers' compiler, through Dawn in Node: it rejects some shaders that naga accepts.
#[test]
fn every_portable_kernel_passes_tint() {
    let Some(tint) = std::env::var_os("TILEWORK_TINT") else {
        eprintln!("skipped: TILEWORK_TINT is not set, so shaders do not go through Tint (.ci/run does it)");
        return;
    };
    // Dawn stops answering after about 1900 pipelines in one process.
    const AT_ONCE: usize = 500;
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tint");
    let _ = std::fs::remove_dir_all(&dir);
    let mut parts: Vec<PathBuf> = Vec::new();
    let mut names = BTreeMap::new();
    // Browsers have no 64-bit integers: devices without them get another text.
    let for_browsers = |kernel: &Kernel| !kernel.spec.to_string().contains("INT64");
    let wanted = |c: &&ValidKernel| c.translations.contains(&Translation::Tint) && for_browsers(&c.kernel);
    for case in kernels().values().filter(wanted) {
        let text = case.kernel.expand(Target::Tint).unwrap();
        let file = format!("{:04}.wgsl", names.len());
        if names.len().is_multiple_of(AT_ONCE) {
            parts.push(dir.join(parts.len().to_string()));
            std::fs::create_dir_all(&parts[parts.len() - 1]).unwrap();
        }
        std::fs::write(parts[parts.len() - 1].join(&file), text.text()).unwrap();
        names.insert(file, (case, text));
    }
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(".ci/tint.mjs");
    let (mut report, mut complaints) = (String::new(), String::new());
    for part in &parts {
        let mut node = std::process::Command::new("node");
        let output = node.arg(&script).arg(part).env("TILEWORK_TINT", &tint).output().expect("node runs");
        report += &String::from_utf8_lossy(&output.stdout);
        complaints += &String::from_utf8_lossy(&output.stderr);
    }
    let mut judged = 0;
    let mut failures = Vec::new();
    for line in report.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let (case, text) = &names[row["file"].as_str().unwrap()];
        judged += 1;
        // Dawn's null device has WebGPU's default limits; a kernel for a larger device need only compile there.
        let interface = &case.interface;
        let least = tilework::program::Limits::WEBGPU;
        let fits = interface.workgroup_bytes <= least.max_workgroup_bytes
            && interface.workgroup_size.iter().product::<u32>() <= least.max_invocations;
        if row[if fits { "ok" } else { "module" }] != true {
            let source = match &case.kernel.source {
                Source::Library(name) => (*name).to_owned(),
                Source::Text { name, .. } => name.to_string(),
            };
            for m in row["messages"].as_array().into_iter().flatten() {
                // Dawn's adapter without hardware has the default limits; a profile's own are tested above.
                if m["message"].as_str().is_some_and(|m| m.contains("exceeds the maximum allowed (256, 256, 64)")) {
                    continue;
                }
                let at = m["line"].as_u64().filter(|l| *l > 0).map(|l| text.origin(l as u32));
                failures.push(format!("{} ({source}) {at:?}: {}", case.what, m["message"]));
            }
        }
    }
    assert_eq!(judged, names.len(), "Tint judged {judged}: {complaints}");
    assert!(failures.is_empty(), "Tint rejects:\n{}", failures.join("\n"));
}

#[path = "fuzz/fuzz_targets/directives.rs"]
mod directives;

/// A short version of the fuzz target `expander`, with the same texts in every run.
#[test]
fn random_directives_expand_or_name_their_line() {
    let mut random = Random::new(1);
    let mut below = |n: usize| random.next() as usize % n;
    let spec = shader::Spec::new();
    let texts: Vec<_> = (0..20_000).map(|_| directives::lines(&mut below)).collect();
    let (done, refused): (Vec<_>, Vec<_>) = texts.iter().partition(|text| directives::expands(text, &spec));
    let looped = done.iter().filter(|text| text.contains("#for")).count();
    assert!(done.len() > 1000 && refused.len() > 1000 && looped > 20, "{} {looped}", done.len());
}
