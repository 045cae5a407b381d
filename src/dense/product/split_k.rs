//! k split over workgroups: their sums go to slabs of scratch, then a second pass ends the product.

use super::division::{Division, ProductTile};
use super::job::{ProductJob, ProductParams, Workgroups, slice_k};
use super::plain::{END_TILE, end_pass};
use super::policy;
use super::register::{RegisterForm, StepCount};
use crate::program::prelude::*;

pub(super) struct SplitK {
    form: RegisterForm,
    /// Adds slices to one slab by compare-exchange, instead of one slab for each.
    atomic: bool,
    pub(super) slices: usize,
}

impl SplitK {
    pub(super) fn check(variant: &str, atomic: bool, job: &ProductJob<'_>) -> Result<(Self, Division)> {
        let suits = policy::fastest(variant, job).division;
        let division = job.product.division(suits, policy::register_thread);
        let form = RegisterForm::of_division(variant, division, true, job)?;
        let form = RegisterForm { steps: StepCount::Any, ..form };
        let slices = policy::sliced(variant, &division, job).slices;
        Ok((Self { form, atomic, slices }, division))
    }

    pub(super) fn lower(&self, job: &ProductJob<'_>, program: &mut Program) -> Result<()> {
        let (product, tile) = (job.product, self.form.tile);
        let mut slabs = Slabs::of(job, program, product.k, tile, self.slices, self.atomic)?;
        let params = job.params(product.k, tile)?;
        if self.atomic {
            program.determinism = Determinism::RoundingVaries;
            let spec = Spec::new().constant("TILE_M", END_TILE.m).constant("TILE_N", END_TILE.n);
            let kernel = program.kernel(Kernel::library("dense/gemm_clear", "gemm_clear", spec));
            let end = ProductParams { end_k: 0, ..job.params(product.k, END_TILE)? };
            job.dispatch(program, kernel, &end, &[slabs.sums], job.tiles(END_TILE))?;
        }
        let spec = if self.atomic {
            job.type_spec().flag("SPLIT", true).slot("end", Fragment::Library("dense/gemm_end_atomic"))
        } else {
            slabs.spec(job).flag("VEC4S", product.n.is_multiple_of(4))
        };
        let kernel = program.kernel(self.form.kernel(spec));
        let mut bindings = job.bindings(program, 0);
        bindings.truncate(2);
        bindings.push(slabs.sums);
        slabs.multiply(job, program, kernel, params, &bindings, tile)?;
        if self.atomic {
            slabs.slices = 1;
        }
        slabs.add(job, program)
    }
}

/// The sums of slices of k, each m x n in scratch.
pub(super) struct Slabs {
    slice: usize,
    slices: usize,
    pub(super) sums: Binding,
}

impl Slabs {
    /// Cuts k into about `wanted` slices, each a multiple of the tile's step.
    pub(super) fn new(
        job: &ProductJob<'_>, program: &mut Program, k: usize, tile: ProductTile, wanted: usize,
    ) -> Result<Self> {
        Self::of(job, program, k, tile, wanted, false)
    }

    fn of(
        job: &ProductJob<'_>, program: &mut Program, k: usize, tile: ProductTile, wanted: usize, one_slab: bool,
    ) -> Result<Self> {
        // Slabs that one binding holds; a slice is no longer than a dispatch allows.
        let slab = job.sums_bytes(1)?;
        let slabs = if one_slab { u64::MAX } else { job.profile.limits.max_storage_binding / slab };
        // The count of workgroups must fit an index, and every driver must run the loop to its end.
        let most = slabs.min((1 << 31) / job.tiles(tile).count).clamp(1, 1 << 15) as usize;
        let step = tile.k as usize;
        let slice = k.div_ceil(wanted.min(most)).next_multiple_of(step).min(slice_k(job.profile));
        let slices = k.div_ceil(slice);
        let bytes = if one_slab { slab } else { job.sums_bytes(slices)? };
        Ok(Self { slice, slices, sums: program.scratch(bytes) })
    }

    /// The spec of a kernel that writes one slab for each slice.
    pub(super) fn spec(&self, job: &ProductJob<'_>) -> Spec {
        job.type_spec().flag("SPLIT", true).slot("end", Fragment::Library("dense/gemm_end_slab"))
    }

    pub(super) fn multiply(
        &self, job: &ProductJob<'_>, program: &mut Program, kernel: usize, params: ProductParams, bindings: &[Binding],
        tile: ProductTile,
    ) -> Result<()> {
        let params = ProductParams { slice_k: self.slice as u32, slices: self.slices as u32, ..params };
        let tiles = job.tiles(tile);
        let workgroups = Workgroups { count: tiles.count * self.slices as u64, ..tiles };
        job.dispatch(program, kernel, &params, bindings, workgroups)
    }

    pub(super) fn add(&self, job: &ProductJob<'_>, program: &mut Program) -> Result<()> {
        let kernel = program.kernel(Kernel::library("dense/gemm_slabs", "gemm_slabs", end_pass(job, 2)));
        let mut bindings = vec![self.sums];
        bindings.extend(job.bindings(program, 2));
        let params = job.params(job.product.k, END_TILE)?;
        let params = ProductParams { end_k: 0, slices: self.slices as u32, ..params };
        job.dispatch(program, kernel, &params, &bindings, job.tiles(END_TILE))
    }
}
