//! `op --backend cuda`: runs an op on an NVIDIA card through CUDA.

use crate::Request;
use crate::common::{Failure, refuse};
use tilework::program::OpCall;

#[cfg(not(feature = "cuda"))]
pub(crate) fn run(_: &Request, _: &str, _: OpCall, _: &mut dyn std::io::Write) -> Result<(), Failure> {
    Err(refuse!("--backend cuda: this program was built without the feature `cuda` (cargo run --features cuda)"))
}

/// Runs the op on the first CUDA device with `device` in its name.
#[cfg(feature = "cuda")]
pub(crate) fn run(request: &Request, device: &str, call: OpCall, out: &mut dyn std::io::Write) -> Result<(), Failure> {
    use crate::common::npy;
    use tilework::cuda::{CudaFilter, CudaGpu, CudaOptions};

    if request.checked {
        return Err(refuse!("--checked: CUDA kernels have no runtime checks; leave it out, or use another backend"));
    }
    let devices = CudaGpu::devices()?;
    let wanted = device.to_lowercase();
    let found = devices.iter().position(|profile| profile.name.to_lowercase().contains(&wanted));
    let Some(ordinal) = found else {
        let names: Vec<_> = devices.iter().map(|profile| profile.name.as_str()).collect();
        return Err(refuse!(
            "--adapter {wanted}: no CUDA device has this in its name; there are: {}",
            names.join(", ")
        ));
    };
    call.lower_on_cuda(&devices[ordinal])?;
    let gpu = CudaGpu::open(CudaOptions { device: CudaFilter::Ordinal(ordinal), ..Default::default() })?;
    let stream = gpu.stream()?;
    let ready = gpu.ready(call)?;
    ready.run(&stream)?;
    let results = ready.results()?;
    crate::measure(request, Some(&ready.report()), out, |runs| {
        let measured = stream.measure(runs, |stream| ready.run(stream))?;
        Ok((measured.seconds, measured.clock))
    })?;
    npy::write_all(request.outputs.iter().zip(results))
}
