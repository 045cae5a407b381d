//! Recording work into an encoder: our own, or the caller's.

use super::executable::RecentSets;
use super::pool::Memory;
use super::profile::{OpProfile, Profiler};
use super::raw_slice::check_written;
use super::timer::PassClock;
use super::transfer::word_error;
use super::{Buffer, Gpu, RawSlice, Slice, lock};
use crate::program::fill;
use crate::program::prelude::*;
use std::sync::{Arc, Mutex};

mod sealed {
    pub trait Sealed {}
    impl Sealed for wgpu::CommandEncoder {}
    impl Sealed for &mut wgpu::CommandEncoder {}
}

/// The encoder of a [`Recorder`]: its own, or the caller's by reference.
pub trait Encoder: sealed::Sealed {
    #[doc(hidden)]
    const IS_OWN: bool;

    #[doc(hidden)]
    fn encoder(&mut self) -> &mut wgpu::CommandEncoder;
}

impl Encoder for wgpu::CommandEncoder {
    const IS_OWN: bool = true;

    fn encoder(&mut self) -> &mut wgpu::CommandEncoder {
        self
    }
}

impl Encoder for &mut wgpu::CommandEncoder {
    const IS_OWN: bool = false;

    fn encoder(&mut self) -> &mut wgpu::CommandEncoder {
        self
    }
}

/// Memory that must not be reused before the work is submitted. The caller's encoder shares it, because it may be
/// submitted long after its recorder is gone.
pub(super) type KeptMemory = Arc<KeptOperands>;

#[derive(Debug)]
pub(super) struct KeptOperands {
    memory: Mutex<Vec<Arc<Memory>>>,
    /// Parameters, scratch and constants are not in the list, and are destroyed when nobody has them.
    #[cfg(target_arch = "wasm32")]
    _recording: super::memory::Recording,
}

impl KeptOperands {
    #[cfg_attr(not(target_arch = "wasm32"), allow(unused_variables, reason = "one form for all systems"))]
    fn new(gpu: &Gpu) -> KeptMemory {
        Arc::new(Self {
            memory: Mutex::default(),
            #[cfg(target_arch = "wasm32")]
            _recording: gpu.inner.meter.recording(),
        })
    }
}

/// Timestamps on the passes of a recorder.
#[derive(Debug)]
pub(super) enum PassStamps {
    /// Runs of many passes.
    Runs(PassClock),
    /// A pass for each dispatch.
    Ops(Box<Profiler>),
}

impl PassStamps {
    /// Timestamps for the pass that is opened now.
    fn next(&mut self) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        match self {
            Self::Runs(clock) => clock.next(),
            Self::Ops(profiler) => profiler.next(),
        }
    }
}

/// Work of a recorder's own encoder that was not submitted. Dropping it warns, because the work never runs.
#[derive(Debug, Default)]
struct UnsubmittedWork {
    ops: usize,
}

impl Drop for UnsubmittedWork {
    fn drop(&mut self) {
        if self.ops > 0 {
            log::warn!(
                target: "tilework",
                "a recorder was dropped with {} recorded ops, which never run; call submit() to run them",
                self.ops
            );
        }
    }
}

/// Collects work: many ops, one compute pass, one submission.
///
/// An op sees the results of the ops recorded before it. Nothing runs before [`submit`](Recorder::submit) (or, in
/// the caller's encoder, before the caller submits it). Dropping a recorder with an encoder of its own discards the
/// work, and warns in the log.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.upload(&[1.0f32; 3])?);
/// let total = gpu.alloc::<f32>(1)?;
/// let axpy = Axpy::new(3, 2.0).plan::<f32>(&gpu)?;
/// let sum = Reduce::new(Sum, 3).plan::<f32>(&gpu)?;
///
/// let mut rec = gpu.recorder();
/// axpy.record(&mut rec, &x, &y)?; // y = 2 x + y
/// sum.record(&mut rec, &y, &total)?;
/// rec.submit()?;
/// assert_eq!(total.read()?, [15.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[must_use = "recorded work runs once the recorder is submitted or finished"]
pub struct Recorder<E: Encoder = wgpu::CommandEncoder> {
    // Declared before the encoder: an open pass must end before its encoder does.
    pass: Option<wgpu::ComputePass<'static>>,
    encoder: E,
    gpu: Gpu,
    keep: KeptMemory,
    bound: SetInPass,
    pub(super) recent: RecentSets,
    clock: Option<PassStamps>,
    unsubmitted: UnsubmittedWork,
}

