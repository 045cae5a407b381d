//! What an op can be run as, and what each way asks of the device.

use super::{DeviceProfile, Program};
use crate::error::{Result, err};

/// A compiler that a variant's shaders can be translated for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Translation {
    /// Vulkan.
    SpirV,
    /// Metal.
    Msl,
    /// Direct3D 12.
    Hlsl,
    /// Browsers built on Dawn.
    Tint,
}

impl Translation {
    /// All of them: what every portable variant declares.
    pub const ALL: &'static [Translation] = &[Self::SpirV, Self::Msl, Self::Hlsl, Self::Tint];
}

/// What a variant asks of a device, above WebGPU's default limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requires {
    /// Subgroup operations.
    pub subgroups: bool,
    /// 16-bit floats in shaders.
    pub f16: bool,
    /// Cooperative matrices of f16 with sums of f32 ([`DeviceProfile::cooperative_side`]).
    pub cooperative: bool,
}

impl Requires {
    /// Nothing: runs on any WebGPU device.
    pub const NOTHING: Self = Self { subgroups: false, f16: false, cooperative: false };
    /// Subgroup operations.
    pub const SUBGROUPS: Self = Self { subgroups: true, ..Self::NOTHING };

    /// What `profile` lacks, in words, or nothing.
    pub fn missing(self, profile: &DeviceProfile) -> Option<&'static str> {
        if self.subgroups && !profile.features.subgroups {
            Some("subgroup operations (feature SUBGROUP)")
        } else if self.f16 && !profile.features.f16 {
            Some("16-bit floats in shaders (feature SHADER_F16)")
        } else if self.cooperative && profile.cooperative_side().is_none() {
            Some(
                "cooperative matrices of f16 with sums of f32, 16 x 16 x 16 or 8 x 8 x 8, and subgroups of one size, \
                 through Vulkan (feature EXPERIMENTAL_COOPERATIVE_MATRIX)",
            )
        } else {
            None
        }
    }
}

/// One way to run an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Name, as selected by `.variant(name)`.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// What it asks of the device.
    pub requires: Requires,
    /// Where its shaders can be translated to.
    pub translations: &'static [Translation],
}

impl Variant {
    /// A variant that every WebGPU device can run.
    pub const fn portable(name: &'static str, about: &'static str) -> Self {
        Self { name, about, requires: Requires::NOTHING, translations: Translation::ALL }
    }

    /// A variant that needs subgroup operations.
    pub const fn subgroups(name: &'static str, about: &'static str) -> Self {
        Self { name, about, requires: Requires::SUBGROUPS, translations: Translation::ALL }
    }
}

/// An op as the registry knows it: what tests, benches and the `op` example iterate.
#[derive(Debug)]
pub struct OpInfo {
    /// Name, as on the command line of the `op` example.
    pub name: &'static str,
    /// The formula, in a line.
    pub about: &'static str,
    /// Inputs with their shapes, as the `op` example takes them.
    pub inputs: &'static str,
    /// Keys of the `op` example with their defaults.
    pub keys: &'static str,
    /// Every way to run it.
    pub variants: fn() -> &'static [Variant],
    /// Programs that together reach every shader of the variant in every form the device has: what
    /// shader validation and translation run over.
    pub samples: fn(&DeviceProfile, &'static str) -> Result<Vec<Program>>,
}

/// Why a variant is what it is that no policy chose.
pub(crate) const ASKED: &str = "asked for by name";

/// Resolves a variant by name: `auto` takes what is forced on the op, or asks `policy`; any other must exist and fit
/// the device. What is denied there is not taken.
pub(crate) fn choose(
    op: &str,
    asked: &str,
    variants: &'static [Variant],
    profile: &DeviceProfile,
    policy: impl FnOnce() -> (&'static str, String),
) -> Result<(&'static Variant, String)> {
    let find = |name: &str| {
        variants.iter().position(|v| v.name == name).ok_or_else(|| {
            let names: Vec<_> = variants.iter().map(|v| v.name).collect();
            err!(InvalidArgument, "{op}: no variant `{name}`; there are: auto, {}", names.join(", "))
        })
    };
    let choices = &profile.choices;
    let denied = |v: &Variant| choices.denies(op, v.name);
    let usable = |v: &&'static Variant| v.requires.missing(profile).is_none() && denied(v).is_none();
    let auto = asked == "auto";
    if auto
        && let Some(choice) = choices.forced.get(op)
        && let Some(variant) = variants.iter().find(|v| v.name == choice.variant).filter(usable)
    {
        return Ok((variant, choice.why.clone()));
    }
    let (name, why) = if auto { policy() } else { (asked, ASKED.to_owned()) };
    let place = find(name)?;
    let variant = &variants[place];
    if let Some(missing) = variant.requires.missing(profile) {
        return Err(err!(
            Unsupported,
            "{op}: the variant `{name}` needs {missing}, which {} does not have; use `auto`",
            profile.name
        ));
    }
    let Some(wrong) = denied(variant) else { return Ok((variant, why)) };
    // Lists of variants climb: the one before is next in speed, and asks for no more.
    let mut others = variants[..place].iter().rev().chain(&variants[place + 1..]).filter(usable);
    match others.next().filter(|_| auto) {
        Some(next) => Ok((next, format!("`{name}` failed on this driver; {} is next to it", next.name))),
        None => Err(err!(
            Unsupported,
            "{op}: the variant `{name}` failed with the driver {} of {} ({}){}; Gpu::clear_cache lets it be \
             tried again, which is right after an update of the driver",
            profile.driver,
            profile.name,
            wrong.why,
            if auto { ", and so did every other that fits" } else { "; use `auto`" }
        )),
    }
}
