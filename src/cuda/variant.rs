//! What an op can be run as on CUDA.

use super::{Arch, CudaProfile};
use crate::error::{Result, err};
use crate::program::Decision;

/// One way to run an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaVariant {
    /// Name, as selected by `.variant(name)`.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// The least that it needs.
    pub arch: Arch,
}

/// Resolves a variant by name: `auto` asks `policy`, any other must exist and run on the device.
pub(super) fn choose(
    op: &str,
    asked: &str,
    variants: &'static [CudaVariant],
    profile: &CudaProfile,
    policy: impl FnOnce() -> (&'static str, String),
) -> Result<(&'static CudaVariant, Decision)> {
    let (name, why) = if asked == "auto" { policy() } else { (asked, String::new()) };
    let variant = variants.iter().find(|v| v.name == name).ok_or_else(|| {
        let names: Vec<_> = variants.iter().map(|v| v.name).collect();
        err!(InvalidArgument, "{op}: no variant `{name}` on CUDA; there are: auto, {}", names.join(", "))
    })?;
    if !profile.runs(variant.arch) {
        return Err(err!(
            Unsupported,
            "{op}: the variant `{name}` needs {:?}; {} is sm_{}{}; use `auto`",
            variant.arch,
            profile.name,
            profile.compute.0,
            profile.compute.1
        ));
    }
    let decision =
        if asked == "auto" { Decision::policy(variant.name, why) } else { Decision::asked(variant.name) };
    Ok((variant, decision))
}
