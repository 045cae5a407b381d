//! What the runtime costs the host: planning, recording, submitting.

#![allow(clippy::expect_used, reason = "a benchmark that cannot run has nothing better to do")]

mod support;

use support::Bench;
use tilework::Result;
use tilework::prelude::*;

/// Dispatches of one recording.
const DISPATCHES: usize = 1000;

fn main() -> Result<()> {
    support::each(family)
}

fn family(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let desc = Zip::new(ZipFn::Add, 1024);
    let (x, y, z) = (gpu.alloc_zeroed::<f32>(1024)?, gpu.alloc_zeroed::<f32>(1024)?, gpu.alloc::<f32>(1024)?);

    let planned = gpu.clone();
    bench.host("plan/cached", || {
        desc.plan::<f32>(&planned).map(drop).expect("plans again");
    });

    let plan = desc.plan::<f32>(&gpu)?;
    let record = || -> Result<()> {
        let mut encoder = gpu.device().create_command_encoder(&Default::default());
        let mut rec = gpu.recorder_in(&mut encoder);
        for _ in 0..DISPATCHES {
            plan.record(&mut rec, &x, &y, &z)?;
        }
        rec.finish();
        drop(encoder.finish());
        Ok(())
    };
    bench.host("record/tilework", || record().expect("records"));

    // The same kernel by hand in bare wgpu, with one cached bind group.
    let bare = Bare::new(&gpu, &plan, [x.raw(), y.raw(), z.raw()])?;
    bench.host("record/bare wgpu", || bare.record(gpu.device()));

    let submit = gpu.clone();
    bench.host("submit/one small op", || {
        let mut rec = submit.recorder();
        plan.record(&mut rec, &x, &y, &z).and_then(|()| rec.submit()).expect("submits");
    });
    gpu.wait()?;
    Ok(())
}

/// A pipeline and a bind group made with wgpu alone.
struct Bare {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    workgroups: [u32; 3],
}

impl Bare {
    fn new(gpu: &Gpu, plan: &tilework::Plan<impl Sized>, buffers: [&wgpu::Buffer; 3]) -> Result<Self> {
        let program = plan.program();
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
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &entries,
        });
        let tilework::program::Grid::Direct(workgroups) = dispatch.grid else {
            unreachable!("zip dispatches directly")
        };
        Ok(Self { pipeline, group, workgroups })
    }

    fn record(&self, device: &wgpu::Device) {
        let mut encoder = device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        for _ in 0..DISPATCHES {
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.group, &[]);
            let [x, y, z] = self.workgroups;
            pass.dispatch_workgroups(x, y, z);
        }
        drop(pass);
        drop(encoder.finish());
    }
}
