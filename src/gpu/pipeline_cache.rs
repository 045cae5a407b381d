//! Compiled pipelines, each built once per device.

use super::{Gpu, unique};
use crate::program::prelude::*;
#[cfg(not(target_arch = "wasm32"))]
use crate::shader::Module;
use crate::shader::{BindingKind, Interface, Target, TextFacts};
use crate::store::{CompiledCache, InUse};
#[cfg(not(target_arch = "wasm32"))]
use futures_intrusive::channel::shared::oneshot_channel;
use std::borrow::Borrow;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(not(target_arch = "wasm32"))]
use std::sync::atomic::{AtomicUsize, Ordering};
use web_time::Instant;

/// A compiled entry point with its interface.
#[derive(Debug)]
pub(super) struct CachedPipeline {
    pub(super) pipeline: wgpu::ComputePipeline,
    pub(super) layout: wgpu::BindGroupLayout,
    pub(super) interface: Interface,
    pub(super) id: u64,
}

const KIND: &str = "pipeline";

/// Software drivers return a header without code. Such data is not saved.
const EMPTY: usize = 256;

/// Pipelines in memory, by kernel. They belong to one `Gpu`, so device and checking are not part of the key.
pub(super) type PipelineCache = CompiledCache<Kernel, CachedPipeline>;

pub(super) type PipelineInUse = InUse<Kernel, CachedPipeline>;

/// The text for wgpu: the module that is parsed and validated already.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn source_of(module: &Module) -> wgpu::ShaderSource<'static> {
    wgpu::ShaderSource::Naga(std::borrow::Cow::Owned(module.naga.clone()))
}

#[cfg(not(target_arch = "wasm32"))]
fn read(kernel: &Kernel) -> Result<(TextFacts, wgpu::ShaderSource<'static>)> {
    let module = kernel.expand(Target::Naga)?.validate()?;
    Ok((module.facts(kernel.entry)?, source_of(&module)))
}

/// What is known of a kernel, and its text for the browser's compiler.
#[cfg(target_arch = "wasm32")]
fn read(kernel: &Kernel) -> Result<(TextFacts, wgpu::ShaderSource<'static>)> {
    let text = kernel.expand(Target::Tint)?.text().to_owned();
    Ok((kernel.facts()?, wgpu::ShaderSource::Wgsl(text.into())))
}

impl Gpu {
    pub(super) fn pipeline(&self, kernel: &Kernel) -> Result<PipelineInUse> {
        self.inner.pipelines.get_or_make(kernel, || {
            let begin = Instant::now();
            let (facts, source) = read(kernel)?;
            let trusted = kernel.trusted && facts.users_are_contained && !self.inner.options.checked;
            self.compile(&kernel.label(), facts, source, trusted, begin)
        })
    }

