//! Parameters of kernels: uniform buffers whose contents are known when planning.

use crate::error::{Result, err};
use crate::gpu::pool::Raw;
use crate::gpu::{Gpu, lock};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// A uniform buffer that holds the parameters of all dispatches of a program.
#[derive(Debug)]
pub(in crate::gpu) struct ParamsBuffer {
    pub(in crate::gpu) raw: Raw,
}

/// Parameter buffers by content: planning an op again finds its own.
#[derive(Debug, Default)]
pub(in crate::gpu) struct ParamsCache {
    by_bytes: Mutex<HashMap<Vec<u8>, Arc<ParamsBuffer>>>,
}

impl ParamsCache {
    /// Forgets parameters that no plan uses.
    pub(in crate::gpu) fn trim(&self) {
        let unused = Self::unused(&mut lock(&self.by_bytes));
        drop(unused);
    }

    /// Takes out parameters that no plan uses.
    fn unused(by_bytes: &mut HashMap<Vec<u8>, Arc<ParamsBuffer>>) -> Vec<Arc<ParamsBuffer>> {
        let unused = by_bytes.extract_if(|_, params| Arc::strong_count(params) == 1);
        unused.map(|(_, params)| params).collect()
    }
}

impl Gpu {
    pub(in crate::gpu) fn params(&self, bytes: Vec<u8>) -> Result<Arc<ParamsBuffer>> {
        /// Number of distinct parameter blocks above which unused ones are dropped.
        const KEEP: usize = 1024;
        let unused = {
            let mut cache = lock(&self.inner.params.by_bytes);
            if let Some(params) = cache.get(&bytes) {
                return Ok(params.clone());
            }
            if cache.len() >= KEEP { ParamsCache::unused(&mut cache) } else { Vec::new() }
        };
        drop(unused);
        let raw = self.create_filled("params", &bytes, wgpu::BufferUsages::UNIFORM)?;
        let params = Arc::new(ParamsBuffer { raw });
        // Another thread may have made the same buffer.
        let kept = lock(&self.inner.params.by_bytes).entry(bytes).or_insert_with(|| params.clone()).clone();
        Ok(kept)
    }

    /// A new buffer with these bytes, a multiple of 4 of them.
    pub(super) fn create_filled(&self, label: &str, bytes: &[u8], usage: wgpu::BufferUsages) -> Result<Raw> {
        let raw = self.create_raw(label, bytes.len() as u64, usage, true)?;
        self.scoped("writing parameters", || {
            let mut view =
                raw.buffer.slice(..).get_mapped_range_mut().map_err(|e| err!(DeviceLost, "parameters: {e}"))?;
            view.slice(..).copy_from_slice(bytes);
            drop(view);
            raw.buffer.unmap();
            Ok(())
        })??;
        Ok(raw)
    }
}
