//! A [`Program`] with the resources of a device: pipelines, parameters, bind groups.

use super::pipeline_cache::Pipeline;
use super::pool::{Memory, Raw};
use super::recorder::{Encoder, Recorder};
use super::{Gpu, lock};
use crate::element::DType;
use crate::error::{Result, err};
use crate::program::{Access, Grid, Program, Resource};
use crate::shape::round_up;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

/// A [`Slice`](super::Slice) whose element type is a value.
#[derive(Clone, Copy)]
pub struct RawSlice<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) memory: &'a Arc<Memory>,
    pub(super) dtype: DType,
    pub(super) offset: u64,
    pub(super) len: usize,
}

impl std::fmt::Debug for RawSlice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawSlice<{}>({} elements at byte {})", self.dtype, self.len, self.offset)
    }
}

impl RawSlice<'_> {
    pub(super) fn bytes(&self) -> u64 {
        (self.len * self.dtype.size()) as u64
    }

    /// Whether both lie in one wgpu buffer: usage is tracked per whole buffer.
    pub(super) fn same_buffer(&self, other: &Self) -> bool {
        self.memory.raw.id == other.memory.raw.id || self.memory.raw.buffer == other.memory.raw.buffer
    }

    /// Checks owner, usage and alignment for binding the slice as storage.
    pub(super) fn check_bindable(&self, op: &str, name: &str, gpu: &Gpu) -> Result<()> {
        if self.gpu != gpu {
            return Err(err!(
                Buffer,
                "{op}: {name} lives on another Gpu ({}) than the plan ({}); read it back and upload it there",
                self.gpu.profile().name,
                gpu.profile().name
            ));
        }
        let alignment = u64::from(gpu.profile().limits.storage_alignment);
        if self.offset % alignment != 0 {
            return Err(err!(
                Buffer,
                "{op}: {name} starts at byte {}, which is not a multiple of {alignment}, the alignment of bindings on {}; \
                 slice at multiples of {} elements or copy it",
                self.offset,
                gpu.profile().name,
                alignment as usize / self.dtype.size()
            ));
        }
        Ok(())
    }
}

/// A uniform buffer that holds the parameters of all dispatches of a program.
#[derive(Debug)]
pub(super) struct Params {
    pub(super) buffer: wgpu::Buffer,
}

/// Parameter buffers by content: planning an op again finds its own.
#[derive(Debug, Default)]
pub(super) struct ParamsCache {
    by_bytes: Mutex<HashMap<Vec<u8>, Arc<Params>>>,
}

impl ParamsCache {
    /// Forgets parameters that no plan uses.
    pub(super) fn trim(&self) {
        lock(&self.by_bytes).retain(|_, params| Arc::strong_count(params) > 1);
    }
}

/// Bind groups of one plan, most recently used first.
type Groups = Mutex<Vec<GroupSet>>;

/// Bind groups, one a dispatch, for one choice of buffers that passed all checks.
#[derive(Debug)]
struct GroupSet {
    operands: Vec<Place>,
    scratch: Vec<Raw>,
    groups: Vec<wgpu::BindGroup>,
}

/// What decides whether an operand passes the checks, and what is bound: a buffer's identity belongs to
/// one `Gpu`.
type Place = (u64, u64, usize, DType);

impl RawSlice<'_> {
    fn place(&self) -> Place {
        (self.memory.raw.id, self.offset, self.len, self.dtype)
    }
}

/// All plans' bind groups, so that [`Gpu::trim`] can drop them: they keep memory alive.
#[derive(Debug, Default)]
pub(super) struct GroupRegistry {
    plans: Mutex<Vec<Weak<Groups>>>,
}

impl GroupRegistry {
    fn add(&self, groups: &Arc<Groups>) {
        let mut plans = lock(&self.plans);
        if plans.len() == plans.capacity() {
            plans.retain(|p| p.strong_count() > 0);
        }
        plans.push(Arc::downgrade(groups));
    }

    pub(super) fn clear(&self) {
        for plan in lock(&self.plans).iter().filter_map(Weak::upgrade) {
            lock(&plan).clear();
        }
    }
}

/// Choices of buffers whose bind groups a plan remembers.
const REMEMBERED: usize = 8;

