//! Shared by tests of the CUDA backend.

use std::sync::OnceLock;
use tilework::cuda::{CudaGpu, Nvrtc};

/// The first CUDA device with a compiler for its kernels, if both are available.
///
/// Prints a line if there is none; REQUIRE_CUDA=1 makes that a failure.
pub(crate) fn cuda() -> Option<&'static CudaGpu> {
    static CUDA: OnceLock<Option<CudaGpu>> = OnceLock::new();
    let found = CUDA.get_or_init(|| {
        let opened = CudaGpu::new().and_then(|cuda| cuda.nvrtc().map(|_| cuda.clone()));
        opened.inspect_err(|e| missing("REQUIRE_CUDA", "a CUDA device", e)).ok()
    });
    found.as_ref()
}

/// The compiler, if it is found; REQUIRE_NVRTC=1 makes it a failure if not.
pub(crate) fn nvrtc() -> Option<&'static Nvrtc> {
    static NVRTC: OnceLock<Option<Nvrtc>> = OnceLock::new();
    let found = NVRTC.get_or_init(|| Nvrtc::find(None).inspect_err(|e| missing("REQUIRE_NVRTC", "NVRTC", e)).ok());
    found.as_ref()
}

fn missing(variable: &str, what: &str, e: &tilework::Error) {
    assert!(std::env::var_os(variable).is_none(), "{variable} is set, and {e}");
    eprintln!("skipped: tests that need {what} do nothing: {e}");
}
