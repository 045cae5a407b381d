//! The plans of drawn shapes on profiles of cards, a line each.

use super::candidates::call;
use super::{Options, drawn, kinds};
use std::hash::{DefaultHasher, Hash, Hasher};
use tilework::program::{DeviceClass, DeviceProfile, Limits, Quirks};

/// A large card, WebGPU's defaults, and an integrated GPU.
fn cards() -> [DeviceProfile; 3] {
    let integrated = DeviceProfile {
        name: "integrated".into(),
        class: DeviceClass::Integrated,
        quirks: Quirks::of(DeviceClass::Integrated, "metal"),
        limits: Limits { max_workgroup_bytes: 32 << 10, ..Limits::WEBGPU },
        ..DeviceProfile::webgpu_defaults()
    };
    [DeviceProfile::h100(), DeviceProfile::webgpu_defaults(), integrated]
}

/// Card, op, shape, variant, and a number for kernels, dispatches and operands.
pub(crate) fn of_cards(options: &Options) -> String {
    let mut text = String::new();
    for profile in cards() {
        let all = kinds(&profile, options);
        for (kind, drawn) in drawn(&profile, options, &all) {
            let Some(op) = tilework::operations().find(|op| op.name == kind.op) else { continue };
            let variants = (op.variants)().iter().map(|variant| variant.name);
            for variant in ["auto"].into_iter().chain(variants) {
                let program = call(&profile, op, &drawn, variant, None).and_then(|call| call.lower(&profile));
                let plan = program.map_or("rejected".into(), |program| {
                    let mut hasher = DefaultHasher::new();
                    let kernels: Vec<_> = program.kernels.iter().map(|k| (k.entry, format!("{:?}", k.spec))).collect();
                    format!("{kernels:?} {:?} {:?}", program.dispatches, program.operands).hash(&mut hasher);
                    format!("{} {:016x}", program.variant(), hasher.finish())
                });
                let (card, size) = (&profile.name, drawn.name());
                text += &format!("{card}: {} {} {size} {variant}: {plan}\n", kind.op, kind.dtype);
            }
        }
    }
    text
}
