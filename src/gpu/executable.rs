//! A [`Program`] with the resources of a device: pipelines, parameters, bind groups.

use super::pipeline_cache::Pipeline;
use super::pool::{Memory, Raw};
use super::profile::{DispatchProfile, OpProfile};
use super::recorder::{Encoder, Recorder};
use super::{Buffer, Gpu, Slice, lock};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::{Access, Dispatch, Executor, Grid, Operand, Program, Resource, Sink, Use, check_read};
use crate::shader::{BindingKind, Interface};
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
    /// Whether its last 4-byte word is its own. Our kernels leave the rest of it; an own kernel may not.
    pub(super) whole_words: bool,
}

impl std::fmt::Debug for RawSlice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawSlice<{}>({} elements at byte {})", self.dtype, self.len, self.offset)
    }
}

impl<'a> RawSlice<'a> {
    /// The slice as what an op calls `name`.
    pub(super) fn used(&self, name: &'a str, access: Access) -> Use<'a> {
        Use { name, access, written: &self.memory.written, dtype: self.dtype, len: self.len }
    }

    /// Words of memory as `len` elements of a type.
    pub(crate) fn of_words(words: &'a Buffer<u32>, dtype: DType, len: usize) -> Self {
        let whole = Slice::from(words).untyped();
        Self { dtype, len: len.min(words.len() * 4 / dtype.size()), ..whole }
    }
}

impl RawSlice<'_> {
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.len * self.dtype.size()) as u64
    }

    /// Byte offset that is bound. What has no elements may lie anywhere.
    pub(super) fn start(&self) -> u64 {
        if self.len == 0 { 0 } else { self.offset }
    }

    /// Refuses a slice to be written whose last word a neighbour shares.
    pub(super) fn check_writable(&self, op: &str, name: &str) -> Result<()> {
        if self.whole_words {
            return Ok(());
        }
        Err(err!(
            Buffer,
            "{op}: {name}, {} elements of {}, is written and shares its last 4-byte word with the elements behind it; \
             end the slice at a multiple of {} elements or at the end of the buffer",
            self.len,
            self.dtype,
            4 / self.dtype.size()
        ))
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
        if !self.start().is_multiple_of(alignment) {
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

/// Refuses to read memory that nothing was written to.
pub(super) fn check_written(op: &str, uses: &[Use<'_>]) -> Result<()> {
    check_read(op, uses, "alloc_zeroed")
}

/// A uniform buffer that holds the parameters of all dispatches of a program.
#[derive(Debug)]
pub(super) struct Params {
    pub(super) raw: Raw,
}

/// Parameter buffers by content: planning an op again finds its own.
#[derive(Debug, Default)]
pub(super) struct ParamsCache {
    by_bytes: Mutex<HashMap<Vec<u8>, Arc<Params>>>,
}

impl ParamsCache {
    /// Forgets parameters that no plan uses.
    pub(super) fn trim(&self) {
        let unused = Self::unused(&mut lock(&self.by_bytes));
        drop(unused);
    }

    /// Takes out parameters that no plan uses.
    fn unused(by_bytes: &mut HashMap<Vec<u8>, Arc<Params>>) -> Vec<Arc<Params>> {
        let unused = by_bytes.extract_if(|_, params| Arc::strong_count(params) == 1);
        unused.map(|(_, params)| params).collect()
    }
}

/// Bind groups of one plan, most recently used first.
type Groups = Mutex<Vec<Arc<GroupSet>>>;

/// Bind groups, one a dispatch, for one choice of buffers that passed all checks.
#[derive(Debug)]
struct GroupSet {
    operands: Vec<Place>,
    scratch: Vec<Raw>,
    groups: Vec<wgpu::BindGroup>,
}

/// What decides whether an operand passes the checks, and what is bound.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// A buffer's identity belongs to one `Gpu`.
    buffer: u64,
    start: u64,
    len: usize,
    dtype: DType,
}

impl RawSlice<'_> {
    fn place(&self) -> Place {
        Place { buffer: self.memory.raw.id, start: self.start(), len: self.len, dtype: self.dtype }
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
        for plan in self.plans() {
            let sets = std::mem::take(&mut *lock(&plan));
            drop(sets);
        }
    }

    fn plans(&self) -> Vec<Arc<Groups>> {
        lock(&self.plans).iter().filter_map(Weak::upgrade).collect()
    }

    /// Drops the bind groups that keep the buffer with this identity alive.
    pub(super) fn forget(&self, id: u64) {
        let uses = |set: &mut Arc<GroupSet>| set.operands.iter().any(|place| place.buffer == id);
        for plan in self.plans() {
            let gone: Vec<_> = lock(&plan).extract_if(.., uses).collect();
            drop(gone);
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
    constants: Vec<Raw>,
    groups: Arc<Groups>,
    /// Whether some dispatch binds the operand.
    bound: Vec<bool>,
    /// Operands that counts of workgroups are taken from.
    counts: Vec<usize>,
}

impl Gpu {
    /// Makes a program ready that was written by hand, or lowered and changed: pipelines built or found,
    /// parameters uploaded.
    ///
    /// Nobody has proven its indices, so all its kernels run with runtime checks, those of the library
    /// too. [`Plannable::plan`](crate::Plannable::plan) is the way to their full speed.
    ///
    /// # Errors
    /// [`Shader`](crate::ErrorKind::Shader) or [`Unsupported`](crate::ErrorKind::Unsupported) if a
    /// kernel does not compile here; [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the program
    /// contradicts itself or its shaders; [`TooLarge`](crate::ErrorKind::TooLarge) for a binding or a grid
    /// above the device's limits; out of memory; device lost.
    pub fn prepare(&self, mut program: Program) -> Result<Executable> {
        for kernel in &mut program.kernels {
            kernel.trusted = false;
        }
        self.prepare_lowered(program)
    }

    /// As [`Gpu::prepare`], for a program as an op lowered it.
    pub(crate) fn prepare_lowered(&self, program: Program) -> Result<Executable> {
        self.probe()?;
        let pipelines = program.kernels.iter().map(|k| self.pipeline(k)).collect::<Result<Vec<_>>>()?;
        for (i, dispatch) in program.dispatches.iter().enumerate() {
            self.check_dispatch(&program, dispatch, &pipelines)
                .map_err(|e| e.context(&format!("{}: dispatch {i}", program.op)))?;
        }
        let bound = (0..program.operands.len())
            .map(|o| {
                program
                    .dispatches
                    .iter()
                    .any(|d| d.bindings.iter().any(|b| b.resource == Resource::Operand(o)))
            })
            .collect();
        let counts = program.dispatches.iter().filter_map(|d| match d.grid {
            Grid::Indirect { resource: Resource::Operand(o), .. } => Some(o),
            _ => None,
        });
        let counts = counts.collect();
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
            groups,
            bound,
            counts,
        })
    }

    /// Holds a dispatch against its shader, its program and the limits, so that recording it cannot fail
    /// inside wgpu, where the error would surface in a caller's encoder.
    fn check_dispatch(
        &self,
        program: &Program,
        dispatch: &Dispatch,
        pipelines: &[Arc<Pipeline>],
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
                "{given} bindings are given (from {} on) and {kernel} wants {}",
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
        // Bytes that are there to be bound.
        let there = |resource| match resource {
            Resource::Operand(o) => {
                program.operands.get(o).map(|o| o.bytes().max(4).saturating_add(3) / 4 * 4)
            }
            Resource::Scratch(s) => {
                program.scratch.get(s).map(|bytes| bytes.max(&4).saturating_add(3) / 4 * 4)
            }
            Resource::Constant(c) => {
                program.constants.get(c).map(|bytes| bytes.len().max(4).next_multiple_of(4) as u64)
            }
        };
        for (b, w) in dispatch.bindings.iter().zip(storage) {
            let (name, size) = (&w.name, b.size.max(4).saturating_add(3) / 4 * 4);
            if size > limits.max_storage_binding {
                return Err(err!(
                    TooLarge,
                    "{name} of {kernel} binds {size} bytes; the largest binding of {} has {}; work in pieces",
                    self.profile().name,
                    limits.max_storage_binding
                ));
            }
            let fits = there(b.resource)
                .is_some_and(|bytes| b.offset.checked_add(size).is_some_and(|end| end <= bytes));
            let aligned = b.offset % u64::from(limits.storage_alignment) == 0;
            if !fits || !aligned || size < w.min_size || w.kind == BindingKind::Uniform {
                return Err(err!(
                    InvalidArgument,
                    "{name} of {kernel} binds {size} bytes at {} of {:?} ({:?} bytes); it is {:?} of at least {} bytes, at \
                     multiples of {}",
                    b.offset,
                    b.resource,
                    there(b.resource).unwrap_or(0),
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
            if w.kind == BindingKind::Read && writes(b.resource) {
                return Err(err!(
                    InvalidArgument,
                    "{kernel} reads {} from {:?} and writes to the same; use two buffers",
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
                        "{kernel} takes {workgroups:?} workgroups; the most of {} along each dimension are {limit}; work in \
                         pieces",
                        self.profile().name
                    ));
                }
            }
            Grid::Indirect { resource: Resource::Constant(c), .. } => {
                return Err(err!(
                    InvalidArgument,
                    "the counts of {kernel} are constant {c}; take Grid::Direct for what is known when planned"
                ));
            }
            Grid::Indirect { resource, offset } => {
                let fits = there(resource)
                    .is_some_and(|bytes| offset.checked_add(12).is_some_and(|end| end <= bytes));
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

    /// The uniform buffer with these bytes.
    pub(super) fn params(&self, bytes: Vec<u8>) -> Result<Arc<Params>> {
        /// Distinct parameter blocks after which those that no plan uses are dropped.
        const KEEP: usize = 1024;
        let unused = {
            let mut cache = lock(&self.inner.params.by_bytes);
            if let Some(params) = cache.get(&bytes) {
                return Ok(params.clone());
            }
            if cache.len() >= KEEP { ParamsCache::unused(&mut cache) } else { Vec::new() }
        };
        drop(unused);
        let raw = self.create_filled("params", &bytes, wgpu::BufferUsages::UNIFORM)?;
        let params = Arc::new(Params { raw });
        // Another thread may have been faster.
        let kept = lock(&self.inner.params.by_bytes).entry(bytes).or_insert_with(|| params.clone()).clone();
        Ok(kept)
    }

    /// A buffer that holds these bytes, a multiple of 4 of them, from the start.
    fn create_filled(&self, label: &str, bytes: &[u8], usage: wgpu::BufferUsages) -> Result<Raw> {
        let raw = self.create_raw(label, bytes.len() as u64, usage, true)?;
        self.scoped("writing parameters", || {
            let mut view = raw
                .buffer
                .slice(..)
                .get_mapped_range_mut()
                .map_err(|e| err!(DeviceLost, "parameters: {e}"))?;
            view.slice(..).copy_from_slice(bytes);
            drop(view);
            raw.buffer.unmap();
            Ok(())
        })??;
        Ok(raw)
    }
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
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The device it is ready for.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// What each of [`Program::kernels`] binds, and what its workgroups take.
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.pipelines.iter().map(|p| &p.interface)
    }

    /// Records the program with these operands, in the order of [`Program::operands`].
    ///
    /// # Errors
    /// See [`Plan`](crate::Plan). Nothing is recorded then.
    pub fn record<E: Encoder>(&self, rec: &mut Recorder<E>, operands: &[RawSlice<'_>]) -> Result<()> {
        rec.check_alive()?;
        rec.check_owner(self.program.op, &self.gpu)?;
        let scratch = (self.program.scratch.iter().enumerate())
            .map(|(slot, &bytes)| self.gpu.scratch(slot, bytes))
            .collect::<Result<Vec<_>>>()?;
        let known = self.known(operands, &scratch);
        if known.is_none() {
            self.check(operands)?;
        }
        // Each time: the pool hands memory out again under the identity that it had.
        self.check_written(operands)?;
        let set = match known {
            Some(set) => set,
            None => {
                let groups = self.bind_all(operands, &scratch)?;
                let operands = operands.iter().map(RawSlice::place).collect();
                let set = Arc::new(GroupSet { operands, scratch, groups });
                self.remember(&set);
                set
            }
        };
        if self.program.dispatches.is_empty() {
            return Ok(());
        }
        let (op, variant, on) = (self.program.op, self.program.variant(), self.gpu.profile());
        log::debug!(target: "tilework", "{op}/{variant} on {} ({})", on.name, on.backend);
        rec.keep(operands.iter().map(|o| o.memory));
        let profiled = rec.is_profiled();
        if profiled {
            rec.begin_op(|| self.profiled())?;
        }
        self.mark_written(operands);
        if profiled {
            for i in 0..self.program.dispatches.len() {
                rec.next_dispatch();
                self.launch(i, rec.pass(), operands, &set);
            }
            return rec.end_op();
        }
        let (pass, last) = rec.pass();
        for i in 0..self.program.dispatches.len() {
            self.launch(i, (pass, last), operands, &set);
        }
        Ok(())
    }

    /// The bind groups of these buffers, if they have passed the checks before.
    fn known(&self, operands: &[RawSlice<'_>], scratch: &[Raw]) -> Option<Arc<GroupSet>> {
        let mut sets = lock(&self.groups);
        let at = sets.iter().position(|set| {
            set.operands.len() == operands.len()
                && set.operands.iter().zip(operands).all(|(place, o)| *place == o.place())
                && set.scratch.iter().zip(scratch).all(|(a, b)| a.id == b.id)
        })?;
        sets[..=at].rotate_right(1);
        sets.first().cloned()
    }

    /// Puts bind groups before those that are remembered.
    fn remember(&self, set: &Arc<GroupSet>) {
        let mut sets = lock(&self.groups);
        let keep = sets.len().min(REMEMBERED - 1);
        let old = sets.split_off(keep);
        sets.insert(0, set.clone());
        drop(sets);
        drop(old);
    }

    /// Records one dispatch.
    fn launch(
        &self,
        index: usize,
        (pass, last): (&mut wgpu::ComputePass<'static>, &mut u64),
        operands: &[RawSlice<'_>],
        set: &GroupSet,
    ) {
        let dispatch = &self.program.dispatches[index];
        let pipeline = &self.pipelines[dispatch.kernel];
        if *last != pipeline.id {
            pass.set_pipeline(&pipeline.pipeline);
            *last = pipeline.id;
        }
        pass.set_bind_group(0, &set.groups[index], &[]);
        match dispatch.grid {
            Grid::Direct([x, y, z]) => pass.dispatch_workgroups(x, y, z),
            Grid::Indirect { resource: Resource::Operand(i), offset } => {
                pass.dispatch_workgroups_indirect(
                    &operands[i].memory.raw.buffer,
                    operands[i].start() + offset,
                );
            }
            Grid::Indirect { resource: Resource::Scratch(i), offset } => {
                pass.dispatch_workgroups_indirect(&set.scratch[i].buffer, offset);
            }
            Grid::Indirect { resource: Resource::Constant(_), .. } => {} // refused when prepared
        }
    }

    /// What a profile says of the program before it has run.
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

    fn check(&self, operands: &[RawSlice<'_>]) -> Result<()> {
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
                // Operands of no elements matter only where they are bound nevertheless.
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

    /// Refuses operands that are only read and hold nothing yet.
    fn check_written(&self, operands: &[RawSlice<'_>]) -> Result<()> {
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

    fn mark_written(&self, operands: &[RawSlice<'_>]) {
        for (given, want) in operands.iter().zip(&self.program.operands) {
            if want.access != Access::Read {
                given.memory.written.set();
            }
        }
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
            (0, range(&p.raw.buffer, self.params_offsets[index], size))
        });
        let buffers = dispatch.bindings.iter().enumerate().map(|(i, b)| {
            let (raw, base) = match b.resource {
                Resource::Operand(o) => (&operands[o].memory.raw, operands[o].start()),
                Resource::Scratch(s) => (&scratch[s], 0),
                Resource::Constant(c) => (&self.constants[c], 0),
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