/// The pipeline and the bind group that the open pass has; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SetInPass {
    pub(super) pipeline: u64,
    /// The set of bind groups, and the dispatch.
    pub(super) group: (u64, usize),
}

pub(super) struct OpenPass<'r> {
    pub(super) pass: &'r mut wgpu::ComputePass<'static>,
    pub(super) bound: &'r mut SetInPass,
    pub(super) recent: &'r RecentSets,
}

impl<E: Encoder> std::fmt::Debug for Recorder<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recorder({:?})", self.gpu)
    }
}

impl Gpu {
    /// Creates a recorder with an encoder of its own.
    pub fn recorder(&self) -> Recorder {
        self.record_into(self.encoder(), None)
    }

    /// Creates a recorder into the caller's encoder. Call [`Recorder::finish`], then submit the encoder. An op that
    /// returns an error leaves the encoder as it was.
    ///
    /// The encoder must belong to the same device and have no open pass. tilework cannot check either: wgpu makes
    /// such an encoder invalid and reports that to the device's error handler, which is the caller's (by default it
    /// panics).
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// # use tilework::prelude::*;
    /// # let gpu = Gpu::new()?;
    /// # let (device, queue) = (gpu.device().clone(), gpu.queue().clone());
    /// let x = gpu.upload(&[3.0f32, 4.0])?;
    /// let total = gpu.alloc::<f32>(1)?;
    /// let mut encoder = device.create_command_encoder(&Default::default());
    /// let mut rec = gpu.recorder_in(&mut encoder);
    /// Reduce::new(Sum, 2).plan::<f32>(&gpu)?.record(&mut rec, &x, &total)?;
    /// rec.finish();
    /// queue.submit([encoder.finish()]);
    /// assert_eq!(total.read()?, [7.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn recorder_in<'e>(&self, encoder: &'e mut wgpu::CommandEncoder) -> Recorder<&'e mut wgpu::CommandEncoder> {
        let rec = self.record_into(encoder, None);
        let keep = rec.keep.clone();
        // Runs when the work is done, and is dropped with an encoder that is never submitted.
        rec.encoder.on_submitted_work_done(move || drop(keep));
        rec
    }

    pub(super) fn record_into<E: Encoder>(&self, encoder: E, clock: Option<PassStamps>) -> Recorder<E> {
        Recorder {
            pass: None,
            encoder,
            gpu: self.clone(),
            keep: KeptOperands::new(self),
            bound: SetInPass::default(),
            recent: RecentSets::default(),
            clock,
            unsubmitted: UnsubmittedWork::default(),
        }
    }

    /// An encoder of our own. On a lost device it is invalid.
    pub(super) fn encoder(&self) -> wgpu::CommandEncoder {
        let desc = wgpu::CommandEncoderDescriptor { label: Some("tilework") };
        let scopes = [wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal]
            .map(|filter| self.inner.device.push_error_scope(filter));
        let encoder = self.inner.device.create_command_encoder(&desc);
        for scope in scopes.into_iter().rev() {
            // Submitting an invalid encoder reports the error.
            drop(scope.pop());
        }
        encoder
    }
}

impl<E: Encoder> Recorder<E> {
    /// Returns an error if the device is known to be lost. It probes once per pass; in between, submitting finds
    /// the loss.
    pub(super) fn check_alive(&self) -> Result<()> {
        if self.pass.is_none() { self.gpu.probe() } else { self.gpu.alive() }
    }

