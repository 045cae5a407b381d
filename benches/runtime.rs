//! Host times of the runtime: cold and warm starts, planning, recording, submitting.

#![allow(clippy::expect_used, reason = "a benchmark that cannot run panics")]

mod support;

use support::Bench;
use tilework::gpu::{AdapterFilter, CacheDir};
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Program};
use tilework::{Result, operations};

/// Dispatches per submission.
const DISPATCHES: usize = 10_000;

fn main() -> Result<()> {
    support::groups(&[("runtime", runtime), ("start", start)])
}

fn runtime(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let desc = Zip::new(ZipFn::Add, 1024);
    let (x, y, z) = (gpu.alloc_zeroed::<f32>(1024)?, gpu.alloc_zeroed::<f32>(1024)?, gpu.alloc::<f32>(1024)?);

    let planned = gpu.clone();
    bench.host("plan/cached", || {
        desc.plan::<f32>(&planned).map(drop).expect("plans again");
    });

    // Kernels whose text is generated for their tile.
    let (planned, gemm) = (gpu.clone(), Gemm::new(1024, 1024, 1024));
    gemm.plan::<f32>(&gpu)?;
    bench.host("plan/cached gemm", || {
        gemm.plan::<f32>(&planned).map(drop).expect("plans again");
    });

    let plan = desc.plan::<f32>(&gpu)?;
    let record = |submit: bool| -> Result<()> {
        let mut encoder = gpu.device().create_command_encoder(&Default::default());
        let mut rec = gpu.recorder_in(&mut encoder);
        for _ in 0..DISPATCHES {
            plan.record(&mut rec, &x, &y, &z)?;
        }
        rec.finish();
        let commands = encoder.finish();
        if submit {
            gpu.queue().submit([commands]);
            gpu.wait()?;
        }
        Ok(())
    };
    // The same kernel in bare wgpu, with one cached bind group.
    let bare = Bare::new(&gpu, plan.program(), [x.raw(), y.raw(), z.raw()])?;
    for (name, submit) in [("record 10000", false), ("submit 10000", true)] {
        bench.host(&format!("{name}/tilework"), || record(submit).expect("records"));
        bench.host(&format!("{name}/bare wgpu"), || bare.record(&gpu, submit));
    }

    let submit = gpu.clone();
    bench.host("submit/one small op", || {
        let mut rec = submit.recorder();
        plan.record(&mut rec, &x, &y, &z).and_then(|()| rec.submit()).expect("submits");
    });
    gpu.wait()
}

/// Opens the device and makes an op of each kind ready, with our disk cache and without. Turn the driver's cache off
/// yourself.
fn start(bench: &mut Bench) -> Result<()> {
    let name = bench.gpu.profile().name.clone();
    let programs = first_programs(bench.gpu.profile())?;
    let folder = std::env::temp_dir().join(format!("tilework-bench-{}", std::process::id()));
    let open = |cache: CacheDir| {
        let options = GpuOptions { adapter: AdapterFilter::Name(name.clone()), cache, ..Default::default() };
        pollster::block_on(Gpu::request(options)).expect("the device opens again")
    };
    bench.host("start/open device", || drop(open(CacheDir::Off)));
    let ready = |cache: CacheDir| open(cache).warm_up(&programs).expect("all kernels compile");
    bench.host("start/cold", || ready(CacheDir::Off));
    ready(CacheDir::At(folder.clone()));
    bench.host("start/warm", || ready(CacheDir::At(folder.clone())));
    let _ = std::fs::remove_dir_all(folder);
    Ok(())
}

/// The sample programs of each op's first variant.
fn first_programs(profile: &DeviceProfile) -> Result<Vec<Program>> {
    let fits = |op: &'static tilework::program::Operation| {
        (op.variants)().iter().find(|v| v.requires.missing(profile).is_none()).map(|v| (op, v.name))
    };
    let samples =
        operations().filter(|op| !op.solver).filter_map(fits).map(|(op, variant)| (op.samples)(profile, variant));
    Ok(samples.collect::<Result<Vec<_>>>()?.concat())
}

/// A pipeline and a bind group made with wgpu alone.
struct Bare {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    workgroups: [u32; 3],
}

impl Bare {
    fn new(gpu: &Gpu, program: &Program, buffers: [&wgpu::Buffer; 3]) -> Result<Self> {
        let (kernel, dispatch) = (&program.kernels[0], &program.dispatches[0]);
        let text = kernel.expand(tilework::shader::Target::Naga)?;
        let device = gpu.device();
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(text.text().into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some(kernel.entry),
            compilation_options: Default::default(),
            cache: None,
        });
        let params = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 16,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        gpu.queue().write_buffer(&params, 0, &dispatch.params);
        let entries: Vec<_> = std::iter::once(&params)
            .chain(buffers)
            .enumerate()
            .map(|(i, b)| wgpu::BindGroupEntry { binding: i as u32, resource: b.as_entire_binding() })
            .collect();
        let layout = pipeline.get_bind_group_layout(0);
        let group =
            device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries });
        let tilework::program::Grid::Direct(workgroups) = dispatch.grid else {
            unreachable!("zip dispatches directly")
        };
        Ok(Self { pipeline, group, workgroups })
    }

    fn record(&self, gpu: &Gpu, submit: bool) {
        let mut encoder = gpu.device().create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        for _ in 0..DISPATCHES {
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.group, &[]);
            let [x, y, z] = self.workgroups;
            pass.dispatch_workgroups(x, y, z);
        }
        drop(pass);
        let commands = encoder.finish();
        if submit {
            gpu.queue().submit([commands]);
            gpu.wait().expect("the device is there");
        }
    }
}
