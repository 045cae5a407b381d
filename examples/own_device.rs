//! Records tilework's ops into a program's own wgpu device, buffers and encoder.
//!
//! It normalises energies: its own pass writes them, tilework sums them, its second pass divides by the sum, and
//! tilework finds the maximum. All four are in one encoder and one submission, and the sum stays on the device.
//!
//! ```sh
//! cargo run --release --example own_device
//! ```
//!
//! Exit code 1 if the result is wrong, 2 if something fails, 3 without an adapter.

#[path = "common/mod.rs"]
mod common;

use common::{Args, Failure, exit_code, say};
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use tilework::{prelude::*, wgpu};

const USAGE: &str = "\
usage: own_device

Takes no arguments.
";

/// Not a multiple of any workgroup size.
const N: u32 = 1_000_003;
/// Threads per workgroup of the program's own passes.
const WORKGROUP_SIZE: u32 = 64;

/// The program's own shaders. Energies repeat 0, 1/1024, ... 1023/1024.
const SHADER: &str = "
    @group(0) @binding(0) var<storage, read_write> energies: array<f32>;
    @group(0) @binding(1) var<storage, read> total: array<f32>;

    fn index(workgroup: vec3<u32>, workgroups: vec3<u32>, local: u32) -> u32 {
        return (workgroup.y * workgroups.x + workgroup.x) * 64u + local;
    }

    @compute @workgroup_size(64)
    fn fill(
        @builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32,
    ) {
        let i = index(workgroup, workgroups, local);
        if i < arrayLength(&energies) {
            energies[i] = f32(i % 1024u) / 1024.0;
        }
    }

    @compute @workgroup_size(64)
    fn normalise(
        @builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32,
    ) {
        let i = index(workgroup, workgroups, local);
        if i < arrayLength(&energies) {
            energies[i] /= total[0];
        }
    }
";

fn main() -> ExitCode {
    common::main("own_device", std::io::stdout().lock(), |args, out, err| {
        let result = parse(args).and_then(|help| match help {
            true => say(out, USAGE).map(|()| 0),
            false => pollster::block_on(run(out)).map_err(Failure::from),
        });
        exit_code("own_device", result, err)
    })
}

/// Returns whether `--help` is given.
fn parse(args: lexopt::Parser) -> Result<bool, Failure> {
    use lexopt::prelude::*;
    match Args::new(args, &[]).next()? {
        None => Ok(false),
        Some(Short('h') | Long("help")) => Ok(true),
        Some(other) => Err(other.unexpected().into()),
    }
}

