use super::{Arch, CudaProfile};
use crate::program::prelude::*;

/// A CUDA variant of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaVariant {
    /// Name, as `.variant(name)` takes it.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// The oldest architecture that runs it.
    pub arch: Arch,
}

/// Resolves a variant by name. `auto` asks `policy`; another name must exist and run on the device.
pub(super) fn choose(
    op: &str, asked: &str, variants: &'static [CudaVariant], profile: &CudaProfile,
    policy: impl FnOnce() -> (&'static str, String),
) -> Result<(&'static CudaVariant, Decision)> {
    let (name, why) = if asked == "auto" { policy() } else { (asked, String::new()) };
    let variant = variants.iter().find(|v| v.name == name).ok_or_else(|| {
        let names: Vec<_> = variants.iter().map(|v| v.name).collect();
        err!(InvalidArgument, "{op}: no variant `{name}` on CUDA; use one of: auto, {}", names.join(", "))
    })?;
    if !profile.runs(variant.arch) {
        return Err(err!(
            Unsupported,
            "{op}: the variant `{name}` needs {:?}; {} is sm_{}{}; use `auto`",
            variant.arch,
            profile.name,
            profile.compute[0],
            profile.compute[1]
        ));
    }
    let decision = if asked == "auto" { Decision::policy(variant.name, why) } else { Decision::asked(variant.name) };
    Ok((variant, decision))
}
