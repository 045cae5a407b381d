//! The ways to compute a product. Resolves the name of a variant, once.

use super::coop::CoopForm;
use super::division::Division;
use super::job::ProductJob;
use super::plain::{ELEMENT, PlainKernel, lower_elements};
use super::register::RegisterForm;
use super::small::small_form;
use super::split_k::SplitK;
use crate::program::prelude::*;

pub(in super::super) const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "one thread reads a row of A and a column of B for one element of C"),
    Variant::portable("tiled", "a workgroup shares tiles of A and B through workgroup memory; sides are free (tile)"),
    Variant::portable("coarsened", "one thread computes 2 or 4 tiles of columns of its row"),
    Variant::portable(
        "register-direct",
        "sums in registers, A read straight into one: loads of A do not coalesce, the baseline of what follows",
    ),
    Variant::portable(
        "register-staged",
        "the same with A staged through workgroup memory: all else equal, both loads coalesce",
    ),
    UNSTAGED,
    Variant::portable("register", "a block of sums in registers, tiles of both factors staged"),
    Variant::portable("double", "the same with two tiles in workgroup memory, while the next one loads"),
    Variant::portable("split-k", "k split over workgroups, each slice to a slab of scratch; a pass adds them up"),
    Variant::portable(
        "split-k-atomic",
        "k split over workgroups, which add to one slab by compare-exchange; rounding varies, never automatic",
    )
    .in_any_order(),
    COOP,
];

pub(in super::super) const BATCHED_VARIANTS: &[Variant] = &[
    Variant::portable("naive", "one thread reads a row of A and a column of B for one element of C"),
    Variant::portable("small", "a workgroup holds whole matrices, up to 64 x 64; sums in registers, 4 x 4 each"),
    UNSTAGED,
    Variant::portable("register", "a workgroup computes a tile of one product, sums in registers"),
    COOP,
];

const UNSTAGED: Variant = Variant::portable(
    "unstaged",
    "a block of sums in registers, both factors straight from storage: no barrier, for processors",
);

const COOP: Variant = Variant {
    name: "coop",
    about: "cooperative matrices of f16 with sums of f32; on request for factors of f32, which are rounded or split",
    requires: Requires { f16: true, cooperative: true, ..Requires::NOTHING },
    // naga has 16 x 16 cooperative matrices for SPIR-V only; Tint and WGSL proper have none.
    translations: &[Translation::SpirV],
    any_order: false,
};

/// How a product runs, with the constants of its kernel.
pub(super) enum Way {
    /// The definition of a batch.
    Elements,
    Plain(PlainKernel),
    Register(RegisterForm),
    SplitK(SplitK),
    Coop(CoopForm),
}

impl Way {
    /// Resolves a variant to its way and division of C. Rejects what the variant or the device cannot run.
    pub(super) fn of(variant: &'static str, job: &ProductJob<'_>) -> Result<(Self, Division)> {
        let plain = |kernel: PlainKernel| Ok((Self::Plain(kernel), kernel.check(variant, job)?));
        let register = |form: RegisterForm| Ok((Self::Register(form), form.division()));
        match (variant, job.product.batched) {
            ("naive", true) => Ok((Self::Elements, ELEMENT)),
            ("small", _) => register(small_form(job)?),
            ("register", true) => register(RegisterForm::of_batch(job)),
            ("naive", false) => plain(PlainKernel::Naive),
            ("tiled", _) => plain(PlainKernel::Tiled),
            ("coarsened", _) => plain(PlainKernel::Coarsened),
            ("register-direct", _) => plain(PlainKernel::RegisterDirect),
            ("register-staged", _) => plain(PlainKernel::RegisterStaged),
            ("unstaged", _) => plain(PlainKernel::Unstaged),
            ("split-k", _) => SplitK::check(variant, false, job).map(|(way, of)| (Self::SplitK(way), of)),
            ("split-k-atomic", _) => SplitK::check(variant, true, job).map(|(way, of)| (Self::SplitK(way), of)),
            ("coop", _) => CoopForm::check(job).map(|(form, of)| (Self::Coop(form), of)),
            _ => {
                let double = variant == "double";
                RegisterForm::check(variant, double, job).map(|(form, of)| (Self::Register(form), of))
            }
        }
    }

    /// Slices of k, where workgroups share them.
    pub(super) fn slices(&self) -> Option<usize> {
        match self {
            Self::SplitK(split) => Some(split.slices),
            Self::Coop(form) => Some(form.slices),
            _ => None,
        }
    }

    /// Rows of A and columns of B that are read together.
    pub(super) fn reads(&self, Division { tile, .. }: Division) -> [u64; 2] {
        match self {
            Self::Elements | Self::Plain(PlainKernel::Naive) => [1, 1],
            _ => [tile.m.into(), tile.n.into()],
        }
    }

    pub(super) fn lower(&self, division: Division, job: &ProductJob<'_>, program: &mut Program) -> Result<()> {
        match self {
            Self::Elements => lower_elements(job, program),
            Self::Plain(kernel) => kernel.lower(division, job, program),
            Self::Register(form) => form.lower(job, program),
            Self::SplitK(split) => split.lower(job, program),
            Self::Coop(form) => form.lower(job, program),
        }
    }
}

#[cfg(test)]
mod tests;
