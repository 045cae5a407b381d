use super::*;
use crate::dense::product::trial::{lower, refusal};
use crate::error::ErrorKind;
use crate::program::{Access, Cost, DeviceProfile, Op, Resource, Variant};
use crate::shader::{BindingKind, Target};

/// The variants that a device runs.
fn on(profile: &DeviceProfile) -> impl Iterator<Item = &'static Variant> {
    VARIANTS.iter().filter(|v| v.requires.missing(profile).is_none())
}

#[test]
fn every_sample_validates_and_agrees_with_its_program() {
    for profile in [DeviceProfile::webgpu_defaults(), DeviceProfile::mesa()] {
        for variant in on(&profile) {
            for program in samples(&profile, variant.name).unwrap() {
                for dispatch in &program.dispatches {
                    let kernel = &program.kernels[dispatch.kernel];
                    let module = kernel.expand(Target::Naga).unwrap().validate().unwrap();
                    let interface = module.interface(kernel.entry).unwrap();
                    let fields: Vec<_> = interface.bindings[0]
                        .members
                        .iter()
                        .map(|m| (m.name.as_str(), m.offset as usize, m.size as usize))
                        .collect();
                    assert_eq!(fields, dispatch.fields, "{}", kernel.label());
                    assert_eq!(interface.bindings[0].min_size, dispatch.params.len() as u64);

                    let shown: Vec<_> = interface.bindings[1..].iter().map(|b| (b.name.as_str(), b.kind)).collect();
                    let bound: Vec<_> = dispatch
                        .bindings
                        .iter()
                        .map(|b| match b.resource {
                            Resource::Operand(i) => match program.operands[i].access {
                                Access::Read => (program.operands[i].name, BindingKind::Read),
                                _ => (program.operands[i].name, BindingKind::ReadWrite),
                            },
                            Resource::Scratch(_) if kernel.entry == "gemm_slabs" => ("slabs", BindingKind::Read),
                            Resource::Scratch(_) => ("partial", BindingKind::ReadWrite),
                            Resource::Constant(_) => ("table", BindingKind::Read),
                        })
                        .collect();
                    assert_eq!(shown, bound, "{}", kernel.label());
                }
            }
        }
    }
}

#[test]
fn auto_follows_device_and_shape() {
    let variant = |gemm: Gemm, profile: &DeviceProfile| lower(&gemm, profile).unwrap().variant();
    let square = Gemm::new(512, 512, 512);
    assert_eq!(variant(square.clone(), &DeviceProfile::h100()), "double");
    assert_eq!(variant(square.clone(), &DeviceProfile::webgpu_defaults()), "double");
    assert_eq!(
        variant(square.clone().thread_tile(ThreadTile { rows: 8, columns: 4 }), &DeviceProfile::mesa()),
        "double"
    );
    assert_eq!(variant(Gemm::new(512, 512, 1 << 15), &DeviceProfile::h100()), "split-k");
    assert_eq!(variant(Gemm::new(4096, 4096, 1 << 15), &DeviceProfile::h100()), "double");
    assert_eq!(variant(square.clone(), &DeviceProfile::mesa()), "unstaged");
    assert_eq!(variant(square.clone(), &DeviceProfile::swiftshader()), "unstaged");
    assert_eq!(variant(Gemm::new(16, 16, 16), &DeviceProfile::mesa()), "naive");
    assert_eq!(variant(Gemm::new(4096, 4096, 15), &DeviceProfile::h100()), "double");
    assert_eq!(variant(Gemm::new(32, 32, 4), &DeviceProfile::h100()), "naive");
    // 53 us with `naive`, whose threads wait for each step of k; 14 with `split-k`.
    assert_eq!(variant(Gemm::new(2, 4, 704), &DeviceProfile::h100()), "split-k");
    assert_eq!(variant(square.clone().tile(ProductTile { m: 8, n: 8, k: 8 }), &DeviceProfile::mesa()), "tiled");
    assert_eq!(variant(square.variant("naive"), &DeviceProfile::h100()), "naive");
}

