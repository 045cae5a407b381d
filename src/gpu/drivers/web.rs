//! The adapter that a browser offers.

use crate::error::{Error, Result, err};
use crate::gpu::{AdapterFilter, GpuOptions, adapter};

/// Asks the browser for its fastest adapter. The page cannot list adapters, so a filter only accepts or rejects it.
pub(in crate::gpu) async fn find(options: &GpuOptions) -> Result<wgpu::Adapter> {
    let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
    desc.backends = wgpu::Backends::BROWSER_WEBGPU;
    let asked =
        wgpu::RequestAdapterOptions { power_preference: wgpu::PowerPreference::HighPerformance, ..Default::default() };
    let adapter = wgpu::Instance::new(desc).request_adapter(&asked).await.map_err(|_| no_adapter())?;
    let profile = adapter::profile_of(&adapter);
    let filter = &options.adapter;
    if options.backend.is_none() && (*filter == AdapterFilter::Best || filter.fits(0, &profile)) {
        return Ok(adapter);
    }
    let backend = options.backend.map_or(String::new(), |b| format!(" on {b}"));
    Err(err!(NoAdapter, "no adapter fits {filter}{backend}; this browser offers {} (webgpu)", profile.name))
}

fn no_adapter() -> Error {
    err!(
        NoAdapter,
        "no adapter: this browser offers no WebGPU here; open the page by https or from localhost, in a recent \
         Chrome, Edge, Firefox or Safari; Chrome on Linux may need chrome://flags/#enable-unsafe-webgpu"
    )
}
