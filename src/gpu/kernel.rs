use super::executable::ParamsBuffer;
use super::pipeline_cache::CachedPipeline;
#[cfg(not(target_arch = "wasm32"))]
use super::pipeline_cache::source_of;
use super::profile::{DispatchProfile, OpProfile};
use super::raw_slice::{check_written, described};
use super::recorder::{Encoder, OpenPass, Recorder, SetInPass};
use super::{Gpu, Slice};
use crate::gpu::RawSlice;
use crate::program::prelude::*;
use crate::shader::{BindingKind, Interface, Target, expand_text};
use naga::valid::Capabilities;
use std::sync::Arc;
use web_time::Instant;

/// A compute kernel that you wrote in WGSL. [`Gpu::kernel`] compiles it.
///
/// The text may `#import` tilework's fragments (`op/add`, `workgroup/index`, ...). [`record`](OwnKernel::record) checks
/// the arguments against the bindings. The kernel runs with bounds checks, except on OpenGL, where naga's GLSL guards
/// neither indices nor divisions.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let double = gpu.kernel("double.wgsl", "
///     @group(0) @binding(0) var<storage, read_write> data: array<f32>;
///     @compute @workgroup_size(64)
///     fn double(@builtin(global_invocation_id) id: vec3<u32>) {
///         if id.x < arrayLength(&data) { data[id.x] *= 2.0; }
///     }", "double")?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
/// let mut rec = gpu.recorder();
/// double.record(&mut rec, &[Arg::from(&x)], [1, 1, 1])?;
/// rec.submit()?;
/// assert_eq!(x.read()?, [2.0, 4.0, 6.0, 8.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug)]
pub struct OwnKernel {
    gpu: Gpu,
    name: String,
    pipeline: CachedPipeline,
}

/// An argument of an [`OwnKernel`], for one of its bindings.
#[derive(Debug, Clone, Copy)]
pub enum Arg<'a> {
    /// A buffer, bound as storage or, as with [`Gpu::uniform`], as a uniform.
    Buffer(RawSlice<'a>),
    /// The bytes of a uniform. They are copied, so each recording keeps its own.
    Uniform(&'a [u8]),
}

impl<'a, T: Element> From<&'a super::Buffer<T>> for Arg<'a> {
    fn from(buffer: &'a super::Buffer<T>) -> Self {
        Arg::Buffer(Slice::from(buffer).untyped())
    }
}

impl<'a, T: Element> From<Slice<'a, T>> for Arg<'a> {
    fn from(slice: Slice<'a, T>) -> Self {
        Arg::Buffer(slice.untyped())
    }
}

impl<'a> Arg<'a> {
    /// Returns the bytes of `value`, which must have the layout of the shader's uniform struct.
    pub fn uniform<P: bytemuck::NoUninit>(value: &'a P) -> Self {
        Arg::Uniform(bytemuck::bytes_of(value))
    }
}

impl Gpu {
    /// Compiles the entry point `entry` of your WGSL `text`. Errors call the text `name`.
    ///
    /// # Errors
    /// [`Shader`](ErrorKind::Shader), with file, line and the text at fault, if it does not parse or
    /// validate; [`TooLarge`](ErrorKind::TooLarge) if a thread's variables take more than 4 MiB;
    /// [`Unsupported`](ErrorKind::Unsupported) if it needs more than the device has; device lost.
    pub fn kernel(&self, name: &str, text: &str, entry: &str) -> Result<OwnKernel> {
        self.probe()?;
        let begin = Instant::now();
        let module = expand_text(name, text, &Spec::new(), Target::Naga)?.validate()?;
        let has = &self.profile().features;
        let missing = [
            (has.f16, Capabilities::SHADER_FLOAT16),
            (has.int64, Capabilities::SHADER_INT64),
            (has.subgroups, Capabilities::SUBGROUP | Capabilities::SUBGROUP_BARRIER),
            (has.cooperative_matrix, Capabilities::COOPERATIVE_MATRIX),
        ];
        let missing = missing.into_iter().filter(|(has, _)| !has).map(|(_, capability)| capability).collect();
        module.check_without(missing).map_err(|e| e.context(&format!("{} cannot run this", self.profile().name)))?;
        #[cfg(not(target_arch = "wasm32"))]
        let source = source_of(&module);
        #[cfg(target_arch = "wasm32")]
        let source = {
            let text = expand_text(name, text, &Spec::new(), Target::Tint)?;
            wgpu::ShaderSource::Wgsl(text.text().to_owned().into())
        };
        let pipeline = self.compile(&format!("{name}:{entry}"), module.facts(entry)?, source, false, begin)?;
        Ok(OwnKernel { gpu: self.clone(), name: format!("{name}:{entry}"), pipeline })
    }
}