/// A program made ready for a device. Untyped; [`Plan`](crate::Plan) is the typed form.
#[derive(Debug)]
pub struct Executable {
    gpu: Gpu,
    program: Program,
    pipelines: Vec<Arc<Pipeline>>,
    params: Option<Arc<Params>>,
    params_offsets: Vec<u64>,
    groups: Arc<Groups>,
}

impl Gpu {
    /// Makes `program` ready: pipelines built or found, parameters uploaded.
    ///
    /// # Errors
    /// [`Shader`](crate::ErrorKind::Shader) or [`Unsupported`](crate::ErrorKind::Unsupported) if a
    /// kernel does not compile here; out of memory; device lost.
    pub fn prepare(&self, program: Program) -> Result<Executable> {
        self.alive()?;
        let pipelines = program.kernels.iter().map(|k| self.pipeline(k)).collect::<Result<Vec<_>>>()?;
        let stride = u64::from(self.profile().limits.uniform_alignment.max(16));
        let mut bytes: Vec<u8> = Vec::new();
        let mut params_offsets = Vec::with_capacity(program.dispatches.len());
        for dispatch in &program.dispatches {
            params_offsets.push(bytes.len() as u64);
            bytes.extend_from_slice(&dispatch.params);
            bytes.resize(round_up(bytes.len() as u64, stride) as usize, 0);
        }
        let params = if bytes.is_empty() { None } else { Some(self.params(bytes)?) };
        let groups = Arc::new(Groups::default());
        self.inner.groups.add(&groups);
        Ok(Executable { gpu: self.clone(), program, pipelines, params, params_offsets, groups })
    }

    /// The uniform buffer with these bytes.
    pub(super) fn params(&self, bytes: Vec<u8>) -> Result<Arc<Params>> {
        /// Distinct parameter blocks after which those that no plan uses are dropped.
        const KEEP: usize = 1024;
        let mut cache = lock(&self.inner.params.by_bytes);
        if let Some(params) = cache.get(&bytes) {
            return Ok(params.clone());
        }
        if cache.len() >= KEEP {
            cache.retain(|_, params| Arc::strong_count(params) > 1);
        }
        let raw =
            self.create_raw("tilework params", bytes.len() as u64, wgpu::BufferUsages::UNIFORM, true)?;
        {
            let mut view = raw
                .buffer
                .slice(..)
                .get_mapped_range_mut()
                .map_err(|e| err!(DeviceLost, "parameters: {e}"))?;
            view.slice(..).copy_from_slice(&bytes);
        }
        raw.buffer.unmap();
        let params = Arc::new(Params { buffer: raw.buffer });
        cache.insert(bytes, params.clone());
        Ok(params)
    }
}