    /// Compiles an entry point. `trusted` drops naga's runtime checks and the zeroing of workgroup memory;
    /// divisions in users' fragments stay checked. Time counts from `begin`.
    pub(super) fn compile(
        &self, label: &str, facts: TextFacts, source: wgpu::ShaderSource<'static>, trusted: bool, begin: Instant,
    ) -> Result<CachedPipeline> {
        let TextFacts { interface, hash, has_users, .. } = facts;
        self.check_limits(label, &interface)?;
        let key = format!("{label} {trusted} {hash:032x}");
        let device = &self.inner.device;
        let source = wgpu::ShaderModuleDescriptor { label: Some(label), source };
        let entries: Vec<_> = interface
            .bindings
            .iter()
            .map(|b| wgpu::BindGroupLayoutEntry {
                binding: b.index,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: match b.kind {
                        BindingKind::Uniform => wgpu::BufferBindingType::Uniform,
                        BindingKind::Read => wgpu::BufferBindingType::Storage { read_only: true },
                        BindingKind::ReadWrite => wgpu::BufferBindingType::Storage { read_only: false },
                    },
                    has_dynamic_offset: false,
                    min_binding_size: std::num::NonZero::new(b.min_size),
                },
                count: None,
            })
            .collect();
        let build = || {
            let shader = if trusted {
                let mut checks = wgpu::ShaderRuntimeChecks::unchecked();
                checks.int_div_checks = has_users;
                // SAFETY: only kernels of this crate are trusted (`Gpu::prepare` and `program::lower` clear
                // `Kernel::trusted` for programs and ops of users). They bound every index by sizes that the plan
                // checked, have no endless loop, and run in the tests with checks as well. Users' fragments have no
                // index and no loop, and cannot change the meaning of a name that ours use
                // (`Module::users_are_contained`).
                unsafe { device.create_shader_module_trusted(source, checks) }
            } else {
                device.create_shader_module(source)
            };
            let layout = device
                .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: Some(label), entries: &entries });
            let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some(label),
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
            let cached = self.cached(key.as_bytes());
            let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(label),
                layout: Some(&pipeline_layout),
                module: &shader,
                entry_point: Some(&interface.entry),
                compilation_options: wgpu::PipelineCompilationOptions {
                    zero_initialize_workgroup_memory: !trusted,
                    ..Default::default()
                },
                cache: cached.as_ref().map(|(cache, _)| cache),
            });
            (CachedPipeline { pipeline, layout, interface: interface.clone(), id: unique() }, cached)
        };
        // Some valid shaders make a back end of naga panic.
        let built = self.scoped(&format!("compiling {label}"), || catch_unwind(AssertUnwindSafe(build)))?;
        let (pipeline, cached) =
            built.map_err(|_| err!(Shader, "{label}: the shader compiler panicked; rewrite the shader"))?;
        self.keep_compiled(label, key.as_bytes(), cached, begin);
        Ok(pipeline)
    }

    /// The driver's cache of one pipeline, and whether its data was on disk.
    fn cached(&self, key: &[u8]) -> Option<(wgpu::PipelineCache, bool)> {
        if !self.profile().features.pipeline_cache {
            return None;
        }
        let data = self.store().load(KIND, key);
        let found = data.is_some();
        // SAFETY: `get_data` gave this data for a device of this name, driver and backend, and the file's checksum
        // shows that it is whole.
        let cache = unsafe {
            self.inner.device.create_pipeline_cache(&wgpu::PipelineCacheDescriptor {
                label: None,
                data: data.as_deref(),
                fallback: true,
            })
        };
        Some((cache, found))
    }

    /// Counts and logs the pipeline, and keeps its compiled form if it was not on disk.
    fn keep_compiled(&self, label: &str, key: &[u8], cached: Option<(wgpu::PipelineCache, bool)>, begin: Instant) {
        let store = self.store();
        let (found, time) = (matches!(cached, Some((_, true))), begin.elapsed());
        store.count(found, time);
        let (how, milliseconds) = (if found { "loaded from the cache" } else { "compiled" }, time.as_secs_f64() * 1e3);
        log::debug!(target: "tilework", "{label}: {how} in {milliseconds:.1} ms");
        if found {
            return;
        }
        let data = cached.and_then(|(cache, _)| cache.get_data());
        if let Some(data) = data.filter(|data| data.len() > EMPTY) {
            store.save(KIND, key, &data);
        }
    }

    fn check_limits(&self, label: &str, interface: &Interface) -> Result<()> {
        let (limits, name) = (&self.profile().limits, &self.profile().name);
        let [x, y, z] = interface.workgroup_size;
        let too_many = [x, y, z].iter().zip(limits.max_workgroup_size).any(|(s, max)| *s > max);
        if too_many || u64::from(x) * u64::from(y) * u64::from(z) > u64::from(limits.max_invocations) {
            return Err(err!(
                Unsupported,
                "{label}: a workgroup of {x} x {y} x {z} threads is above the {} (at most {:?}) of {name}",
                limits.max_invocations,
                limits.max_workgroup_size
            ));
        }
        if interface.workgroup_bytes > limits.max_workgroup_bytes {
            return Err(err!(
                Unsupported,
                "{label}: {} bytes of workgroup memory are above the {} of {name}; use smaller tiles",
                interface.workgroup_bytes,
                limits.max_workgroup_bytes
            ));
        }
        let storage = interface.bindings.iter().filter(|b| b.kind != BindingKind::Uniform).count();
        if storage > limits.max_storage_buffers as usize {
            return Err(err!(
                Unsupported,
                "{label}: {storage} storage buffers are above the {} of {name}",
                limits.max_storage_buffers
            ));
        }
        Ok(())
    }

    /// Compiles every kernel of `programs` in parallel before use, or loads it from disk. Planning then finds them.
    ///
    /// No plan uses them yet, so [`GpuOptions::kept_pipelines`](super::GpuOptions::kept_pipelines) bounds them too:
    /// the last ones stay.
    ///
    /// [`Gpu::lower`](crate::Gpu::lower) gives the programs of ops, and has an example.
    ///
    /// # Errors
    /// The first failure, after trying all kernels.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn warm_up<P: Borrow<Program>>(&self, programs: impl IntoIterator<Item = P>) -> Result<()> {
        self.compile_all(&distinct(programs))
    }

    /// As [`warm_up`](Self::warm_up), without blocking the thread. In a browser, which compiles in a process of its
    /// own, the page stays responsive: it only prepares the text of one kernel at a time.
    ///
    /// # Errors
    /// As [`warm_up`](Self::warm_up).
    pub async fn warm_up_async<P: Borrow<Program>>(&self, programs: impl IntoIterator<Item = P>) -> Result<()> {
        let kernels = distinct(programs);
        #[cfg(target_arch = "wasm32")]
        {
            let mut first = Ok(());
            for kernel in &kernels {
                first = first.and(self.pipeline(kernel).map(drop)).and(self.settled().await);
            }
            first
        }
        #[cfg(not(target_arch = "wasm32"))]
        {
            let (gpu, (sender, done)) = (self.clone(), oneshot_channel());
            let compile = move || {
                // The receiver is gone if the future was dropped.
                let _ = sender.send(gpu.compile_all(&kernels));
            };
            let spawned = std::thread::Builder::new().name("tilework warm-up".into()).spawn(compile);
            spawned.map_err(|e| err!(OutOfMemory, "warm_up_async: no thread could start: {e}"))?;
            let stopped = || Err(err!(Shader, "warm_up_async: a shader compiler panicked"));
            done.receive().await.unwrap_or_else(stopped)
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn compile_all(&self, kernels: &[Kernel]) -> Result<()> {
        self.probe()?;
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(kernels.len().max(1));
        let next = AtomicUsize::new(0);
        // Some kernels take far longer than others, so each thread takes the next one when it is done.
        let compile = || {
            let mine = std::iter::from_fn(|| {
                let i = next.fetch_add(1, Ordering::Relaxed);
                kernels.get(i).map(|kernel| (i, self.pipeline(kernel).map(drop)))
            });
            mine.collect::<Vec<_>>()
        };
        let mut results: Vec<(usize, Result<()>)> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(compile)).collect();
            let panicked = || vec![(usize::MAX, Err(err!(Shader, "warm_up: a shader compiler panicked")))];
            workers.into_iter().flat_map(|w| w.join().unwrap_or_else(|_| panicked())).collect()
        });
        results.sort_by_key(|(i, _)| *i);
        results.into_iter().try_for_each(|(_, result)| result)
    }
}

fn distinct<P: Borrow<Program>>(programs: impl IntoIterator<Item = P>) -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut seen = HashSet::new();
    for program in programs {
        let new = program.borrow().kernels.iter().filter(|kernel| seen.insert((*kernel).clone()));
        kernels.extend(new.cloned());
    }
    kernels
}
