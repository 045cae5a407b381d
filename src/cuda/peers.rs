//! Memory of a device that other devices of the process reach directly, and that wgpu shares. Linux only.

use super::buffer::CudaBuffer;
use super::device::CudaGpu;
use super::interop::Bridge;
use super::stream::{CudaEvent, CudaStream};
use crate::gpu::Buffer;
use crate::program::prelude::*;
use cudarc::driver::sys;
use std::os::fd::{FromRawFd, OwnedFd};

const HANDLE: sys::CUmemAllocationHandleType = sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

/// Memory in the address space of several devices.
struct PeerMemory {
    gpu: CudaGpu,
    bytes: usize,
    address: sys::CUdeviceptr,
    handle: sys::CUmemGenericAllocationHandle,
    mapped: bool,
}

impl Drop for PeerMemory {
    fn drop(&mut self) {
        const DOING: &str = "releasing memory of several devices";
        if self.mapped {
            // SAFETY: mapped by `new`, unmapped once; the buffer that owned it has waited for all work.
            let _ = self.gpu.call(DOING, || unsafe { sys::cuMemUnmap(self.address, self.bytes) });
        }
        // SAFETY: made by `new` and released once.
        let _ = self.gpu.call(DOING, || unsafe { sys::cuMemRelease(self.handle) });
        if self.address != 0 {
            // SAFETY: reserved by `new`, and nothing is mapped there any more.
            let _ = self.gpu.call(DOING, || unsafe { sys::cuMemAddressFree(self.address, self.bytes) });
        }
    }
}

fn on(device: i32) -> sys::CUmemLocation {
    // SAFETY: a structure of numbers.
    let mut location: sys::CUmemLocation = unsafe { std::mem::zeroed() };
    location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device;
    location
}

impl PeerMemory {
    /// Allocates memory of `gpu` that these devices reach, too.
    fn new(gpu: &CudaGpu, bytes: u64, devices: &[i32]) -> Result<Self> {
        let doing = format!("alloc: {bytes} bytes on {} for {} devices", gpu.profile().name, devices.len());
        // SAFETY: a structure of numbers and an unused pointer.
        let mut wanted: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
        wanted.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        wanted.requestedHandleTypes = HANDLE;
        wanted.location = on(gpu.device());
        let (mut unit, mut handle) = (0, 0);
        let minimum = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: the pointers are valid.
        gpu.call(&doing, || unsafe { sys::cuMemGetAllocationGranularity(&mut unit, &wanted, minimum) })?;
        let size = (bytes.max(1) as usize).next_multiple_of(unit.max(1));
        // SAFETY: as above; the size is a multiple of the unit.
        gpu.call(&doing, || unsafe { sys::cuMemCreate(&mut handle, size, &wanted, 0) })?;
        let mut memory = Self { gpu: gpu.clone(), bytes: size, address: 0, handle, mapped: false };
        let address = &mut memory.address;
        // SAFETY: the pointer is valid.
        gpu.call(&doing, || unsafe { sys::cuMemAddressReserve(address, size, 0, 0, 0) })?;
        // SAFETY: the range was reserved just now, and the memory has that size.
        gpu.call(&doing, || unsafe { sys::cuMemMap(memory.address, size, 0, handle, 0) })?;
        memory.mapped = true;
        let mut access = Vec::with_capacity(devices.len());
        for device in devices {
            // SAFETY: a structure of numbers.
            let mut desc: sys::CUmemAccessDesc = unsafe { std::mem::zeroed() };
            desc.location = on(*device);
            desc.flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            access.push(desc);
        }
        // SAFETY: the range is mapped, and the list has that length.
        gpu.call(&doing, || unsafe { sys::cuMemSetAccess(memory.address, size, access.as_ptr(), access.len()) })?;
        Ok(memory)
    }

    /// A descriptor for another interface.
    fn export(&self) -> Result<OwnedFd> {
        let mut fd: i32 = -1;
        // SAFETY: the pointer is to a descriptor, as this type of handle wants it.
        self.gpu.call("exporting memory to wgpu", || unsafe {
            sys::cuMemExportToShareableHandle((&raw mut fd).cast(), self.handle, HANDLE, 0)
        })?;
        if fd < 0 {
            return Err(err!(Io, "exporting memory to wgpu: the driver gave no descriptor"));
        }
        // SAFETY: a new descriptor that is ours to close.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

impl Bridge {
    /// Allocates zeroed elements that wgpu and CUDA share, and that other devices of this process reach by their CUDA
    /// address. `devices` are the driver's numbers, with this device among them.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) or [`Validation`](ErrorKind::Validation) if a device
    /// cannot reach the memory, or wgpu cannot take it; as [`Gpu::alloc_shared`](crate::Gpu::alloc_shared).
    pub(crate) fn alloc_for<T: Element>(&self, n: usize, devices: &[i32]) -> Result<(Buffer<T>, CudaBuffer<T>)> {
        let cuda = self.stream().gpu();
        let bytes = n.saturating_mul(T::DTYPE.size()) as u64;
        let memory = PeerMemory::new(cuda, bytes, devices)?;
        let buffer = self.gpu().import_shared::<T>(memory.export()?, n)?;
        let address = memory.address;
        // SAFETY: the memory is mapped as long as `memory` lives, and has as many elements as the buffer.
        let shared = unsafe { cuda.wrap(address, n, (memory, buffer.clone())) }?;
        Ok((buffer, shared))
    }
}

impl CudaStream {
    /// Puts a copy on the stream between two places that the device reaches, of other devices too.
    ///
    /// # Safety
    /// Both places hold that many bytes until the copy is done.
    pub(crate) unsafe fn push(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        self.gpu()
            .call("copying to another device", || unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, self.handle()) })
    }

    /// Makes later work on this stream wait for an event of any device.
    pub(crate) fn wait_for_peer(&self, event: &CudaEvent) -> Result<()> {
        // SAFETY: stream and event are alive; the driver keeps what it needs of the event.
        self.gpu()
            .call("waiting for another device", || unsafe { sys::cuStreamWaitEvent(self.handle(), event.handle(), 0) })
    }
}
