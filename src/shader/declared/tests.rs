use crate::program::DeviceProfile;
use crate::shader::{Spec, Target, expand_text};
use std::collections::HashSet;

/// All that a page may be offered.
fn profile() -> DeviceProfile {
    let mut profile = DeviceProfile::webgpu_defaults();
    (profile.features.f16, profile.features.subgroups) = (true, true);
    profile
}

#[test]
fn naga_finds_the_same_interface_in_every_kernel_of_the_library() {
    let (profile, mut forms) = (profile(), HashSet::new());
    let mut wrong = Vec::new();
    for operation in crate::operations() {
        for variant in (operation.variants)() {
            let Ok(programs) = (operation.samples)(&profile, variant.name) else { continue };
            for kernel in programs.into_iter().flat_map(|program| program.kernels) {
                // One of each form: constants seldom change the interface.
                let Spec { aliases, flags, slots, lists, .. } = kernel.spec.clone();
                let form = (kernel.label(), aliases, flags, slots, lists);
                if !forms.insert(form) {
                    continue;
                }
                let text = kernel.expand(Target::Naga).unwrap();
                let naga = text.validate().unwrap().interface(kernel.entry).unwrap();
                match text.declared_interface(kernel.entry) {
                    Ok(own) if own == naga => {}
                    Ok(own) => wrong.push(format!("{}: {own:?}, naga has {naga:?}", kernel.label())),
                    Err(e) => wrong.push(format!("{}: {e}", kernel.label())),
                }
            }
        }
    }
    assert!(forms.len() > 500, "{} kernels", forms.len());
    wrong.dedup();
    assert!(wrong.is_empty(), "{} of {} kernels: {}", wrong.len(), forms.len(), wrong.join("\n"));
}

#[test]
fn what_the_library_does_not_declare_is_an_error() {
    let of = |text: &str| {
        let text = expand_text("k.wgsl", text, &Spec::new(), Target::Tint).unwrap();
        text.declared_interface("k").unwrap_err().to_string()
    };
    assert!(of("fn k() {}").contains("k.wgsl: no entry point `k`"));
    let k = "@compute @workgroup_size(N) fn k() { x = 1; }";
    assert!(of(k).contains("`N` is no number that is known"));
    let k = "@compute @workgroup_size(64) fn k() { x = 1; }";
    assert!(of(&format!("@group(1) @binding(0) var<storage> x: u32; {k}")).contains("@group(0)"));
    assert!(of(&format!("@group(0) @binding(0) var<storage> x: what; {k}")).contains("`what` is no type"));
    assert!(of(&format!("override x = 1; {k}")).contains("`override` begins no declaration"));
    assert!(of("fn k( {").contains("no entry point"));
    assert!(of("var").contains("no entry point") && of("struct S {").contains("no entry point"));
}
