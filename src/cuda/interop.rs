//! Memory and order shared with wgpu.

use crate::error::{Result, err};
use crate::gpu::{ExportedMemory, Gpu, Timeline};
use cudarc::driver::sys;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

fn check(doing: &str, result: sys::CUresult) -> Result<()> {
    match result {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        e => Err(err!(Validation, "{doing}: {e:?}")),
    }
}

/// Memory of wgpu, open in CUDA.
pub struct Imported {
    memory: sys::CUexternalMemory,
    pub address: sys::CUdeviceptr,
}

impl Imported {
    /// Needs a current context.
    pub fn new(exported: ExportedMemory) -> Result<Self> {
        const OP: &str = "opening memory of wgpu in CUDA";
        let handle = sys::CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
            type_: sys::CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
            handle: sys::CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st__bindgen_ty_1 { fd: exported.fd.as_raw_fd() },
            size: exported.allocation_bytes,
            flags: sys::CUDA_EXTERNAL_MEMORY_DEDICATED,
            reserved: [0; 16],
        };
        let mut memory = std::ptr::null_mut();
        // SAFETY: the descriptor is open and of the kind and size that are said.
        check(OP, unsafe { sys::cuImportExternalMemory(&mut memory, &handle) })?;
        // CUDA's now.
        let _ = exported.fd.into_raw_fd();
        let mut imported = Self { memory, address: 0 };
        let part = sys::CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
            offset: 0,
            size: exported.buffer_bytes,
            flags: 0,
            reserved: [0; 16],
        };
        // SAFETY: the range lies within the memory.
        check(OP, unsafe { sys::cuExternalMemoryGetMappedBuffer(&mut imported.address, memory, &part) })?;
        Ok(imported)
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        // SAFETY: both are ours.
        unsafe {
            if self.address != 0 {
                let _ = sys::cuMemFree_v2(self.address);
            }
            let _ = sys::cuDestroyExternalMemory(self.memory);
        }
    }
}

struct Semaphore {
    vulkan: Timeline,
    cuda: sys::CUexternalSemaphore,
    value: Mutex<u64>,
}

impl Semaphore {
    fn new(gpu: &Gpu) -> Result<Self> {
        let vulkan = Timeline::new(gpu)?;
        let fd: OwnedFd = vulkan.export()?;
        let handle = sys::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
            type_: sys::CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD,
            handle: sys::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st__bindgen_ty_1 { fd: fd.as_raw_fd() },
            flags: 0,
            reserved: [0; 16],
        };
        let mut cuda = std::ptr::null_mut();
        // SAFETY: as above.
        check("opening a semaphore", unsafe { sys::cuImportExternalSemaphore(&mut cuda, &handle) })?;
        let _ = fd.into_raw_fd();
        Ok(Self { vulkan, cuda, value: Mutex::new(0) })
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: ours.
        let _ = unsafe { sys::cuDestroyExternalSemaphore(self.cuda) };
    }
}

pub struct Bridge {
    stream: sys::CUstream,
    to_cuda: Semaphore,
    to_wgpu: Semaphore,
}

impl Bridge {
    pub fn new(gpu: &Gpu, stream: sys::CUstream) -> Result<Self> {
        Ok(Self { stream, to_cuda: Semaphore::new(gpu)?, to_wgpu: Semaphore::new(gpu)? })
    }

    pub fn to_cuda(&self) -> Result<()> {
        let mut value = self.to_cuda.value.lock().unwrap_or_else(PoisonError::into_inner);
        *value += 1;
        self.to_cuda.vulkan.signal(*value)?;
        // SAFETY: all zeros is a value of this type.
        let mut params: sys::CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS = unsafe { std::mem::zeroed() };
        params.params.fence.value = *value;
        check("waiting", unsafe {
            sys::cuWaitExternalSemaphoresAsync(&self.to_cuda.cuda, &params, 1, self.stream)
        })
    }

    pub fn to_wgpu(&self) -> Result<()> {
        let mut value = self.to_wgpu.value.lock().unwrap_or_else(PoisonError::into_inner);
        *value += 1;
        // SAFETY: all zeros is a value of this type.
        let mut params: sys::CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS = unsafe { std::mem::zeroed() };
        params.params.fence.value = *value;
        check("signalling", unsafe {
            sys::cuSignalExternalSemaphoresAsync(&self.to_wgpu.cuda, &params, 1, self.stream)
        })?;
        self.to_wgpu.vulkan.wait(*value)
    }
}
