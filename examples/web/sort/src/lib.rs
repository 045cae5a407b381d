//! Sorts numbers in a page: the least that a program for browsers needs.

use tilework::prelude::*;
use wasm_bindgen::prelude::wasm_bindgen;

async fn sort(keys: &[u32]) -> tilework::Result<Vec<u32>> {
    let gpu = Gpu::request(GpuOptions::default()).await?;
    let keys = gpu.upload(keys)?;
    gpu.sort(&keys)?.read_async().await
}

/// Returns the keys in increasing order.
///
/// # Errors
/// The text of the library's error, which says what to do if the browser has no WebGPU.
#[wasm_bindgen]
pub async fn sorted(keys: Vec<u32>) -> Result<Vec<u32>, String> {
    sort(&keys).await.map_err(|e| e.to_string())
}
