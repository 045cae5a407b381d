//! What the page `examples/web` computes: [`cases`], which run, check and time ops, and [`plans`], programs for the
//! pictures, which JavaScript records on its own device.
//!
//! It runs in a worker, so that checks on the processor do not hold up the page.

mod cases;
mod plans;
#[path = "../../../common/random.rs"]
mod random;

use cases::{Case, cases};
use std::cell::OnceCell;
use tilework::{Gpu, GpuOptions};
use wasm_bindgen::prelude::wasm_bindgen;

thread_local! {
    static GPU: OnceCell<Gpu> = const { OnceCell::new() };
}

/// Opens the device. Returns the adapter's name and driver.
///
/// # Errors
/// The text of the library's error, which says what to do if the browser has no WebGPU.
#[wasm_bindgen]
pub async fn open() -> Result<Vec<String>, String> {
    let gpu = Gpu::request(GpuOptions::default()).await.map_err(|e| e.to_string())?;
    let profile = gpu.profile();
    let about = vec![profile.name.clone(), profile.driver.clone()];
    GPU.with(|place| place.set(gpu).map_err(|_| "open was called before".to_owned()))?;
    Ok(about)
}

/// The op, the type and the size of each case: three texts a case, in order of the ops, from small to large.
#[wasm_bindgen]
pub fn list() -> Vec<String> {
    cases().iter().flat_map(|case| [case.op(), case.dtype(), &case.size()].map(str::to_owned)).collect()
}

/// The result of a case.
#[wasm_bindgen(getter_with_clone)]
pub struct Row {
    /// The variant that ran.
    pub variant: String,
    /// Seconds of the median run.
    pub seconds: f64,
    /// Seconds of the fastest run.
    pub min_seconds: f64,
    /// 10^9 bytes a second: each input read once, each output written once.
    pub gbps: f64,
    /// 10^9 operations a second.
    pub gflops: f64,
    /// The clock: `device`, or `wall clock`.
    pub clock: String,
    /// Elements that were compared with the processor's.
    pub compared: usize,
    /// What is wrong; empty if the result is right.
    pub wrong: String,
}

/// Runs, checks and times a case of [`list`].
///
/// # Errors
/// The text of the library's error.
#[wasm_bindgen]
pub async fn run(index: usize) -> Result<Row, String> {
    let gpu = GPU.with(|gpu| gpu.get().cloned()).ok_or("call open first")?;
    let case: Case = *cases().get(index).ok_or("there is no such case")?;
    let row = case.run(&gpu).await.map_err(|e| e.to_string());
    gpu.trim();
    row
}

/// Plans an op for a device with WebGPU's default limits on the adapter that [`open`] opened, as `Program::emit` writes
/// it. The answer is the program, then name and text of each shader. `number` is the op's option: see
/// [`plans::program`].
///
/// # Errors
/// The text of the library's error.
#[wasm_bindgen]
pub fn plan(op: &str, extents: Vec<usize>, number: f64) -> Result<Vec<String>, String> {
    let class = GPU.with(|gpu| gpu.get().map(|gpu| gpu.profile().class)).ok_or("call open first")?;
    let planned = plans::program(op, &extents, number, class);
    let emitted = planned.and_then(|p| p.emit()).map_err(|e| e.to_string())?;
    let files = emitted.shaders.into_iter().flat_map(|(name, text)| [name, text]);
    Ok([emitted.json].into_iter().chain(files).collect())
}
