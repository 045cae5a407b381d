mod bind_groups;
mod checks;
mod params;
mod staged;

pub(super) use bind_groups::{GroupRegistry, RecentSets};
pub(super) use params::{ParamsBuffer, ParamsCache};

use super::pipeline_cache::{CachedPipeline, PipelineInUse};
use super::pool::Raw;
use super::profile::{DispatchProfile, OpProfile};
use super::raw_slice::described;
use super::recorder::{Encoder, OpenPass, Recorder, SetInPass};
use super::{Gpu, RawSlice, Slice, unique};
use crate::program::prelude::*;
use crate::shader::{BindingKind, Interface, check_users};
use bind_groups::{GroupSet, Groups};
use std::sync::Arc;

/// A program compiled for a device: what [`Gpu::prepare`] returns. Untyped; [`Plan`](crate::Plan) is the typed form.
#[derive(Debug)]
pub struct Executable {
    gpu: Gpu,
    program: Program,
    pipelines: Vec<PipelineInUse>,
    params: Option<Arc<ParamsBuffer>>,
    params_offsets: Vec<u64>,
    constants: Vec<Raw>,
    id: u64,
    groups: Arc<Groups>,
    /// Whether a dispatch binds the operand.
    bound: Vec<bool>,
    /// Operands that hold counts of workgroups.
    counts: Vec<usize>,
    uniforms: Vec<usize>,
}

impl Gpu {
    /// Prepares a program that was written by hand, or lowered and then changed: builds or finds its pipelines and
    /// uploads its parameters.
    ///
    /// No proof covers the indices of such a program, so all its kernels run with runtime checks, the library's
    /// included. [`Plannable::plan`](crate::Plannable::plan) runs ops at full speed.
    ///
    /// # Errors
    /// [`Shader`](ErrorKind::Shader) or [`Unsupported`](ErrorKind::Unsupported) if a kernel does not
    /// compile on this device; [`InvalidArgument`](ErrorKind::InvalidArgument) if the program contradicts
    /// itself or its shaders; [`TooLarge`](ErrorKind::TooLarge) for a binding or a grid above the device's
    /// limits; out of memory; device lost.
    pub fn prepare(&self, mut program: Program) -> Result<Executable> {
        check_users();
        for kernel in &mut program.kernels {
            kernel.trusted = false;
        }
        self.prepare_lowered(program)
    }

    /// As [`prepare`](Self::prepare), but the library's kernels run without runtime checks, as they do in plans: for
    /// measurements of programs that were lowered for a profile other than the device's own.
    ///
    /// # Safety
    /// An op of this library lowered the program, for limits that the device has, and nothing in it was changed.
    ///
    /// # Errors
    /// Those of [`prepare`](Self::prepare).
    pub unsafe fn prepare_unchecked(&self, program: Program) -> Result<Executable> {
        self.prepare_lowered(program)
    }

    /// As [`Gpu::prepare`], for a program that an op lowered and nobody changed.
    pub(crate) fn prepare_lowered(&self, program: Program) -> Result<Executable> {
        self.probe()?;
        let pipelines = program.kernels.iter().map(|k| self.pipeline(k)).collect::<Result<Vec<_>>>()?;
        for (i, dispatch) in program.dispatches.iter().enumerate() {
            self.check_dispatch(&program, dispatch, &pipelines)
                .map_err(|e| e.context(&format!("{}: dispatch {i}", program.op)))?;
        }
        let bound = (0..program.operands.len())
            .map(|o| program.dispatches.iter().any(|d| d.bindings.iter().any(|b| b.resource == Resource::Operand(o))))
            .collect();
        let counts = program.dispatches.iter().filter_map(|d| match d.grid {
            Grid::Indirect { resource: Resource::Operand(o), .. } => Some(o),
            _ => None,
        });
        let counts = counts.collect();
        let uniforms = program.dispatches.iter().flat_map(|d| {
            d.bindings.iter().enumerate().filter_map(|(i, b)| match b.resource {
                Resource::Operand(o) if binds_uniform(&pipelines[d.kernel], i) => Some(o),
                _ => None,
            })
        });
        let uniforms = uniforms.collect();
        let stride = u64::from(self.profile().limits.uniform_alignment.max(16));
        let mut bytes: Vec<u8> = Vec::new();
        let mut params_offsets = Vec::with_capacity(program.dispatches.len());
        for dispatch in &program.dispatches {
            params_offsets.push(bytes.len() as u64);
            bytes.extend_from_slice(&dispatch.params);
            bytes.resize(round_up(bytes.len() as u64, stride) as usize, 0);
        }
        let params = if bytes.is_empty() { None } else { Some(self.params(bytes)?) };
        let constants = program.constants.iter().map(|bytes| {
            let mut words = bytes.clone();
            words.resize(bytes.len().max(4).next_multiple_of(4), 0);
            self.create_filled("constant", &words, wgpu::BufferUsages::STORAGE)
        });
        let constants = constants.collect::<Result<_>>()?;
        let groups = Arc::new(Groups::default());
        self.inner.groups.add(&groups);
        Ok(Executable {
            gpu: self.clone(),
            program,
            pipelines,
            params,
            params_offsets,
            constants,
            id: unique(),
            groups,
            bound,
            counts,
            uniforms,
        })
    }
}

fn binds_uniform(pipeline: &CachedPipeline, i: usize) -> bool {
    let found = pipeline.interface.bindings.iter().find(|b| b.index as usize == i + 1);
    found.is_some_and(|b| b.kind == BindingKind::Uniform)
}