impl Executable {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The device it is ready for.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Records the program with these operands, in the order of [`Program::operands`].
    ///
    /// # Errors
    /// See [`Plan`](crate::Plan). Nothing is recorded then.
    pub fn record<E: Encoder>(&self, rec: &mut Recorder<E>, operands: &[RawSlice<'_>]) -> Result<()> {
        self.gpu.alive()?;
        rec.check_owner(self.program.op, &self.gpu)?;
        let scratch = (self.program.scratch.iter().enumerate())
            .map(|(slot, &bytes)| self.gpu.scratch(slot, bytes))
            .collect::<Result<Vec<_>>>()?;
        // Held while recording: what is in the list has passed the checks, and is used in place.
        let mut sets = lock(&self.groups);
        let known = sets.iter().position(|set| {
            set.operands.len() == operands.len()
                && set.operands.iter().zip(operands).all(|(place, o)| *place == o.place())
                && set.scratch.iter().zip(&scratch).all(|(a, b)| a.id == b.id)
        });
        match known {
            Some(0) => {}
            Some(i) => sets[..=i].rotate_right(1),
            None => {
                self.check(operands)?;
                let groups = self.bind_all(operands, &scratch)?;
                sets.truncate(REMEMBERED - 1);
                let operands = operands.iter().map(RawSlice::place).collect();
                sets.insert(0, GroupSet { operands, scratch, groups });
            }
        }
        let set = &sets[0];
        if self.program.dispatches.is_empty() {
            return Ok(());
        }
        for operand in operands {
            rec.keep(operand.memory);
        }
        let (pass, last) = rec.pass();
        for (dispatch, group) in self.program.dispatches.iter().zip(&set.groups) {
            let pipeline = &self.pipelines[dispatch.kernel];
            if *last != pipeline.id {
                pass.set_pipeline(&pipeline.pipeline);
                *last = pipeline.id;
            }
            pass.set_bind_group(0, group, &[]);
            match dispatch.grid {
                Grid::Direct([x, y, z]) => pass.dispatch_workgroups(x, y, z),
                Grid::Indirect { resource: Resource::Operand(i), offset } => {
                    pass.dispatch_workgroups_indirect(
                        &operands[i].memory.raw.buffer,
                        operands[i].offset + offset,
                    );
                }
                Grid::Indirect { resource: Resource::Scratch(i), offset } => {
                    pass.dispatch_workgroups_indirect(&set.scratch[i].buffer, offset);
                }
            }
        }
        Ok(())
    }

    fn check(&self, operands: &[RawSlice<'_>]) -> Result<()> {
        let op = self.program.op;
        let wanted = &self.program.operands;
        if operands.len() != wanted.len() {
            return Err(err!(Shape, "{op}: {} operands given, {} wanted", operands.len(), wanted.len()));
        }
        for (given, want) in operands.iter().zip(wanted) {
            let name = want.name;
            if given.dtype != want.dtype {
                return Err(err!(
                    Shape,
                    "{op}: {name} holds {}, the plan is for {}",
                    given.dtype,
                    want.dtype
                ));
            }
            if given.len != want.len {
                return Err(err!(
                    Shape,
                    "{op}: {name} has {} elements, the plan is for {}; slice the buffer or plan again",
                    given.len,
                    want.len
                ));
            }
            given.check_bindable(op, name, &self.gpu)?;
            if given.offset + round_up(given.bytes(), 4) > given.memory.raw.size {
                return Err(err!(
                    Buffer,
                    "{op}: {name} ends within a 4-byte word at the end of its buffer of {} bytes; make the buffer larger",
                    given.memory.raw.size
                ));
            }
        }
        for (i, (a, want_a)) in operands.iter().zip(wanted).enumerate() {
            for (b, want_b) in operands.iter().zip(wanted).skip(i + 1) {
                let written = want_a.access != Access::Read || want_b.access != Access::Read;
                if written && a.same_buffer(b) && a.len > 0 && b.len > 0 {
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

    /// Makes the bind groups of all dispatches, in one error scope.
    fn bind_all(&self, operands: &[RawSlice<'_>], scratch: &[Raw]) -> Result<Vec<wgpu::BindGroup>> {
        self.gpu.scoped(&format!("{}: binding buffers", self.program.op), || {
            (0..self.program.dispatches.len()).map(|i| self.bind(i, operands, scratch)).collect()
        })
    }

    fn bind(&self, index: usize, operands: &[RawSlice<'_>], scratch: &[Raw]) -> wgpu::BindGroup {
        let dispatch = &self.program.dispatches[index];
        let pipeline = &self.pipelines[dispatch.kernel];
        let range =
            |buffer, offset, size| wgpu::BufferBinding { buffer, offset, size: std::num::NonZero::new(size) };
        let params = self.params.iter().filter(|_| !dispatch.params.is_empty()).map(|p| {
            let size = round_up(dispatch.params.len() as u64, 16);
            (0, range(&p.buffer, self.params_offsets[index], size))
        });
        let buffers = dispatch.bindings.iter().enumerate().map(|(i, b)| {
            let (raw, base) = match b.resource {
                Resource::Operand(o) => (&operands[o].memory.raw, operands[o].offset),
                Resource::Scratch(s) => (&scratch[s], 0),
            };
            (i as u32 + 1, range(&raw.buffer, base + b.offset, round_up(b.size, 4).max(4)))
        });
        let entries: Vec<_> = params
            .chain(buffers)
            .map(|(binding, b)| wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(b) })
            .collect();
        self.gpu.inner.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.layout,
            entries: &entries,
        })
    }
}
