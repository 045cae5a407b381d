//! Memory and order shared with wgpu: a program that lives on wgpu calls CUDA on its own buffers. Linux only.

use super::buffer::CudaBuffer;
use super::device::{CudaFilter, CudaGpu, CudaOptions, lock};
use super::program::CudaProfile;
use super::stream::CudaStream;
use crate::element::Element;
use crate::error::{ErrorKind, Result, err};
use crate::gpu::{Buffer, DeviceIdentity, ExportedMemory, Gpu, SharedTimeline, Slice};
use cudarc::driver::sys;
use std::fmt;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::Mutex;

impl CudaProfile {
    /// Which piece of hardware this is.
    pub fn identity(&self) -> DeviceIdentity {
        DeviceIdentity { name: self.name.clone(), pci_bus_id: self.pci_bus_id.clone(), uuid: self.uuid }
    }
}

impl CudaGpu {
    /// Opens the CUDA device that is the same hardware as `gpu`, so that both can share memory: see [`Bridge`].
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) if `gpu` is not open through Vulkan;
    /// [`NoAdapter`](ErrorKind::NoAdapter) if no CUDA device is that hardware (the text names all); otherwise as
    /// [`CudaGpu::open`].
    pub fn beside(gpu: &Gpu, options: CudaOptions) -> Result<Self> {
        let wanted = gpu.identity()?;
        let found = Self::devices()?;
        match found.iter().position(|profile| profile.identity().is_same(&wanted)) {
            Some(at) => Self::open(CudaOptions { device: CudaFilter::Ordinal(at), ..options }),
            None => {
                let names: Vec<_> = found.iter().map(|p| p.identity().to_string()).collect();
                Err(err!(
                    NoAdapter,
                    "beside: no CUDA device is the {wanted} that wgpu has open; there are: {}; open another adapter by \
                     Gpu::request, or open a CUDA device by CudaGpu::open and copy",
                    names.join(", ")
                ))
            }
        }
    }
}

/// Memory of a wgpu buffer, mapped into the address space of CUDA.
struct Mapped {
    gpu: CudaGpu,
    memory: sys::CUexternalMemory,
    address: sys::CUdeviceptr,
}

// SAFETY: the driver's handles may be used from every thread that has made their context current, which `call` sees to.
unsafe impl Send for Mapped {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Mapped {}

impl Mapped {
    fn new(gpu: &CudaGpu, exported: ExportedMemory) -> Result<Self> {
        let op = format!("opening {} bytes of wgpu in CUDA", exported.buffer_bytes);
        let handle = sys::CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
            type_: sys::CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
            handle: sys::CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st__bindgen_ty_1 { fd: exported.fd.as_raw_fd() },
            size: exported.allocation_bytes,
            flags: sys::CUDA_EXTERNAL_MEMORY_DEDICATED,
            reserved: [0; 16],
        };
        let mut memory = std::ptr::null_mut();
        // SAFETY: an open descriptor of a dedicated allocation of that many bytes.
        gpu.call(&op, || unsafe { sys::cuImportExternalMemory(&mut memory, &handle) })?;
        // The driver has taken the descriptor over.
        let _ = exported.fd.into_raw_fd();
        let mut mapped = Self { gpu: gpu.clone(), memory, address: 0 };
        let range = sys::CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
            offset: 0,
            size: exported.buffer_bytes,
            flags: 0,
            reserved: [0; 16],
        };
        let address = &mut mapped.address;
        // SAFETY: the buffer lies at the beginning of the memory just opened.
        gpu.call(&op, || unsafe { sys::cuExternalMemoryGetMappedBuffer(address, memory, &range) })?;
        Ok(mapped)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if self.address != 0 {
            // SAFETY: mapped by `new` and freed once; the buffer that owned it has waited for all work.
            let _ = self.gpu.call("closing memory of wgpu", || unsafe { sys::cuMemFree_v2(self.address) });
        }
        // SAFETY: as above; nothing is mapped any more.
        let _ =
            self.gpu.call("closing memory of wgpu", || unsafe { sys::cuDestroyExternalMemory(self.memory) });
    }
}

/// A counting semaphore that both sides know. Its value rises with each handing over.
struct Semaphore {
    cuda: CudaGpu,
    handle: sys::CUexternalSemaphore,
    wgpu: SharedTimeline,
    value: Mutex<u64>,
}