impl Executor for Executable {
    type Program = Program;
    type Slice<'a, T: Element> = Slice<'a, T>;
    type RawSlice<'a> = RawSlice<'a>;

    fn program(&self) -> &Program {
        &self.program
    }

    fn op(&self) -> &'static str {
        self.program.op
    }

    fn operands(&self) -> &[Operand] {
        &self.program.operands
    }

    fn untyped<'a, T: Element>(slice: Self::Slice<'a, T>) -> Self::RawSlice<'a> {
        slice.untyped()
    }
}

impl<Enc: Encoder> Sink<Executable> for Recorder<Enc> {
    fn put(&mut self, executable: &Executable, operands: &[RawSlice<'_>]) -> Result<()> {
        executable.record(self, operands)
    }
}

impl Executable {
    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the device that it runs on.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Returns the bindings and workgroup size of each kernel of [`Program::kernels`].
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.pipelines.iter().map(|p| &p.interface)
    }

    /// Records the program with these operands, in the order of [`Program::operands`].
    ///
    /// An operand that cannot be bound where it lies moves through memory of its own: a slice that begins at no
    /// multiple of the device's alignment, and the smaller of two slices of one buffer that lie apart, if one is
    /// written. Each takes a dispatch before the program, and one behind it if it is written; a profile and the log
    /// show them as `move`.
    ///
    /// # Errors
    /// See [`Plan`](crate::Plan). After an error nothing is recorded.
    pub fn record<E: Encoder>(&self, rec: &mut Recorder<E>, operands: &[RawSlice<'_>]) -> Result<()> {
        rec.check_alive()?;
        rec.check_owner(self.program.op, &self.gpu)?;
        let at = match rec.recent.find(self.id, operands) {
            Some(at) => at,
            None => {
                let staged = self.staged(operands)?;
                if !staged.is_empty() {
                    return self.record_staged(rec, operands, &staged);
                }
                let set = self.checked(operands)?;
                rec.keep(operands.iter().map(|o| o.memory));
                rec.recent.add(set)
            }
        };
        if self.program.dispatches.is_empty() {
            return Ok(());
        }
        let profiled = rec.is_profiled();
        if profiled {
            rec.begin_op(|| self.profiled())?;
        }
        self.mark_written(operands);
        for i in 0..self.program.dispatches.len() {
            if profiled {
                rec.next_dispatch();
            }
            self.launch(i, rec.pass(), operands, at);
        }
        rec.recorded(|| self.description(operands));
        if profiled { rec.end_op() } else { Ok(()) }
    }

    fn checked(&self, operands: &[RawSlice<'_>]) -> Result<Arc<GroupSet>> {
        let scratch = (self.program.scratch.iter().enumerate())
            .map(|(slot, &bytes)| self.gpu.scratch(slot, bytes))
            .collect::<Result<Vec<_>>>()?;
        let known = self.known(operands, &scratch);
        if known.is_none() {
            self.check(operands)?;
        }
        // Checked for each recorder: the pool hands out memory again with the same identity.
        self.check_written(operands)?;
        known.map_or_else(|| self.bind_all(operands, scratch), Ok)
    }

    fn description(&self, operands: &[RawSlice<'_>]) -> String {
        let Program { op, dispatches, operands: declared, .. } = &self.program;
        let sizes = described(declared.iter().map(|o| o.name).zip(operands.iter().copied()));
        format!("{op}/{}: {sizes}; dispatches: {}", self.program.variant(), dispatches.len())
    }

    /// Records one dispatch with the bind groups at this place of the recorder.
    fn launch(&self, index: usize, open: OpenPass<'_>, operands: &[RawSlice<'_>], at: usize) {
        let dispatch = &self.program.dispatches[index];
        let (pipeline, OpenPass { pass, bound, recent }) = (&self.pipelines[dispatch.kernel], open);
        let set = recent.set(at);
        if bound.pipeline != pipeline.id {
            pass.set_pipeline(&pipeline.pipeline);
        }
        let now = SetInPass { pipeline: pipeline.id, group: (set.id, index) };
        if *bound != now {
            pass.set_bind_group(0, &set.groups[index], &[]);
            *bound = now;
        }
        match dispatch.grid {
            Grid::Direct([x, y, z]) => pass.dispatch_workgroups(x, y, z),
            Grid::Indirect { resource: Resource::Operand(i), offset } => {
                pass.dispatch_workgroups_indirect(&operands[i].memory.raw.buffer, operands[i].start() + offset);
            }
            Grid::Indirect { resource: Resource::Scratch(i), offset } => {
                pass.dispatch_workgroups_indirect(&set.scratch[i].buffer, offset);
            }
            Grid::Indirect { resource: Resource::Constant(_), .. } => {} // refused when prepared
        }
    }

    /// The profile of the program before it has run.
    fn profiled(&self) -> OpProfile {
        let Program { op, decision, cost, dispatches, .. } = &self.program;
        let alone = dispatches.len() == 1;
        let each = dispatches.iter().map(|d| DispatchProfile {
            kernel: self.program.kernels[d.kernel].label(),
            workgroups: match d.grid {
                Grid::Direct(workgroups) => Some(workgroups),
                Grid::Indirect { .. } => None,
            },
            bound_bytes: d.bindings.iter().map(|b| b.size).sum(),
            cost: alone.then_some(*cost),
            ..DispatchProfile::default()
        });
        OpProfile::new(op, decision.variant, Some(*cost), each.collect())
    }

    fn mark_written(&self, operands: &[RawSlice<'_>]) {
        for (given, want) in operands.iter().zip(&self.program.operands) {
            if want.access != Access::Read {
                given.memory.written.set();
            }
        }
    }
}