    pub(super) fn check_owner(&self, op: &str, gpu: &Gpu) -> Result<()> {
        if self.gpu == *gpu {
            return Ok(());
        }
        Err(err!(
            Buffer,
            "{op}: the recorder belongs to another Gpu ({}) than the plan or buffer ({}); use one Gpu for all",
            self.gpu.profile().name,
            gpu.profile().name
        ))
    }

    pub(super) fn pass(&mut self) -> OpenPass<'_> {
        let pass = self.pass.get_or_insert_with(|| {
            self.bound = SetInPass::default();
            let timestamp_writes = self.clock.as_mut().and_then(PassStamps::next);
            let desc = wgpu::ComputePassDescriptor { label: Some("tilework"), timestamp_writes };
            self.encoder.encoder().begin_compute_pass(&desc).forget_lifetime()
        });
        OpenPass { pass, bound: &mut self.bound, recent: &self.recent }
    }

    /// Ends the open pass, so that the next op starts another.
    pub(super) fn end_pass(&mut self) {
        self.pass = None;
    }

    pub(super) fn keep<'m>(&mut self, memory: impl Iterator<Item = &'m Arc<Memory>>) {
        let mut keep = lock(&self.keep.memory);
        for memory in memory {
            // Most programs use the same few buffers again and again.
            if !keep.iter().rev().take(4).any(|kept| Arc::ptr_eq(kept, memory)) {
                keep.push(memory.clone());
            }
        }
    }

    /// Counts what was recorded, and logs it.
    pub(super) fn recorded(&mut self, what: impl FnOnce() -> String) {
        self.unsubmitted.ops += usize::from(E::IS_OWN);
        if log::log_enabled!(target: "tilework", log::Level::Trace) {
            let on = self.gpu.profile();
            log::trace!(target: "tilework", "{} on {} ({})", what(), on.name, on.backend);
        }
    }

    fn outside_passes(&mut self) -> &mut wgpu::CommandEncoder {
        // A copy has no timestamps, so empty passes before and after it take them.
        let empty_pass = match &mut self.clock {
            Some(PassStamps::Runs(clock)) => !clock.running(),
            Some(PassStamps::Ops(profiler)) => profiler.before_command(),
            None => false,
        };
        if empty_pass {
            self.pass();
        }
        self.end_pass();
        if let Some(PassStamps::Runs(clock)) = &mut self.clock {
            clock.unstamped = true;
        }
        self.encoder.encoder()
    }

    pub(super) fn end_run(&mut self) {
        if matches!(&self.clock, Some(PassStamps::Runs(clock)) if clock.unstamped) {
            self.pass();
        }
        self.end_pass();
        if let Some(PassStamps::Runs(clock)) = &mut self.clock {
            clock.end_run();
        }
    }

    /// Whether each dispatch needs a pass of its own: see [`begin_op`](Self::begin_op).
    pub(super) fn is_profiled(&self) -> bool {
        matches!(self.clock, Some(PassStamps::Ops(_)))
    }

    /// Begins an op of a profile, with all its dispatches. On a device with timestamps, this is the only step of
    /// profiling that can fail.
    pub(super) fn begin_op(&mut self, op: impl FnOnce() -> OpProfile) -> Result<()> {
        match &mut self.clock {
            Some(PassStamps::Ops(profiler)) => profiler.begin(&self.gpu, op()),
            _ => Ok(()),
        }
    }

    /// Makes the next dispatch of a profiled op begin a pass.
    pub(super) fn next_dispatch(&mut self) {
        self.end_pass();
        if let Some(PassStamps::Ops(profiler)) = &mut self.clock {
            profiler.next_dispatch();
        }
    }

    pub(super) fn end_op(&mut self) -> Result<()> {
        let Some(PassStamps::Ops(profiler)) = &mut self.clock else { return Ok(()) };
        let empty_pass = profiler.after_command();
        self.end_pass();
        if empty_pass {
            self.pass();
            self.end_pass();
        }
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(PassStamps::Ops(profiler)) = &mut self.clock
            && profiler.is_wall()
        {
            let encoder = std::mem::replace(self.encoder.encoder(), self.gpu.encoder());
            self.unsubmitted.ops = 0;
            profiler.run(&self.gpu, encoder)?;
        }
        Ok(())
    }

    fn begin_command(&mut self, name: &'static str, bytes: u64) -> Result<()> {
        let cost = Cost { flop: 0.0, bytes: bytes as f64 };
        self.begin_op(|| OpProfile::new(name, "", Some(cost), Vec::new()))
    }

    /// Records a copy between device buffers.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the lengths differ; [`Aliasing`](ErrorKind::Aliasing) if both
    /// lie in one buffer; [`Buffer`](ErrorKind::Buffer) if a usage is missing, a slice shares a 4-byte word
    /// with its neighbours, a buffer belongs to another `Gpu`, or the source was never written.
    pub fn copy<'a, T: Element>(&mut self, from: impl Into<Slice<'a, T>>, to: impl Into<Slice<'a, T>>) -> Result<()> {
        let (from, to) = (from.into(), to.into());
        self.gpu.probe()?;
        if from.len() != to.len() {
            return Err(err!(Shape, "copy: {} elements into {}", from.len(), to.len()));
        }
        self.check_owner("copy", &from.buffer.gpu)?;
        self.check_owner("copy", &to.buffer.gpu)?;
        if from.is_empty() {
            return Ok(());
        }
        if from.untyped().same_buffer(&to.untyped()) {
            return Err(err!(Aliasing, "copy: both slices lie in one buffer; copy through a third"));
        }
        let (source, _) = from.copy_range().ok_or_else(|| word_error("copy", &from))?;
        let (target, bytes) = to.copy_range().ok_or_else(|| word_error("copy", &to))?;
        let (a, b) = (&from.buffer.memory, &to.buffer.memory);
        if !a.raw.buffer.usage().contains(wgpu::BufferUsages::COPY_SRC)
            || !b.raw.buffer.usage().contains(wgpu::BufferUsages::COPY_DST)
        {
            return Err(err!(Buffer, "copy: the source needs usage COPY_SRC and the target COPY_DST"));
        }
        let uses = [("the source", Access::Read, from.untyped()), ("the target", Access::Write, to.untyped())];
        check_written("copy", &uses.map(|(name, access, slice)| slice.used(name, access)))?;
        self.begin_command("copy", 2 * bytes)?;
        self.outside_passes().copy_buffer_to_buffer(&a.raw.buffer, source, &b.raw.buffer, target, bytes);
        self.keep([a, b].into_iter());
        b.written.set();
        self.recorded(|| format!("copy: {} elements of {}, {bytes} bytes", from.len(), T::DTYPE));
        self.end_op()
    }

    /// Records a copy of a slice's words to the start of `to`.
    pub(crate) fn copy_words(&mut self, from: &RawSlice<'_>, to: &Buffer<u32>) -> Result<()> {
        self.check_owner("copy", from.gpu)?;
        let (source, target) = (&from.memory.raw, &to.stored.memory.raw);
        let bytes = from.bytes().next_multiple_of(4);
        let readable = source.buffer.usage().contains(wgpu::BufferUsages::COPY_SRC);
        if !readable || !from.start().is_multiple_of(4) || from.start() + bytes > source.size {
            return Err(err!(
                Buffer,
                "copy: {} elements of {} at byte {} cannot be copied; the buffer needs usage COPY_SRC, and the slice must \
                 cover whole 4-byte words",
                from.len,
                from.dtype,
                from.offset
            ));
        }
        if bytes > 0 {
            let encoder = self.outside_passes();
            encoder.copy_buffer_to_buffer(&source.buffer, from.start(), &target.buffer, 0, bytes);
            self.keep([from.memory, &to.stored.memory].into_iter());
            to.stored.memory.written.set();
            self.recorded(|| format!("copy: {} elements of {}, {bytes} bytes", from.len, from.dtype));
        }
        Ok(())
    }

    /// Records setting every element to zero.
    ///
    /// # Errors
    /// [`Buffer`](ErrorKind::Buffer) if the usage lacks `COPY_DST`, the slice shares a 4-byte word with its
    /// neighbours, or the buffer belongs to another `Gpu`.
    pub fn clear<'a, T: Element>(&mut self, slice: impl Into<Slice<'a, T>>) -> Result<()> {
        let slice = slice.into();
        self.gpu.probe()?;
        self.check_owner("clear", &slice.buffer.gpu)?;
        if slice.is_empty() {
            return Ok(());
        }
        let memory = &slice.buffer.memory;
        if !memory.raw.buffer.usage().contains(wgpu::BufferUsages::COPY_DST) {
            return Err(err!(Buffer, "clear: the buffer needs usage COPY_DST"));
        }
        let (start, bytes) = slice.copy_range().ok_or_else(|| word_error("clear", &slice))?;
        self.begin_command("clear", bytes)?;
        self.outside_passes().clear_buffer(&memory.raw.buffer, start, Some(bytes));
        self.keep([memory].into_iter());
        memory.written.set();
        self.recorded(|| format!("clear: {} elements of {}, {bytes} bytes", slice.len(), T::DTYPE));
        self.end_op()
    }

    /// Records setting every element to `value`.
    ///
    /// # Errors
    /// [`Buffer`](ErrorKind::Buffer) if the device cannot bind the start of the slice, or the slice shares a
    /// 4-byte word with its neighbours or belongs to another `Gpu`; those of building a small kernel.
    pub fn fill<'a, T: Element>(&mut self, slice: impl Into<Slice<'a, T>>, value: T) -> Result<()> {
        let slice = slice.into();
        self.gpu.probe()?;
        self.check_owner("fill", &slice.buffer.gpu)?;
        if slice.is_empty() {
            return Ok(());
        }
        let elements = slice.untyped();
        elements.check_writable("fill", "the slice")?;
        // Checked in elements of the caller; the words below have another size.
        elements.check_bindable("fill", "the slice", &self.gpu)?;
        let mut bytes = [0; 8];
        bytes.chunks_exact_mut(T::DTYPE.size()).for_each(|to| to.copy_from_slice(bytemuck::bytes_of(&value)));
        let len = elements.bytes().div_ceil(4) as usize;
        let words = RawSlice { dtype: DType::U32, len, whole_words: true, ..elements };
        let gpu = self.gpu.clone();
        let program = fill::fill(len, bytemuck::cast(bytes), gpu.profile())?;
        gpu.prepare_lowered(program)?.record(self, &[words])
    }
}

