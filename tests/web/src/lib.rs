//! Tests that run in a page of a browser. `run.mjs` calls the functions that this exports, one after another, and
//! prints what they return.
//!
//! [`cases`] are those of the catalogue test: every op by name against its reference. [`runtime`] are tests of devices,
//! readback, solvers and bad input.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../support/by_name.rs"]
mod by_name;
#[path = "../../../examples/common/random.rs"]
mod random;
#[path = "../../support/recording.rs"]
mod recording;
mod runtime;

use by_name::{cases, complaint, programs, wanted};
use random::Random;
use std::cell::OnceCell;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tilework::{Gpu, GpuOptions, HostArray};
use wasm_bindgen::prelude::wasm_bindgen;

/// What the tests have written so far, shared with the logger.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

thread_local! {
    static GPU: OnceCell<Gpu> = const { OnceCell::new() };
    static LINES: Lines = Lines::default();
}

fn gpu() -> Gpu {
    GPU.with(|gpu| gpu.get().expect("open is called first").clone())
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

/// Opens the page's device. Call this first.
///
/// # Errors
/// The text of the library's error.
#[wasm_bindgen]
pub async fn open(defaults: bool) -> Result<(), String> {
    std::panic::set_hook(Box::new(|info| console_error(&info.to_string())));
    let options = GpuOptions { webgpu_defaults: defaults, ..Default::default() };
    let gpu = Gpu::request(options).await.map_err(|e| e.to_string())?;
    let way = if defaults { "WebGPU defaults" } else { "in a page" };
    let lines = LINES.with(Clone::clone);
    recording::begin(|| Box::new(lines), gpu.profile(), way);
    GPU.with(|place| place.set(gpu).map_err(|_| "open was called before".to_owned()))
}

/// Takes what was recorded since the last call: lines of JSON.
#[wasm_bindgen]
pub fn recorded() -> String {
    let bytes = LINES.with(|lines| std::mem::take(&mut *lines.0.lock().unwrap()));
    String::from_utf8(bytes).expect("JSON is text")
}

/// The names of all tests: of ops, then of the runtime.
#[wasm_bindgen]
pub fn names() -> Vec<String> {
    let ops = programs().map(|op| format!("op::{}", op.name));
    ops.chain(runtime::TESTS.iter().map(|(name, _)| format!("runtime::{name}"))).collect()
}

/// Runs a test, with all of its cases or only the first. Returns the number of cases that were compared.
///
/// # Errors
/// What is wrong, a line for each case.
#[wasm_bindgen]
pub async fn run(name: String, all: bool) -> Result<usize, String> {
    let gpu = gpu();
    if let Some(test) = name.strip_prefix("runtime::") {
        let (_, run) = runtime::TESTS.iter().find(|(of, _)| *of == test).ok_or("there is no such test")?;
        return run(gpu).await.map(|()| 1);
    }
    let op = programs().find(|op| name.strip_prefix("op::") == Some(op.name)).ok_or("there is no such op")?;
    let (mut failures, mut compared) = (Vec::new(), 0);
    for case in cases(op, all) {
        let call = match case.call() {
            Ok(call) => call,
            Err(e) if case.example => return Err(format!("{case}: {e}")),
            Err(_) => continue,
        };
        if let Err(e) = call.lower(gpu.profile()) {
            if case.example && case.variant == "auto" {
                failures.push(format!("{case}: {e}"));
            }
            continue;
        }
        let why = match wanted(op, &call) {
            Err(why) => Some(why),
            Ok(None) => None,
            Ok(Some(wanted)) => {
                compared += 1;
                complaint(&wanted, results(&gpu, call).await)
            }
        };
        failures.extend(why.map(|why| format!("{case}: {why}")));
    }
    gpu.trim();
    if compared == 0 {
        failures.push(format!("{name}: no case was compared"));
    }
    if failures.is_empty() { Ok(compared) } else { Err(failures.join("\n")) }
}

async fn results(gpu: &Gpu, call: tilework::program::OpCall) -> tilework::Result<Vec<HostArray>> {
    let ready = gpu.ready(call)?;
    let mut rec = gpu.recorder();
    ready.record(&mut rec)?;
    rec.submit()?;
    ready.results_async().await
}
