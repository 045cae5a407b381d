//! k split over workgroups: their sums go to scratch, then a second pass ends the product.

use super::division::Division;
use super::job::{ProductJob, ProductParams, Workgroups, slice_k};
use super::plain::{END_TILE, end_pass};
use super::policy;
use super::register::{RegisterForm, StepCount};
use crate::error::Result;
use crate::program::{Determinism, Kernel, Program};
use crate::shader::{Fragment, Spec};

/// The kernel that multiplies.
pub(super) struct SplitK {
    form: RegisterForm,
    /// Adds slices to one slab by compare-exchange, instead of one slab for each.
    atomic: bool,
}

impl SplitK {
    /// Takes the requested division, or one that suits.
    pub(super) fn check(variant: &str, atomic: bool, job: &ProductJob<'_>) -> Result<(Self, Division)> {
        let suits = policy::split_division(variant, job.product, job.profile);
        let division = job.product.division(suits, policy::register_thread);
        let form = RegisterForm::of_division(variant, division, true, job)?;
        let form = RegisterForm { steps: StepCount::Any, ..form };
        Ok((Self { form, atomic }, division))
    }

    pub(super) fn lower(&self, job: &ProductJob<'_>, program: &mut Program) -> Result<()> {
        let (product, tile, profile) = (job.product, self.form.tile, job.profile);
        let k = product.k;
        let wanted = match product.slices {
            Some(slices) => (slices as usize).clamp(1, k),
            None => policy::slices(self.form.division(), product, profile),
        };
        // Slabs that one binding holds; a slice is no longer than a dispatch allows.
        let slab = job.sums_bytes(1)?;
        let slabs = if self.atomic { u64::MAX } else { profile.limits.max_storage_binding / slab };
        let tiles = job.tiles(tile);
        // The count of workgroups must fit an index, and every driver must run the loop to its end.
        let most = slabs.min((1 << 31) / tiles.count).clamp(1, 1 << 15) as usize;
        let slice = k.div_ceil(wanted.min(most)).next_multiple_of(tile.k as usize).min(slice_k(profile));
        let slices = k.div_ceil(slice);
        let bytes = if self.atomic { slab } else { job.sums_bytes(slices)? };
        let params = ProductParams {
            slice_k: slice as u32,
            slices: if self.atomic { 1 } else { slices as u32 },
            ..job.params(k, tile)?
        };
        let sums = program.scratch(bytes);
        let end = ProductParams { end_k: 0, ..job.params(k, END_TILE)? };
        if self.atomic {
            program.determinism = Determinism::RoundingVaries;
            let spec = Spec::new().constant("TILE_M", END_TILE.m).constant("TILE_N", END_TILE.n);
            let kernel = program.kernel(Kernel::library("dense/gemm_clear", "gemm_clear", spec));
            job.dispatch(program, kernel, &end, &[sums], job.tiles(END_TILE))?;
        }

        let kernel = program.kernel(self.form.kernel(self.slice_spec(job)));
        let mut bindings = job.bindings(program, 0);
        bindings.truncate(2);
        bindings.push(sums);
        let workgroups = Workgroups { count: tiles.count * slices as u64, ..tiles };
        job.dispatch(program, kernel, &params, &bindings, workgroups)?;

        let kernel = program.kernel(Kernel::library("dense/gemm_slabs", "gemm_slabs", end_pass(job, 2)));
        let mut bindings = vec![sums];
        bindings.extend(job.bindings(program, 2));
        let end = ProductParams { slices: params.slices, ..end };
        job.dispatch(program, kernel, &end, &bindings, job.tiles(END_TILE))
    }

    /// The spec of the kernel that multiplies a slice.
    fn slice_spec(&self, job: &ProductJob<'_>) -> Spec {
        let fragment = if self.atomic { "dense/gemm_end_atomic" } else { "dense/gemm_end_slab" };
        let spec = job.type_spec().flag("SPLIT", true).slot("end", Fragment::Library(fragment));
        if self.atomic { spec } else { spec.flag("FOURS", job.product.n.is_multiple_of(4)) }
    }
}