// SAFETY: as of `Mapped`.
unsafe impl Send for Semaphore {}
// SAFETY: as of `Mapped`; the value is locked.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    fn new(gpu: &Gpu, cuda: &CudaGpu) -> Result<Self> {
        let wgpu = SharedTimeline::new(gpu)?;
        let fd = wgpu.export()?;
        let desc = sys::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
            type_:
                sys::CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD,
            handle: sys::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st__bindgen_ty_1 { fd: fd.as_raw_fd() },
            flags: 0,
            reserved: [0; 16],
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: an open descriptor of a timeline semaphore.
        cuda.call("opening a semaphore of wgpu in CUDA", || unsafe {
            sys::cuImportExternalSemaphore(&mut handle, &desc)
        })?;
        // The driver has taken the descriptor over.
        let _ = fd.into_raw_fd();
        Ok(Self { cuda: cuda.clone(), handle, wgpu, value: Mutex::new(0) })
    }

    /// The queue of wgpu signals, `stream` waits.
    fn to_cuda(&self, stream: &CudaStream) -> Result<()> {
        let mut value = lock(&self.value);
        *value += 1;
        self.wgpu.signal(*value)?;
        // SAFETY: a structure of numbers, of which all but the value are to be zero.
        let mut wait: sys::CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS = unsafe { std::mem::zeroed() };
        wait.params.fence.value = *value;
        // SAFETY: semaphore and stream live; the signal is under way.
        self.cuda.call("waiting for wgpu", || unsafe {
            sys::cuWaitExternalSemaphoresAsync(&self.handle, &wait, 1, stream.handle())
        })
    }

    /// `stream` signals, the queue of wgpu waits.
    fn to_wgpu(&self, stream: &CudaStream) -> Result<()> {
        let mut value = lock(&self.value);
        *value += 1;
        // SAFETY: a structure of numbers, of which all but the value are to be zero.
        let mut signal: sys::CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS = unsafe { std::mem::zeroed() };
        signal.params.fence.value = *value;
        // SAFETY: semaphore and stream live.
        self.cuda.call("signalling wgpu", || unsafe {
            sys::cuSignalExternalSemaphoresAsync(&self.handle, &signal, 1, stream.handle())
        })?;
        self.wgpu.wait(*value)
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: opened by `new` and closed once; the bridge has waited for its stream.
        let _ = self
            .cuda
            .call("closing a semaphore of wgpu", || unsafe { sys::cuDestroyExternalSemaphore(self.handle) });
    }
}

/// How one side waits for the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// On the device, by semaphores that both know. Nothing blocks the host.
    Semaphores,
    /// On the host, which waits until one side is done before the other begins.
    HostWaits {
        /// Why not by semaphores.
        why: String,
    },
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Semaphores => f.write_str("semaphores on the device"),
            Order::HostWaits { why } => write!(f, "waits on the host ({why})"),
        }
    }
}

/// Two semaphores: one a direction, so that the values of each rise in the order of its one signaller.
struct Semaphores {
    to_cuda: Semaphore,
    to_wgpu: Semaphore,
}

/// A [`Gpu`] and a stream of CUDA on the same hardware, for calls of CUDA on buffers of wgpu.
///
/// Buffers that both use come from [`Gpu::alloc_shared`]; [`open`](Self::open) gives CUDA's view of one, without a copy.
/// Neither side sees when the other works on it: [`to_cuda`](Self::to_cuda) puts what the stream is given from then on
/// after all that was submitted to wgpu, [`to_wgpu`](Self::to_wgpu) the other way round.
///
/// Where sharing is refused, [`CudaBuffer::copy_from_wgpu`] and [`CudaBuffer::copy_to_wgpu`] copy through the host.
///
/// ```no_run
/// use tilework::cuda::{Bridge, CudaGpu, CudaOptions};
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let cuda = CudaGpu::beside(&gpu, CudaOptions::default())?;
/// let stream = cuda.stream()?;
/// let bridge = Bridge::new(&gpu, &stream)?;
///
/// let (x, y) = (gpu.alloc_shared::<f32>(1000)?, gpu.alloc_shared::<f32>(1000)?);
/// let (x_cuda, y_cuda) = (bridge.open(&x)?, bridge.open(&y)?);
/// let scan = Scan::new(Sum, 1000).plan::<f32>(&cuda)?;
///
/// x.write(&[1.0; 1000])?; // by wgpu
/// bridge.to_cuda()?;
/// scan.run(&stream, &x_cuda, &y_cuda)?; // by CUDA
/// bridge.to_wgpu()?;
/// assert_eq!(y.read()?[999], 1000.0); // by wgpu
/// # Ok::<(), tilework::Error>(())
/// ```
pub struct Bridge {
    gpu: Gpu,
    stream: CudaStream,
    semaphores: Option<Semaphores>,
    order: Order,
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bridge({:?}, {:?}, {})", self.gpu, self.stream, self.order)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // The stream may have signals and waits to come. A lost device has none.
        let _ = self.stream.wait();
    }
}