impl Recorder<wgpu::CommandEncoder> {
    /// Submits the work and returns at once. [`Gpu::wait`] or a `read` waits.
    ///
    /// # Errors
    /// Device lost, or an error that wgpu reports for the work.
    pub fn submit(mut self) -> Result<()> {
        self.end_pass();
        self.unsubmitted.ops = 0;
        let Self { encoder, gpu, keep, .. } = self;
        gpu.scoped("submitting", || gpu.inner.queue.submit([encoder.finish()]))?;
        #[cfg(feature = "shard")]
        gpu.note_submission();
        // After submission, the queue orders later uses of this memory.
        drop(keep);
        Ok(())
    }

    /// The parts, for the timer, which submits more than our work.
    pub(super) fn into_parts(mut self) -> (wgpu::CommandEncoder, Option<PassStamps>, KeptMemory) {
        self.end_pass();
        self.unsubmitted.ops = 0;
        let Self { encoder, clock, keep, .. } = self;
        (encoder, clock, keep)
    }
}

impl Recorder<&mut wgpu::CommandEncoder> {
    /// Ends our part of the caller's encoder, as dropping the recorder does. Memory used in it is not reused before
    /// that encoder's work is done or the encoder is dropped.
    pub fn finish(mut self) {
        self.end_pass();
    }
}
