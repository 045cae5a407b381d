//! Checks before recording, so that wgpu has nothing to reject.

use super::Executable;
use crate::gpu::pipeline_cache::PipelineInUse;
use crate::gpu::raw_slice::check_written;
use crate::gpu::{Gpu, RawSlice};
use crate::program::prelude::*;
use crate::shader::BindingKind;

impl Gpu {
    /// Checks a dispatch against its shader, its program and the limits. wgpu would report such an error in a
    /// caller's encoder.
    pub(super) fn check_dispatch(
        &self, program: &Program, dispatch: &Dispatch, pipelines: &[PipelineInUse],
    ) -> Result<()> {
        let limits = &self.profile().limits;
        let Some(pipeline) = pipelines.get(dispatch.kernel) else {
            return Err(err!(InvalidArgument, "kernel {} of {}", dispatch.kernel, pipelines.len()));
        };
        let kernel = program.kernels[dispatch.kernel].label();
        let wanted = &pipeline.interface.bindings;
        let params = u32::from(!dispatch.params.is_empty());
        let given = dispatch.bindings.len() + params as usize;
        if wanted.len() != given || wanted.iter().zip(1 - params..).any(|(w, number)| w.index != number) {
            let names: Vec<_> = wanted.iter().map(|w| format!("{} at {}", w.name, w.index)).collect();
            return Err(err!(
                InvalidArgument,
                "{given} bindings are given (from {} on) and {kernel} needs {}",
                1 - params,
                names.join(", ")
            ));
        }
        let (uniform, storage) = wanted.split_at(params as usize);
        for w in uniform {
            let bytes = round_up(dispatch.params.len() as u64, 16);
            if w.kind != BindingKind::Uniform || bytes < w.min_size || bytes > limits.max_uniform_binding {
                return Err(err!(
                    InvalidArgument,
                    "{bytes} bytes of parameters are given, and {kernel} binds {} of {} bytes as {:?} (at most {})",
                    w.name,
                    w.min_size,
                    w.kind,
                    limits.max_uniform_binding
                ));
            }
        }
        // Bytes available for a binding. Operands in a uniform are whole vec4s.
        let there = |resource, unit: u64| match resource {
            Resource::Operand(o) => {
                program.operands.get(o).map(|o| o.bytes().max(4).saturating_add(unit - 1) / unit * unit)
            }
            Resource::Scratch(s) => program.scratch.get(s).map(|bytes| bytes.max(&4).saturating_add(3) / 4 * 4),
            Resource::Constant(c) => {
                program.constants.get(c).map(|bytes| bytes.len().max(4).next_multiple_of(4) as u64)
            }
        };
        for (b, w) in dispatch.bindings.iter().zip(storage) {
            let operand = matches!(b.resource, Resource::Operand(_));
            let uniform = w.kind == BindingKind::Uniform;
            let unit = if uniform { 16 } else { 4 };
            let (name, size) = (&w.name, b.size.max(4).saturating_add(unit - 1) / unit * unit);
            if size > if uniform { limits.max_uniform_binding } else { limits.max_storage_binding } {
                return Err(err!(
                    TooLarge,
                    "{name} of {kernel} binds {size} bytes; the largest binding of {} has {}, the largest uniform {}; \
                     split the work",
                    self.profile().name,
                    limits.max_storage_binding,
                    limits.max_uniform_binding
                ));
            }
            let fits =
                there(b.resource, unit).is_some_and(|bytes| b.offset.checked_add(size).is_some_and(|end| end <= bytes));
            let aligned = b.offset % u64::from(limits.storage_alignment) == 0;
            if !fits || !aligned || size < w.min_size || uniform && (!operand || b.offset > 0) {
                return Err(err!(
                    InvalidArgument,
                    "{name} of {kernel} binds {size} bytes at {} of {:?} ({:?} bytes); it is {:?} of at least {} bytes, at \
                     multiples of {}",
                    b.offset,
                    b.resource,
                    there(b.resource, unit).unwrap_or(0),
                    w.kind,
                    w.min_size,
                    limits.storage_alignment
                ));
            }
        }
        let writes = |resource| {
            (dispatch.bindings.iter().zip(storage))
                .any(|(b, w)| b.resource == resource && w.kind == BindingKind::ReadWrite)
        };
        for (b, w) in dispatch.bindings.iter().zip(storage) {
            if w.kind != BindingKind::ReadWrite && writes(b.resource) {
                return Err(err!(
                    InvalidArgument,
                    "{kernel} reads {} from {:?} and writes to it as well; use two buffers",
                    w.name,
                    b.resource
                ));
            }
            if let Resource::Operand(o) = b.resource
                && w.kind == BindingKind::ReadWrite
                && program.operands[o].access == Access::Read
            {
                return Err(err!(
                    InvalidArgument,
                    "{kernel} may write to {}, which is declared as only read",
                    program.operands[o].name
                ));
            }
            if matches!(b.resource, Resource::Constant(_)) && w.kind == BindingKind::ReadWrite {
                return Err(err!(InvalidArgument, "{kernel} may write to {}, which is a constant", w.name));
            }
        }
        match dispatch.grid {
            Grid::Direct(workgroups) => {
                let limit = limits.max_workgroups_per_dimension;
                if workgroups.iter().any(|n| *n > limit) {
                    return Err(err!(
                        TooLarge,
                        "{kernel} takes {workgroups:?} workgroups; the maximum of {} along each dimension is {limit}; split \
                         the work",
                        self.profile().name
                    ));
                }
            }
            Grid::Indirect { resource: Resource::Constant(c), .. } => {
                return Err(err!(
                    InvalidArgument,
                    "the counts of {kernel} are constant {c}; use Grid::Direct for counts known when planning"
                ));
            }
            Grid::Indirect { resource, offset } => {
                let fits =
                    there(resource, 4).is_some_and(|bytes| offset.checked_add(12).is_some_and(|end| end <= bytes));
                if !fits || offset % 4 != 0 || writes(resource) {
                    return Err(err!(
                        InvalidArgument,
                        "the counts of {kernel} lie at byte {offset} of {resource:?}: they are three u32 at a multiple of 4 \
                         bytes, and it must not write there itself"
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Executable {
    pub(super) fn check(&self, operands: &[RawSlice<'_>]) -> Result<()> {
        let op = self.program.op;
        let wanted = &self.program.operands;
        Operand::check_count(op, operands.len(), wanted)?;
        for (given, want) in operands.iter().zip(wanted) {
            let name = want.name;
            want.check_given(op, given.dtype, given.len)?;
            given.check_bindable(op, name, &self.gpu)?;
            if given.start() + round_up(given.bytes(), 4) > given.memory.raw.size {
                return Err(err!(
                    Buffer,
                    "{op}: {name} ends within a 4-byte word at the end of its buffer of {} bytes; make the buffer larger",
                    given.memory.raw.size
                ));
            }
        }
        for (given, want) in self.uniforms.iter().map(|&i| (&operands[i], &wanted[i])) {
            given.check_uniform(op, want.name)?;
        }
        for (given, want) in self.counts.iter().map(|&i| (&operands[i], &wanted[i])) {
            let usage = given.memory.raw.buffer.usage();
            if !usage.contains(wgpu::BufferUsages::INDIRECT) {
                return Err(err!(
                    Buffer,
                    "{op}: {} has usage {usage:?}; counts of workgroups need INDIRECT",
                    want.name
                ));
            }
        }
        for (i, (a, want_a)) in operands.iter().zip(wanted).enumerate() {
            for (j, (b, want_b)) in operands.iter().zip(wanted).enumerate().skip(i + 1) {
                let written = want_a.access != Access::Read || want_b.access != Access::Read;
                // Operands without elements matter only if a dispatch binds them.
                let meet = a.len > 0 && b.len > 0 || self.bound[i] && self.bound[j];
                if written && meet && a.same_buffer(b) {
                    return Err(err!(
                        Aliasing,
                        "{op}: {} and {} lie in one wgpu buffer, and one of them is written; WebGPU tracks use per whole \
                         buffer, so use two buffers (or the in-place form, where the op has one)",
                        want_a.name,
                        want_b.name
                    ));
                }
            }
        }
        Ok(())
    }

    /// Rejects operands that are only read and were never written.
    pub(super) fn check_written(&self, operands: &[RawSlice<'_>]) -> Result<()> {
        if operands.iter().all(|o| o.memory.written.get()) {
            return Ok(());
        }
        let used = |i: &usize| self.bound[*i] || self.counts.contains(i);
        let uses = (0..operands.len()).filter(used).map(|i| {
            let want = &self.program.operands[i];
            operands[i].used(want.name, want.access)
        });
        check_written(self.program.op, &uses.collect::<Vec<_>>())
    }
}
