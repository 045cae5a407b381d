//! The backends: adapters of this machine and the processor.

use super::common::measured::Check;
#[cfg(feature = "cuda")]
use super::cuda::{self, Cublas};
use super::problem::{Problem, Processor, Routine};
use std::time::Instant;
use tilework::analysis::Roofline;
#[cfg(feature = "cuda")]
use tilework::cuda::{CudaFilter, CudaGpu, CudaOptions};
use tilework::gpu::AdapterFilter;
use tilework::program::{DeviceClass, DeviceProfile};
use tilework::{ErrorKind, Gpu, GpuOptions, Result};

/// The outcome of a problem on a backend.
pub(crate) enum Outcome {
    Timed(Timed),
    /// A wrong result, which is not timed.
    Wrong {
        variant: String,
        check: Check,
    },
    /// The backend does not support the problem.
    Missing,
    /// An external library failed.
    #[cfg(feature = "cuda")]
    Failed(String),
}

/// A correct result and its time.
pub(crate) struct Timed {
    pub(crate) variant: String,
    pub(crate) check: Check,
    pub(crate) median: f64,
    pub(crate) min: f64,
    /// The clock used.
    pub(crate) clock: String,
}

enum World {
    Wgpu(Gpu),
    #[cfg(feature = "cuda")]
    Cuda(CudaGpu),
    #[cfg(feature = "cuda")]
    Cublas(Cublas),
    Processor(Processor),
}

pub(crate) struct Backend {
    /// As in ids of benchmarks.
    pub(crate) name: String,
    pub(crate) adapter: String,
    pub(crate) driver: String,
    /// Whether it is fast enough for the large sizes.
    pub(crate) card: bool,
    /// Its peak rates, if measured.
    pub(crate) roof: Option<Roofline>,
    world: World,
    /// Whether its device was lost, so that no more work is sent.
    pub(crate) gone: bool,
}

/// A backend that can be opened, or why not.
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) about: String,
    open: Open,
}

enum Open {
    Adapter(usize, Box<DeviceProfile>),
    #[cfg(feature = "cuda")]
    Cuda {
        ordinal: usize,
        vendor: bool,
    },
    Processor(Processor),
    Not(String),
}

/// Lists all backends that the program knows, available or not.
pub(crate) fn find() -> Vec<Found> {
    let mut all: Vec<Found> = Vec::new();
    for (index, profile) in Gpu::adapters().into_iter().enumerate() {
        let about = format!("{}, {}", profile.name, profile.driver);
        all.push(Found { name: profile.id(), about, open: Open::Adapter(index, Box::new(profile)) });
    }
    if all.is_empty() {
        let why = Gpu::new().err().map_or_else(String::new, |e| e.to_string());
        all.push(not_here("vulkan", &why));
    }
    all.extend(cuda_devices());
    all.extend(Processor::ALL.map(|p| Found {
        name: p.name().into(),
        about: p.about().into(),
        open: Open::Processor(p),
    }));
    // Number equal cards.
    let names: Vec<_> = all.iter().map(|f| f.name.clone()).collect();
    for (i, found) in all.iter_mut().enumerate() {
        let before = names[..i].iter().filter(|name| **name == found.name).count();
        if before > 0 {
            found.name += &format!("-{}", before + 1);
        }
    }
    all
}

/// Lists each CUDA device, with our kernels and with cuBLAS, or why there is none.
#[cfg(feature = "cuda")]
fn cuda_devices() -> Vec<Found> {
    let missing = |why: String| ["cuda", "cublas"].map(|name| not_here(name, &why)).into();
    let devices = match CudaGpu::devices() {
        Ok(devices) => devices,
        Err(e) => return missing(e.to_string()),
    };
    if devices.is_empty() {
        return missing("the driver finds no device".into());
    }
    let each = |(ordinal, profile): (usize, tilework::cuda::CudaProfile)| {
        let about = format!("{}, CUDA {}.{}", profile.name, profile.driver[0], profile.driver[1]);
        ["cuda", "cublas"].map(|kind| Found {
            name: profile.id().replacen("cuda", kind, 1),
            about: about.clone(),
            open: Open::Cuda { ordinal, vendor: kind == "cublas" },
        })
    };
    devices.into_iter().enumerate().flat_map(each).collect()
}

#[cfg(not(feature = "cuda"))]
fn cuda_devices() -> Vec<Found> {
    let why = "this program was built without the feature `cuda` (cargo run --features cuda)";
    ["cuda", "cublas"].map(|name| not_here(name, why)).into()
}

fn not_here(name: &str, why: &str) -> Found {
    Found { name: name.into(), about: why.into(), open: Open::Not(why.into()) }
}

impl Found {
    /// Returns why it is not available.
    pub(crate) fn missing(&self) -> Option<&str> {
        if let Open::Not(why) = &self.open { Some(why) } else { None }
    }