#[test]
fn bias_and_mixed_types_change_operands_and_bytes() {
    let h100 = DeviceProfile::h100();
    let gemm = Gemm::new(3, 5, 7);
    let bias = |op: Gemm| Op::<f32>::lower(&op, &h100).unwrap();
    assert_eq!(bias(gemm.clone().with_bias()).operands[2].len, 5);
    let rows = bias(gemm.clone().with_row_bias());
    assert_eq!(rows.operands[2].len, 3);
    assert_eq!(rows.cost.bytes, 4.0 * (21.0 + 35.0 + 3.0 + 15.0));
    // The last call wins.
    assert_eq!(gemm.clone().with_row_bias().with_bias(), gemm.clone().with_bias());
    let mixed = gemm.clone().beta(1.0).with_row_bias().mixed_precision();
    let mixed = Op::<f16>::lower(&mixed, &h100).unwrap();
    let types: Vec<_> = mixed.operands.iter().map(|o| o.dtype).collect();
    assert_eq!(types, [DType::F16, DType::F16, DType::F32, DType::F32]);
    assert_eq!(mixed.cost.bytes, 2.0 * (21.0 + 35.0) + 4.0 * (3.0 + 15.0 + 15.0));
    let e = Op::<f16>::lower(&gemm.mixed_precision(), &DeviceProfile::swiftshader()).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("SHADER_F16"), "{e}");
    let e = Op::<f32>::lower(&Gemm::new(3, 5, 7).mixed_precision(), &h100).unwrap_err();
    assert!(e.to_string().contains("16 bits, not f32"), "{e}");
}

#[test]
fn empty_result_needs_no_dispatch() {
    for (m, n) in [(0, 5), (5, 0), (0, 0)] {
        for variant in std::iter::once("auto").chain(on(&DeviceProfile::mesa()).map(|v| v.name)) {
            let gemm = Gemm::new(m, n, 7).variant(variant);
            let program = Op::<f32>::lower(&gemm.with_bias(), &DeviceProfile::mesa()).unwrap();
            assert!(program.dispatches.is_empty() && program.kernels.is_empty());
            assert_eq!(program.cost.flop, 0.0);
        }
    }
}

#[test]
fn unused_factors_are_not_bound() {
    for gemm in [Gemm::new(40, 50, 0), Gemm::new(40, 50, 60).alpha(0.0), Gemm::new(40, 50, 60).alpha(-0.0)] {
        for variant in on(&DeviceProfile::webgpu_defaults()).map(|v| v.name) {
            let gemm = gemm.clone().variant(variant).beta(2.0).alpha(gemm.product.alpha);
            let program = lower(&gemm, &DeviceProfile::webgpu_defaults()).unwrap();
            let bound: Vec<_> = program.dispatches[0].bindings.iter().map(|b| b.resource).collect();
            assert_eq!(bound, [Resource::Operand(2)]);
            assert_eq!(program.cost, Cost { flop: 0.0, bytes: 2.0 * 4.0 * 2000.0 });
            assert!(program.decision.why.contains("A and B are not read"), "{}", program.decision.why);
        }
    }
}

#[test]
fn c_is_read_only_if_beta_is_not_0() {
    for (beta, reads) in [(0.0, false), (-0.0, false), (1.0, true), (f32::NAN, true)] {
        let program = lower(&Gemm::new(9, 9, 9).beta(beta), &DeviceProfile::h100()).unwrap();
        let text = program.kernels[0].expand(Target::Naga).unwrap();
        assert_eq!(text.text().contains("params.beta"), reads);
        assert_eq!(program.cost.bytes, 4.0 * 81.0 * (3.0 + f64::from(reads)));
    }
}

#[test]
fn rejects_f16_on_a_device_without_it() {
    let e = Op::<f16>::lower(&Gemm::new(4, 4, 4), &DeviceProfile::swiftshader()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.to_string().contains("SHADER_F16"), "{e}");
    assert!(Op::<f16>::lower(&Gemm::new(4, 4, 4), &DeviceProfile::mesa()).is_ok());
}

#[test]
fn rejects_an_unknown_variant_and_lists_the_names() {
    let (kind, text) = refusal(&Gemm::new(4, 4, 4).variant("fast"), &DeviceProfile::h100());
    assert!(kind == ErrorKind::InvalidArgument && text.contains("auto, naive, tiled"), "{text}");
}