impl Bridge {
    /// A bridge, ordered by semaphores where the driver exports them and tilework opened the device of wgpu, otherwise
    /// by waits on the host.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) if wgpu is not open through Vulkan;
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) if both are not the same hardware (the text names both); device
    /// lost, out of memory.
    pub fn new(gpu: &Gpu, stream: &CudaStream) -> Result<Self> {
        let mut bridge = Self::with_host_waits(gpu, stream, "")?;
        let semaphore = || Semaphore::new(gpu, stream.gpu());
        match semaphore().and_then(|to_cuda| Ok(Semaphores { to_cuda, to_wgpu: semaphore()? })) {
            Ok(semaphores) => {
                bridge.semaphores = Some(semaphores);
                bridge.order = Order::Semaphores;
            }
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                bridge.order = Order::HostWaits { why: e.to_string() };
            }
            Err(e) => return Err(e),
        }
        Ok(bridge)
    }

    /// A bridge that waits on the host whatever the driver has, for a reason that [`order`](Self::order) repeats.
    ///
    /// # Errors
    /// As [`Bridge::new`].
    pub fn with_host_waits(gpu: &Gpu, stream: &CudaStream, why: &str) -> Result<Self> {
        let (wgpu, cuda) = (gpu.identity()?, stream.gpu().profile().identity());
        if !wgpu.is_same(&cuda) {
            return Err(err!(
                InvalidArgument,
                "bridge: wgpu has the {wgpu} open and CUDA the {cuda}; only one and the same device shares memory: open \
                 it by CudaGpu::beside, or copy through the host"
            ));
        }
        Ok(Self {
            gpu: gpu.clone(),
            stream: stream.clone(),
            semaphores: None,
            order: Order::HostWaits { why: why.into() },
        })
    }

    /// How one side waits for the other.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// The stream.
    pub fn stream(&self) -> &CudaStream {
        &self.stream
    }

    /// The same memory as a buffer of CUDA, without a copy. It keeps the buffer of wgpu alive.
    ///
    /// It may be opened any number of times; all are the same memory. Opening takes some tens of microseconds: programs
    /// keep what they opened.
    ///
    /// # Errors
    /// [`Buffer`](ErrorKind::Buffer) if it does not come from [`Gpu::alloc_shared`], or of another `Gpu`; out of memory,
    /// device lost.
    pub fn open<T: Element>(&self, buffer: &Buffer<T>) -> Result<CudaBuffer<T>> {
        if *buffer.gpu() != self.gpu {
            return Err(err!(Buffer, "open: {buffer:?} is of another Gpu than the bridge's {:?}", self.gpu));
        }
        let cuda = self.stream.gpu();
        let mapped = Mapped::new(cuda, buffer.export()?)?;
        let address = mapped.address;
        // SAFETY: the memory is mapped as long as `mapped` lives, and has as many elements as the buffer.
        unsafe { cuda.wrap(address, buffer.len(), (mapped, buffer.clone())) }
    }

    /// Has what the stream is given from now on run after all work that was submitted to wgpu.
    ///
    /// Work that is recorded and not submitted is not waited for.
    ///
    /// # Errors
    /// Device lost.
    pub fn to_cuda(&self) -> Result<()> {
        match &self.semaphores {
            Some(semaphores) => semaphores.to_cuda.to_cuda(&self.stream),
            None => self.gpu.wait(),
        }
    }

    /// Has all work that is submitted to wgpu from now on, reads too, run after what the stream was given.
    ///
    /// # Errors
    /// Device lost.
    pub fn to_wgpu(&self) -> Result<()> {
        match &self.semaphores {
            Some(semaphores) => semaphores.to_wgpu.to_wgpu(&self.stream),
            None => self.stream.wait(),
        }
    }
}

impl<T: Element> CudaBuffer<T> {
    /// Copies elements of wgpu, of any device and backend, over this buffer, through the host. Waits for both sides.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the lengths differ; as [`Buffer::read`] and [`CudaBuffer::write`].
    pub fn copy_from_wgpu<'a>(&self, from: impl Into<Slice<'a, T>>) -> Result<()> {
        let from = from.into();
        same_length("copy_from_wgpu", from.len(), self.len())?;
        self.write(&from.read()?)
    }

    /// Copies this buffer over elements of wgpu, of any device and backend, through the host. Waits for all work of
    /// this device.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the lengths differ; as [`CudaBuffer::read`] and [`Buffer::write`].
    pub fn copy_to_wgpu<'a>(&self, to: impl Into<Slice<'a, T>>) -> Result<()> {
        let to = to.into();
        same_length("copy_to_wgpu", self.len(), to.len())?;
        to.write(&self.read()?)
    }
}

fn same_length(op: &str, from: usize, to: usize) -> Result<()> {
    if from == to {
        return Ok(());
    }
    Err(err!(Shape, "{op}: {from} elements into {to}; slice the longer"))
}
