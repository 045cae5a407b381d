//! Classes of shapes that share a winner, and how planning uses them.

#[cfg(feature = "tune")]
use super::measure::{Goal, TuningOptions};
#[cfg(feature = "tune")]
use super::operands::can_make;
#[cfg(feature = "tune")]
use super::search::Search;
use crate::gpu::{Gpu, Tuning, Winner};
use crate::program::Source;
use crate::program::prelude::*;
use std::fmt::Write;
use std::hash::Hash;
use xxhash_rust::xxh3::Xxh3Default;

/// Whether measurements can have denied or preferred a variant. Not in a page without the feature `tune`, whose module
/// then does without the catalogue.
const LEARNS: bool = cfg!(any(feature = "tune", not(target_arch = "wasm32")));

/// A descriptor of an op for some element type.
pub(super) type LowerOn<'a> = dyn Fn(&DeviceProfile) -> Result<Program> + 'a;

pub(super) fn operation(program: &Program) -> Option<&'static Operation> {
    crate::operations::operations().find(|operation| operation.name == program.op)
}

/// The class of a program of the op's own policy: op, variant, types, sizes of operands and work rounded up to powers
/// of two, and a hash of its specialised kernels. The kernels tell a transposed product or a causal attention from
/// others of the same sizes, and are equal for sizes that a policy treats alike.
pub(super) fn class(program: &Program) -> String {
    let log2 = |n: u64| u64::BITS - n.saturating_sub(1).leading_zeros();
    let mut class = program.variant().to_owned();
    for operand in &program.operands {
        // Writing to a string does not fail.
        let _ = write!(class, " {}:{}:{}", operand.name, operand.dtype, log2(operand.len as u64));
    }
    let mut hash = Xxh3Default::new();
    for kernel in &program.kernels {
        match &kernel.source {
            Source::Library(name) => name.hash(&mut hash),
            // The pipeline cache compares the text. Name and length distinguish as much here, at less cost.
            Source::Text { name, text } => (name, text.len()).hash(&mut hash),
        }
        (kernel.entry, &kernel.spec).hash(&mut hash);
    }
    let _ = write!(class, " flop:{} {:016x}", log2(program.cost.flop as u64), hash.digest());
    class
}

/// Whether the op chose the variant, not the caller.
pub(super) fn is_auto(program: &Program) -> bool {
    program.decision.by != DecidedBy::Asked
}

pub(super) fn forced(profile: &DeviceProfile, op: &str, choice: Choice) -> DeviceProfile {
    let mut profile = profile.clone();
    profile.choices.forced.insert(op.to_owned(), choice);
    profile
}

/// Lowers for a device on which some variants are denied.
pub(super) fn lower_allowed(profile: &DeviceProfile, lower: &LowerOn<'_>) -> Result<Program> {
    let first = lower(profile);
    if !LEARNS || first.is_ok() || profile.choices.denied.is_empty() {
        return first;
    }
    // The variant next to a denied one may not take every shape. Another may.
    let mut free = profile.clone();
    free.choices.denied.clear();
    let Some(plain) = lower(&free).ok().filter(is_auto) else { return first };
    let variants = operation(&plain).map_or(&[][..], |o| (o.variants)());
    let why = format!("`{}` failed on this driver; this variant takes the shape", plain.variant());
    let mut others = variants.iter().filter_map(|v| {
        let choice = Choice { by: DecidedBy::Fallback, ..Choice::variant(v.name, &why) };
        let program = lower(&forced(profile, plain.op, choice)).ok()?;
        (program.variant() == v.name).then_some(program)
    });
    others.next().map_or(first, Ok)
}

/// Lowers for a device by the op's policy or an earlier measurement. Measures nothing.
pub(crate) fn lower_known(gpu: &Gpu, lower: &LowerOn<'_>) -> Result<Program> {
    Ok(as_tuned(gpu, lower_allowed(&gpu.planning_profile(), lower)?, lower))
}

/// Returns the program that measured better than the policy's, or the policy's.
fn as_tuned(gpu: &Gpu, program: Program, lower: &LowerOn<'_>) -> Program {
    if !is_tunable(gpu, &program) {
        return program;
    }
    match gpu.winner(program.op, || class(&program)) {
        Some(winner) => with(gpu, program, &winner, lower),
        None => program,
    }
}

/// Lowers for a device without the feature `tune`: as [`lower_known`].
#[cfg(not(feature = "tune"))]
pub(crate) fn lower_on(gpu: &Gpu, lower: &LowerOn<'_>) -> Result<Program> {
    lower_known(gpu, lower)
}

/// As [`lower_known`], but first measures an unknown class, if the device's options ask for it.
#[cfg(feature = "tune")]
pub(crate) fn lower_on(gpu: &Gpu, lower: &LowerOn<'_>) -> Result<Program> {
    let program = lower_allowed(&gpu.planning_profile(), lower)?;
    let known = || gpu.winner(program.op, || class(&program)).is_some();
    if gpu.tuning() != Tuning::Measure || !is_tunable(gpu, &program) || !can_make(&program) || known() {
        return Ok(as_tuned(gpu, program, lower));
    }
    let options = TuningOptions::default();
    let search = Search { gpu, lower, options: &options, goal: Goal::Fastest };
    // The op can be planned whether or not tuning succeeds. A failed search is not repeated.
    if search.run(None).is_err() {
        let nothing = Winner { better: None, before: 0.0, after: 0.0 };
        gpu.remember(program.op, &class(&program), &nothing, false);
    }
    // A default that was found wrong is denied now.
    lower_known(gpu, lower)
}

fn is_tunable(gpu: &Gpu, program: &Program) -> bool {
    LEARNS && gpu.tuning() != Tuning::Off && !program.dispatches.is_empty() && is_auto(program)
}

fn with(gpu: &Gpu, program: Program, winner: &Winner, lower: &LowerOn<'_>) -> Program {
    let Some(choice) = winner.choice() else { return program };
    if let Some(tuned) = gpu.tuned(&program) {
        return tuned;
    }
    let tuned = lower(&forced(&gpu.planning_profile(), program.op, choice));
    let tuned = tuned.ok().filter(|tuned| compatible(&program, tuned).is_none());
    let tuned = tuned.unwrap_or_else(|| program.clone());
    gpu.keep_tuned(program, &tuned);
    tuned
}

/// The reason why a program may not replace another, if there is one.
pub(super) fn compatible(default: &Program, other: &Program) -> Option<&'static str> {
    use crate::program::Determinism::{RoundingVaries, SameBits};
    if other.operands != default.operands {
        Some("its operands differ")
    } else if default.determinism == SameBits && other.determinism == RoundingVaries {
        Some("its rounding varies from run to run, unlike the default's")
    } else {
        None
    }
}

#[cfg(test)]
#[cfg(feature = "default")] // what it tests is of several features
mod tests;
