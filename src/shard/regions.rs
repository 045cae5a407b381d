//! Memory of the host that devices of a group read and write.

use crate::error::Result;
use crate::gpu::{Buffer, Gpu, HostWords};
use crate::store::lock;
use std::sync::{Arc, Mutex};

pub(super) const REGION_BYTES: usize = 8 << 20;

/// Memory of the host, as buffers of the devices of ranks that have used it.
struct Region {
    views: Mutex<Vec<Buffer<u32>>>,
    words: Arc<HostWords>,
}

impl Region {
    fn new() -> Result<Self> {
        Ok(Self { views: Mutex::default(), words: HostWords::new(REGION_BYTES / 4)? })
    }

    fn view(&self, gpu: &Gpu) -> Result<Buffer<u32>> {
        let mut views = lock(&self.views);
        if let Some(view) = views.iter().find(|view| view.gpu() == gpu) {
            return Ok(view.clone());
        }
        let view = gpu.import_host(&self.words)?;
        views.push(view.clone());
        Ok(view)
    }
}

#[derive(Default)]
pub(super) struct Regions {
    idle: Mutex<Vec<Region>>,
}

/// A region in use. It goes back to the group when the last user drops it.
pub(super) struct Lease {
    region: Option<Region>,
    home: Arc<Regions>,
}

impl Lease {
    pub(super) fn view(&self, gpu: &Gpu) -> Result<Option<Buffer<u32>>> {
        self.region.as_ref().map(|region| region.view(gpu)).transpose()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(region) = self.region.take() {
            lock(&self.home.idle).push(region);
        }
    }
}

impl Regions {
    pub(super) fn take(self: &Arc<Self>) -> Result<Lease> {
        let idle = lock(&self.idle).pop();
        let region = idle.map_or_else(Region::new, Ok)?;
        Ok(Lease { region: Some(region), home: self.clone() })
    }
}