impl OwnKernel {
    /// Returns the bindings and the workgroup size of the kernel.
    pub fn interface(&self) -> &Interface {
        &self.pipeline.interface
    }

    /// Records a launch of `workgroups` (x, y, z). `args` has one argument for each binding, in the order of the
    /// binding numbers.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) for a wrong number, kind or size of arguments;
    /// [`Aliasing`](ErrorKind::Aliasing) if a buffer is bound twice and written;
    /// [`TooLarge`](ErrorKind::TooLarge) for too many workgroups; [`Buffer`](ErrorKind::Buffer) for a
    /// buffer of another `Gpu`, a misaligned slice, or a binding that is only read and whose memory was never
    /// written. Nothing is recorded then.
    pub fn record<E: Encoder>(&self, rec: &mut Recorder<E>, args: &[Arg<'_>], workgroups: [u32; 3]) -> Result<()> {
        let name = &self.name;
        rec.check_alive()?;
        rec.check_owner(name, &self.gpu)?;
        let limit = self.gpu.profile().limits.max_workgroups_per_dimension;
        if workgroups.iter().any(|n| *n > limit) {
            return Err(err!(
                TooLarge,
                "{name}: {workgroups:?} workgroups; the maximum along each dimension is {limit}"
            ));
        }
        let group = self.bind(args)?;
        let [x, y, z] = workgroups;
        self.set(rec, args, &group, Some(workgroups))?.dispatch_workgroups(x, y, z);
        rec.recorded(|| format!("{}; workgroups: {workgroups:?}", self.description(args)));
        rec.end_op()
    }

    /// Records a launch over `count` items, where `count` is one `u32` on the device, read when the work runs. It
    /// starts enough workgroups of `items_per_workgroup` items for `count`, but never more than `max_items` need.
    /// Nothing is read back: use this to continue after [`Select`](crate::Select) and other ops that leave their
    /// count on the device.
    ///
    /// An item may take several threads: four children of each counted item, for example, make 16 items for a
    /// workgroup of 64.
    ///
    /// Workgroups are counted along x. Above 32768 they fold over y and z, and the kernel finds its number with
    /// `workgroup_index` of `#import workgroup/index`. The last workgroups may have fewer items, or none, so the
    /// kernel must bind `count` too and skip items from `count` on, and from `max_items` on if `count` may be larger.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, kept) = (gpu.upload(&[5u32, 0, 7, 0, 0, 9])?, gpu.alloc_zeroed::<u32>(6)?);
    /// let count = gpu.alloc::<u32>(1)?;
    /// let select = Select::by(6, Predicate::NonZero).plan::<u32>(&gpu)?;
    /// let double = gpu.kernel("double.wgsl", "
    ///     @group(0) @binding(0) var<storage, read> count: array<u32>;
    ///     @group(0) @binding(1) var<storage, read_write> data: array<u32>;
    ///     @compute @workgroup_size(64)
    ///     fn double(@builtin(global_invocation_id) id: vec3<u32>) {
    ///         if id.x < count[0] { data[id.x] *= 2u; }
    ///     }", "double")?;
    /// let mut rec = gpu.recorder();
    /// select.record_by(&mut rec, &x, &kept, &count)?;
    /// double.record_counted(&mut rec, &[Arg::from(&count), Arg::from(&kept)], &count, 64, 6)?;
    /// rec.submit()?;
    /// assert_eq!(kept.read()?, [10, 14, 18, 0, 0, 0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for 0 items in a workgroup;
    /// [`Shape`](ErrorKind::Shape) if `count` is not one element; [`TooLarge`](ErrorKind::TooLarge)
    /// if `max_items` is above 2^32 - 1; those of [`OwnKernel::record`]. Nothing is recorded then.
    pub fn record_counted<'c, E: Encoder>(
        &self, rec: &mut Recorder<E>, args: &[Arg<'_>], count: impl Into<Slice<'c, u32>>, items_per_workgroup: u32,
        max_items: usize,
    ) -> Result<()> {
        let (name, count) = (&self.name, count.into());
        rec.check_alive()?;
        rec.check_owner(name, &self.gpu)?;
        if items_per_workgroup == 0 {
            return Err(err!(InvalidArgument, "{name}: items_per_workgroup is 0; use at least 1"));
        }
        let max_items = index_u32(name, "max_items", max_items)?;
        let group = self.bind(args)?;
        let fold = self.gpu.prepare_lowered(counted::workgroups(items_per_workgroup, max_items))?;
        let workgroups = self.gpu.alloc::<u32>(3)?;
        fold.record(rec, &[count.untyped(), Slice::from(&workgroups).untyped()]).map_err(|e| e.context(name))?;
        rec.keep([&workgroups.stored.memory].into_iter());
        self.set(rec, args, &group, None)?.dispatch_workgroups_indirect(workgroups.raw(), 0);
        rec.recorded(|| format!("{}; workgroups: counted on the device", self.description(args)));
        rec.end_op()
    }

    fn bind(&self, args: &[Arg<'_>]) -> Result<wgpu::BindGroup> {
        let name = &self.name;
        let limits = &self.gpu.profile().limits;
        let bindings = &self.interface().bindings;
        if args.len() != bindings.len() {
            let names: Vec<_> = bindings.iter().map(|b| b.name.as_str()).collect();
            return Err(err!(
                Shape,
                "{name}: {} arguments given for {} bindings: {}",
                args.len(),
                names.len(),
                names.join(", ")
            ));
        }
        let mut uniforms: Vec<Option<Arc<ParamsBuffer>>> = Vec::with_capacity(args.len());
        for (arg, binding) in args.iter().zip(bindings) {
            let what = &binding.name;
            match (arg, binding.kind) {
                (Arg::Uniform(bytes), BindingKind::Uniform) => {
                    if (bytes.len() as u64) < binding.min_size {
                        return Err(err!(
                            Shape,
                            "{name}: {what} has {} bytes, the shader's struct has {}",
                            bytes.len(),
                            binding.min_size
                        ));
                    }
                    let mut padded = bytes.to_vec();
                    padded.resize(round_up(bytes.len() as u64, 16) as usize, 0);
                    if padded.len() as u64 > limits.max_uniform_binding {
                        return Err(err!(
                            TooLarge,
                            "{name}: {what} has {} bytes, {} is the largest uniform; use a storage buffer",
                            bytes.len(),
                            limits.max_uniform_binding
                        ));
                    }
                    uniforms.push(Some(self.gpu.params(padded)?));
                }
                (Arg::Buffer(slice), kind) => {
                    slice.check_bindable(name, what, &self.gpu)?;
                    if kind == BindingKind::ReadWrite {
                        slice.check_writable(name, what)?;
                    }
                    let uniform = kind == BindingKind::Uniform;
                    if uniform {
                        slice.check_uniform(name, what)?;
                    }
                    let bytes = round_up(slice.bytes(), if uniform { 16 } else { 4 });
                    if bytes < binding.min_size || slice.start() + bytes > slice.memory.raw.size {
                        return Err(err!(
                            Shape,
                            "{name}: {what} has {bytes} bytes, the shader needs at least {}",
                            binding.min_size
                        ));
                    }
                    if bytes > limits.max_storage_binding {
                        return Err(err!(
                            TooLarge,
                            "{name}: {what} has {bytes} bytes, {} is the largest binding; bind slices",
                            limits.max_storage_binding
                        ));
                    }
                    uniforms.push(None);
                }
                (Arg::Uniform(_), kind) => {
                    return Err(err!(Shape, "{name}: {what} is bound as {kind:?}; give it an argument of that kind"));
                }
            }
        }
        self.check_aliasing(args)?;
        let uses: Vec<_> = self.buffers(args).map(|(name, access, slice)| slice.used(name, access)).collect();
        check_written(name, &uses)?;
        let entries: Vec<_> = args
            .iter()
            .zip(bindings)
            .zip(&uniforms)
            .map(|((arg, binding), uniform)| {
                let buffer = match (arg, uniform) {
                    (Arg::Buffer(s), _) => wgpu::BufferBinding {
                        buffer: &s.memory.raw.buffer,
                        offset: s.start(),
                        size: std::num::NonZero::new(match binding.kind {
                            BindingKind::Uniform => s.uniform_bytes(),
                            _ => round_up(s.bytes(), 4).max(4),
                        }),
                    },
                    (Arg::Uniform(_), Some(p)) => p.raw.buffer.as_entire_buffer_binding(),
                    (Arg::Uniform(_), None) => return None,
                };
                Some(wgpu::BindGroupEntry { binding: binding.index, resource: wgpu::BindingResource::Buffer(buffer) })
            })
            .collect::<Option<_>>()
            .unwrap_or_default();
        let desc = wgpu::BindGroupDescriptor { label: Some(name), layout: &self.pipeline.layout, entries: &entries };
        self.gpu.scoped(&format!("{name}: binding buffers"), || self.gpu.inner.device.create_bind_group(&desc))
    }

    /// Sets pipeline and bindings in the open pass. `workgroups` is for the profile, if the number is known.
    fn set<'r, E: Encoder>(
        &self, rec: &'r mut Recorder<E>, args: &[Arg<'_>], group: &wgpu::BindGroup, workgroups: Option<[u32; 3]>,
    ) -> Result<&'r mut wgpu::ComputePass<'static>> {
        if rec.is_profiled() {
            rec.begin_op(|| self.profiled(args, workgroups))?;
            rec.next_dispatch();
        }
        rec.keep(self.buffers(args).map(|(.., slice)| slice.memory));
        for (_, _, slice) in self.buffers(args).filter(|(_, access, _)| *access != Access::Read) {
            slice.memory.written.set();
        }
        let OpenPass { pass, bound, .. } = rec.pass();
        *bound = SetInPass { pipeline: self.pipeline.id, ..SetInPass::default() };
        pass.set_pipeline(&self.pipeline.pipeline);
        pass.set_bind_group(0, group, &[]);
        Ok(pass)
    }