    /// Opens it and measures its ceilings.
    pub(crate) fn open(self) -> std::result::Result<Backend, String> {
        let Found { name, open, .. } = self;
        match open {
            Open::Not(why) => Err(why),
            Open::Processor(processor) => Ok(Backend {
                name,
                adapter: std::env::consts::ARCH.into(),
                driver: processor.about().into(),
                card: false,
                roof: None,
                world: World::Processor(processor),
                gone: false,
            }),
            #[cfg(feature = "cuda")]
            Open::Cuda { ordinal, vendor } => {
                let device = CudaFilter::Ordinal(ordinal);
                let gpu = CudaGpu::open(CudaOptions { device, ..Default::default() });
                let gpu = gpu.map_err(|e| e.to_string())?;
                let profile = gpu.profile();
                let (adapter, driver) =
                    (profile.name.clone(), format!("CUDA {}.{}", profile.driver[0], profile.driver[1]));
                let world = if vendor {
                    World::Cublas(Cublas::open(gpu)?)
                } else {
                    gpu.nvrtc().map_err(|e| e.to_string())?;
                    World::Cuda(gpu)
                };
                Ok(Backend { name, adapter, driver, card: true, roof: None, world, gone: false })
            }
            Open::Adapter(index, profile) => {
                let options = GpuOptions { adapter: AdapterFilter::Index(index), ..Default::default() };
                let gpu = pollster::block_on(Gpu::request(options)).map_err(|e| e.to_string())?;
                // A device that cannot run the two kernels of the ceilings can run nothing.
                let ceilings = gpu.ceilings().map_err(|e| e.to_string())?;
                Ok(Backend {
                    name,
                    card: profile.class == DeviceClass::Discrete,
                    adapter: profile.name,
                    driver: profile.driver,
                    roof: Some(Roofline {
                        bandwidth: ceilings.copy_bytes_per_second,
                        peak: ceilings.fma_flop_per_second,
                    }),
                    world: World::Wgpu(gpu),
                    gone: false,
                })
            }
        }
    }
}

/// Copies ceilings to backends without them on the same device, since peak rates do not depend on the backend.
pub(crate) fn share_roofs(backends: &mut [Backend]) {
    let device = |backend: &Backend| backend.name.split_once('-').map(|(_, device)| device.to_owned());
    let known: Vec<_> = backends.iter().filter_map(|b| device(b).zip(b.roof)).collect();
    for backend in backends.iter_mut().filter(|b| b.roof.is_none()) {
        let name = device(backend);
        backend.roof = known.iter().find(|(of, _)| Some(of) == name.as_ref()).map(|(_, roof)| *roof);
    }
}

impl Backend {
    /// Solves the problem, checks the result and times it.
    pub(crate) fn solve(&mut self, problem: &Problem) -> Result<Outcome> {
        let outcome = match &self.world {
            World::Wgpu(gpu) => on_wgpu(gpu, problem),
            #[cfg(feature = "cuda")]
            World::Cuda(gpu) => cuda::solve(gpu, problem),
            #[cfg(feature = "cuda")]
            World::Cublas(cublas) => cublas.solve(problem),
            World::Processor(processor) => on_processor(*processor, problem),
        };
        if let Err(e) = &outcome {
            self.gone = e.kind() == ErrorKind::DeviceLost;
        }
        outcome
    }
}

fn on_wgpu(gpu: &Gpu, problem: &Problem) -> Result<Outcome> {
    let Some(plan) = &problem.on_wgpu else { return Ok(Outcome::Missing) };
    let executable = plan(gpu)?;
    let buffers = problem.operands.iter().map(|o| o.upload(gpu)).collect::<Result<Vec<_>>>()?;
    let raw: Vec<_> = buffers.iter().map(|b| b.raw()).collect();
    let mut rec = gpu.recorder();
    executable.record(&mut rec, &raw)?;
    rec.submit()?;
    let variant = executable.program().variant().to_owned();
    let check = (problem.check)(&buffers[problem.output].bytes()?)?;
    if !check.passed {
        return Ok(Outcome::Wrong { variant, check });
    }
    let runs = if gpu.profile().is_cpu() { 5 } else { 25 };
    let measured = gpu.measure(runs, |rec| executable.record(rec, &raw))?;
    let (median, min, clock) = (measured.median(), measured.min(), measured.clock.to_string());
    // Frees memory that the next problem, of another size, cannot use.
    drop(buffers);
    gpu.trim();
    Ok(Outcome::Timed(Timed { variant, check, median, min, clock }))
}

/// Maximum seconds for all runs of a routine.
const PATIENCE: f64 = 0.25;

fn timed(routine: &mut dyn Routine) -> Result<f64> {
    let start = Instant::now();
    routine.run()?;
    Ok(start.elapsed().as_secs_f64())
}

fn on_processor(processor: Processor, problem: &Problem) -> Result<Outcome> {
    let Some((_, make)) = problem.routines.iter().find(|(of, _)| *of == processor) else {
        return Ok(Outcome::Missing);
    };
    let mut routine = make();
    let first = timed(&mut *routine)?;
    let check = (problem.check)(&routine.bytes())?;
    let variant = processor.name().trim_start_matches("cpu-").to_owned();
    if !check.passed {
        return Ok(Outcome::Wrong { variant, check });
    }
    let runs = (PATIENCE / first.max(1e-9)).clamp(1.0, 25.0) as usize;
    let mut seconds = (0..runs).map(|_| timed(&mut *routine)).collect::<Result<Vec<_>>>()?;
    seconds.sort_by(f64::total_cmp);
    let (median, min) = (seconds[seconds.len() / 2], seconds[0]);
    Ok(Outcome::Timed(Timed { variant, check, median, min, clock: "host".into() }))
}