async fn run(out: &mut dyn Write) -> Result<u8, Box<dyn Error>> {
    // The program's own device. A process should have one Instance; tilework makes none if all its devices come from
    // outside and use no cooperative matrices.
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env());
    let Ok(adapter) = instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await else {
        // tilework's error says what to install, or which variable hides the adapters.
        let error = Gpu::new().err();
        return Err(error.map_or_else(|| Failure::missing("this machine has no adapter"), Failure::from).into());
    };
    // All features of the adapter that tilework uses. Add your own here.
    let (device, queue) = adapter.request_device(&Gpu::device_descriptor(&adapter)).await?;
    let name = adapter.get_info().name;
    say(out, &format!("device: {name}, opened with the features that tilework uses\n"))?;

    // The program's buffers: energies, and single numbers.
    let buffer = |label, elements: u32, usage| {
        let size = u64::from(elements) * 4;
        device.create_buffer(&wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false })
    };
    let storage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let energies = buffer("energies", N, storage);
    let total = buffer("total", 1, storage);
    let greatest = buffer("greatest", 1, storage);
    let staging = buffer("staging", 2, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);

    // tilework on the same device. It wraps the buffers without copying.
    let gpu = Gpu::from_wgpu(device.clone(), queue.clone())?;
    let energies_view = gpu.wrap::<f32>(energies.clone())?;
    let total_view = gpu.wrap::<f32>(total.clone())?;
    let greatest_view = gpu.wrap::<f32>(greatest.clone())?;
    let sum = Reduce::new(Sum, N as usize).plan::<f32>(&gpu)?;
    let max = Reduce::new(Max, N as usize).plan::<f32>(&gpu)?;

    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("own"),
        source: wgpu::ShaderSource::Wgsl(SHADER.into()),
    });
    let pipeline = |entry| {
        device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(entry),
            layout: None,
            module: &module,
            entry_point: Some(entry),
            compilation_options: Default::default(),
            cache: None,
        })
    };
    let (fill, normalise) = (pipeline("fill"), pipeline("normalise"));
    let bind = |pipeline: &wgpu::ComputePipeline, buffers: &[&wgpu::Buffer]| {
        let entries: Vec<_> = (0..)
            .zip(buffers)
            .map(|(binding, b)| wgpu::BindGroupEntry { binding, resource: b.as_entire_binding() })
            .collect();
        device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        })
    };
    let fill_group = bind(&fill, &[&energies]);
    let normalise_group = bind(&normalise, &[&energies, &total]);

    // One encoder; each step sees the results of those before it.
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("own") });
    own_pass(&mut encoder, &fill, &fill_group);

    let mut rec = gpu.recorder_in(&mut encoder);
    sum.record(&mut rec, &energies_view, &total_view)?;
    rec.finish();

    own_pass(&mut encoder, &normalise, &normalise_group);

    let mut rec = gpu.recorder_in(&mut encoder);
    max.record(&mut rec, &energies_view, &greatest_view)?;
    rec.finish();

    encoder.copy_buffer_to_buffer(&total, 0, &staging, 0, 4);
    encoder.copy_buffer_to_buffer(&greatest, 0, &staging, 4, 4);
    queue.submit([encoder.finish()]);

    // The program's own readback.
    let (sender, mapped) = std::sync::mpsc::channel();
    staging.map_async(wgpu::MapMode::Read, .., move |result| {
        // The receiver waits below.
        let _ = sender.send(result);
    });
    device.poll(wgpu::PollType::wait_indefinitely())?;
    mapped.recv()??;
    let words = staging.get_mapped_range(..)?.to_vec();
    let [total, greatest] = *bytemuck::pod_collect_to_vec::<u8, f32>(&words) else {
        return Err("the staging buffer holds two numbers".into());
    };
    say(out, &format!("sum of {N} energies: {total}; the greatest is {greatest} of it\n"))?;

    // Multiples of 1/1024 are exact, and so is the reference's sum, within its bound.
    let host: Vec<f32> = (0..N).map(|i| (i % 1024) as f32 / 1024.0).collect();
    let wanted = host.iter().map(|&e| f64::from(e)).sum::<f64>();
    let bound = tilework::reference::reduce_bound(&tilework::primitives::Operator::Sum, 1, host.len(), &host)[0];
    // The division rounds by at most 2.5 units in the last place (WGSL); the divisor errs by its bound.
    let quotient = 1023.0 / 1024.0 / wanted;
    let slack = quotient * (2.5 * f64::from(f32::EPSILON) + bound / wanted);
    let right = (f64::from(total) - wanted).abs() <= bound && (f64::from(greatest) - quotient).abs() <= slack;
    if !right {
        say(out, &format!("WRONG: the sum should be {wanted}, and the greatest {quotient} of it\n"))?;
        return Ok(1);
    }
    say(out, &format!("both agree with the host's results: {wanted} and {quotient:e}\n"))?;
    Ok(0)
}

/// Records a pass of the program's own over every energy.
fn own_pass(encoder: &mut wgpu::CommandEncoder, pipeline: &wgpu::ComputePipeline, group: &wgpu::BindGroup) {
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(pipeline);
    pass.set_bind_group(0, group, &[]);
    let workgroups = N.div_ceil(WORKGROUP_SIZE);
    let columns = workgroups.min(65535);
    pass.dispatch_workgroups(columns, workgroups.div_ceil(columns), 1);
}