    /// The profile of a launch before it has run. Its cost is unknown.
    fn profiled(&self, args: &[Arg<'_>], workgroups: Option<[u32; 3]>) -> OpProfile {
        let bytes = args.iter().map(|arg| match arg {
            Arg::Buffer(slice) => slice.bytes(),
            Arg::Uniform(bytes) => bytes.len() as u64,
        });
        let (kernel, bound_bytes) = (self.name.clone(), bytes.sum());
        let launch = DispatchProfile { kernel, workgroups, bound_bytes, ..DispatchProfile::default() };
        OpProfile::new(&self.name, "", None, vec![launch])
    }

    fn description(&self, args: &[Arg<'_>]) -> String {
        format!("kernel {}: {}", self.name, described(self.buffers(args).map(|(name, _, slice)| (name, slice))))
    }

    /// Name, use and memory of each buffer.
    fn buffers<'a>(&'a self, args: &'a [Arg<'a>]) -> impl Iterator<Item = (&'a str, Access, RawSlice<'a>)> {
        args.iter().zip(&self.interface().bindings).filter_map(|(arg, binding)| {
            let Arg::Buffer(slice) = arg else { return None };
            let writes = binding.kind == BindingKind::ReadWrite;
            let access = if writes { Access::ReadWrite } else { Access::Read };
            Some((binding.name.as_str(), access, *slice))
        })
    }

    fn check_aliasing(&self, args: &[Arg<'_>]) -> Result<()> {
        let bound: Vec<_> = self.buffers(args).collect();
        for (i, (a_name, a_access, a)) in bound.iter().enumerate() {
            for (b_name, b_access, b) in &bound[i + 1..] {
                let written = *a_access != Access::Read || *b_access != Access::Read;
                if written && a.same_buffer(b) {
                    return Err(err!(
                        Aliasing,
                        "{}: {a_name} and {b_name} lie in one wgpu buffer, and the kernel writes one of them; \
                         use two buffers",
                        self.name
                    ));
                }
            }
        }
        Ok(())
    }
}
