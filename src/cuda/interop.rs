//! Memory and ordering shared with wgpu, so that a wgpu program can call CUDA on its own buffers. Linux only.

use super::buffer::CudaBuffer;
use super::device::{CudaFilter, CudaGpu, CudaOptions, lock};
use super::program::CudaProfile;
use super::stream::CudaStream;
use crate::gpu::{Buffer, DeviceIdentity, ExportedMemory, Gpu, SharedTimeline, Slice};
use crate::program::prelude::*;
use cudarc::driver::sys;
use std::fmt;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::Mutex;

impl CudaProfile {
    /// Returns the identity of the hardware.
    pub fn identity(&self) -> DeviceIdentity {
        DeviceIdentity { name: self.name.clone(), pci_bus_id: self.pci_bus_id.clone(), uuid: self.uuid }
    }
}

impl CudaGpu {
    /// Opens the CUDA device on the same hardware as `gpu`, so that both can share memory: see [`Bridge`].
    ///
    /// # Errors
    /// - [`Unsupported`](ErrorKind::Unsupported): `gpu` does not use Vulkan.
    /// - [`NoAdapter`](ErrorKind::NoAdapter): no CUDA device is that hardware; the text names all.
    /// - As [`CudaGpu::open`].
    pub fn beside(gpu: &Gpu, options: CudaOptions) -> Result<Self> {
        let wanted = gpu.identity()?;
        let found = Self::devices()?;
        match found.iter().position(|profile| profile.identity().is_same(&wanted)) {
            Some(at) => Self::open(CudaOptions { device: CudaFilter::Ordinal(at), ..options }),
            None => {
                let names: Vec<_> = found.iter().map(|p| p.identity().to_string()).collect();
                Err(err!(
                    NoAdapter,
                    "beside: no CUDA device is wgpu's {wanted}; available: {}; open another adapter by Gpu::request, or a \
                     CUDA device by CudaGpu::open and copy",
                    names.join(", ")
                ))
            }
        }
    }
}

/// Memory of a wgpu buffer, mapped into the CUDA address space.
struct Mapped {
    gpu: CudaGpu,
    memory: sys::CUexternalMemory,
    address: sys::CUdeviceptr,
}

// SAFETY: the driver's handles may be used from every thread whose current context is theirs; `call` sets it.
unsafe impl Send for Mapped {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Mapped {}

impl Mapped {
    fn new(gpu: &CudaGpu, exported: ExportedMemory) -> Result<Self> {
        let op = format!("importing {} bytes from wgpu", exported.buffer_bytes);
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
        // The driver now owns the descriptor.
        let _ = exported.fd.into_raw_fd();
        let mut mapped = Self { gpu: gpu.clone(), memory, address: 0 };
        let range = sys::CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
            offset: 0,
            size: exported.buffer_bytes,
            flags: 0,
            reserved: [0; 16],
        };
        let address = &mut mapped.address;
        // SAFETY: the buffer starts the memory imported above.
        gpu.call(&op, || unsafe { sys::cuExternalMemoryGetMappedBuffer(address, memory, &range) })?;
        Ok(mapped)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if self.address != 0 {
            // SAFETY: mapped by `new` and freed once; the buffer that owned it has waited for all work.
            let _ = self.gpu.call("releasing memory from wgpu", || unsafe { sys::cuMemFree_v2(self.address) });
        }
        // SAFETY: as above; nothing is mapped any more.
        let _ = self.gpu.call("releasing memory from wgpu", || unsafe { sys::cuDestroyExternalMemory(self.memory) });
    }
}

/// A timeline semaphore that both sides share. Its value rises with each hand-over.
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
            type_: sys::CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD,
            handle: sys::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st__bindgen_ty_1 { fd: fd.as_raw_fd() },
            flags: 0,
            reserved: [0; 16],
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: an open descriptor of a timeline semaphore.
        cuda.call("importing a semaphore from wgpu", || unsafe { sys::cuImportExternalSemaphore(&mut handle, &desc) })?;
        // The driver now owns the descriptor.
        let _ = fd.into_raw_fd();
        Ok(Self { cuda: cuda.clone(), handle, wgpu, value: Mutex::new(0) })
    }

    /// Makes `stream` wait for the wgpu queue.
    fn to_cuda(&self, stream: &CudaStream) -> Result<()> {
        let mut value = lock(&self.value);
        *value += 1;
        self.wgpu.signal(*value)?;
        // SAFETY: a structure of numbers, all zero but the value.
        let mut wait: sys::CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS = unsafe { std::mem::zeroed() };
        wait.params.fence.value = *value;
        // SAFETY: semaphore and stream are alive; the signal is submitted.
        self.cuda.call("waiting for wgpu", || unsafe {
            sys::cuWaitExternalSemaphoresAsync(&self.handle, &wait, 1, stream.handle())
        })
    }

    fn mark(&self, stream: &CudaStream) -> Result<u64> {
        let mut value = lock(&self.value);
        *value += 1;
        // SAFETY: a structure of numbers, all zero but the value.
        let mut signal: sys::CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS = unsafe { std::mem::zeroed() };
        signal.params.fence.value = *value;
        // SAFETY: semaphore and stream are alive.
        self.cuda.call("signalling wgpu", || unsafe {
            sys::cuSignalExternalSemaphoresAsync(&self.handle, &signal, 1, stream.handle())
        })?;
        Ok(*value)
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: opened by `new` and closed once; the bridge has waited for its stream.
        let _ = self
            .cuda
            .call("releasing a semaphore from wgpu", || unsafe { sys::cuDestroyExternalSemaphore(self.handle) });
    }
}

/// How one side waits for the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// On the device, by shared semaphores. The host does not block.
    Semaphores,
    /// On the host, which waits for one side before the other starts.
    HostWaits {
        /// Why semaphores are not used.
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

/// One semaphore for each direction, so that the values of each rise in the order of its one signaller.
struct Semaphores {
    to_cuda: Semaphore,
    to_wgpu: Semaphore,
}

/// A [`Gpu`] and a CUDA stream on the same hardware, for CUDA calls on wgpu buffers.
///
/// Buffers for both come from [`Gpu::alloc_shared`]; [`open`](Self::open) returns the CUDA view of one, without a copy.
/// Neither side sees when the other uses it. [`to_cuda`](Self::to_cuda) orders later stream work after everything
/// submitted to wgpu; [`to_wgpu`](Self::to_wgpu) does the reverse.
///
/// If sharing is refused, [`CudaBuffer::copy_from_wgpu`] and [`CudaBuffer::copy_to_wgpu`] copy through the host.
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
        // Signals and waits may be pending on the stream. A lost device has none.
        let _ = self.stream.wait();
    }
}

impl Bridge {
    /// Creates a bridge. It uses semaphores if the driver exports them and tilework opened the wgpu device, else host
    /// waits.
    ///
    /// # Errors
    /// - [`Unsupported`](ErrorKind::Unsupported): wgpu does not use Vulkan.
    /// - [`InvalidArgument`](ErrorKind::InvalidArgument): the two are different hardware; the text names both.
    /// - Device lost; out of memory.
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

    /// Creates a bridge that always waits on the host. [`order`](Self::order) repeats the reason `why`. Fails like
    /// [`Bridge::new`].
    pub fn with_host_waits(gpu: &Gpu, stream: &CudaStream, why: &str) -> Result<Self> {
        let (wgpu, cuda) = (gpu.identity()?, stream.gpu().profile().identity());
        if !wgpu.is_same(&cuda) {
            return Err(err!(
                InvalidArgument,
                "bridge: wgpu uses the {wgpu}, CUDA the {cuda}; to share memory, open the same device by CudaGpu::beside, \
                 or copy through the host"
            ));
        }
        Ok(Self {
            gpu: gpu.clone(),
            stream: stream.clone(),
            semaphores: None,
            order: Order::HostWaits { why: why.into() },
        })
    }

    /// Returns how one side waits for the other.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// Returns wgpu's device.
    #[cfg(all(feature = "nccl", target_os = "linux"))]
    pub(super) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Returns the stream.
    pub fn stream(&self) -> &CudaStream {
        &self.stream
    }

    /// Returns a CUDA buffer on the same memory, without a copy. It keeps the wgpu buffer alive.
    ///
    /// A buffer can be opened several times. Opening takes some tens of microseconds, so keep what you opened.
    ///
    /// # Errors
    /// [`Buffer`](ErrorKind::Buffer) if the buffer belongs to another `Gpu`, or does not come from
    /// [`Gpu::alloc_shared`]; out of memory; device lost.
    pub fn open<T: Element>(&self, buffer: &Buffer<T>) -> Result<CudaBuffer<T>> {
        if *buffer.gpu() != self.gpu {
            return Err(err!(Buffer, "open: {buffer:?} belongs to another Gpu than the bridge, {:?}", self.gpu));
        }
        let cuda = self.stream.gpu();
        let mapped = Mapped::new(cuda, buffer.export()?)?;
        let address = mapped.address;
        // SAFETY: the memory is mapped as long as `mapped` lives, and has as many elements as the buffer.
        unsafe { cuda.wrap(address, buffer.len(), (mapped, buffer.clone())) }
    }

    /// Orders later stream work after everything submitted to wgpu. Recorded work that is not submitted does not count.
    /// Fails if the device is lost.
    pub fn to_cuda(&self) -> Result<()> {
        match &self.semaphores {
            // A signal takes a submission, and CUDA sees it late.
            Some(_) if self.gpu.is_idle()? => Ok(()),
            Some(semaphores) => semaphores.to_cuda.to_cuda(&self.stream),
            None => self.gpu.wait(),
        }
    }

    /// Orders everything submitted to wgpu later, reads too, after the stream's work so far. Fails if the device is
    /// lost.
    pub fn to_wgpu(&self) -> Result<()> {
        match &self.semaphores {
            Some(_) => self.wait_for(self.mark()?),
            None => self.stream.wait(),
        }
    }

    /// Marks the stream's work so far; without semaphores there are no marks.
    pub(crate) fn mark(&self) -> Result<Option<u64>> {
        self.semaphores.as_ref().map(|s| s.to_wgpu.mark(&self.stream)).transpose()
    }

    /// Orders everything submitted to wgpu later after the work before a mark, but not after later work of the stream.
    pub(crate) fn wait_for(&self, mark: Option<u64>) -> Result<()> {
        match (&self.semaphores, mark) {
            (Some(semaphores), Some(value)) => semaphores.to_wgpu.wgpu.wait(value),
            _ => self.stream.wait(),
        }
    }
}

impl<T: Element> CudaBuffer<T> {
    /// Copies wgpu elements, of any device and backend, over this buffer, through the host. Waits for both sides.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the lengths differ; as [`Buffer::read`] and [`CudaBuffer::write`].
    pub fn copy_from_wgpu<'a>(&self, from: impl Into<Slice<'a, T>>) -> Result<()> {
        let from = from.into();
        same_length("copy_from_wgpu", from.len(), self.len())?;
        self.write(&from.read()?)
    }

    /// Copies this buffer over wgpu elements, of any device and backend, through the host. Waits for all device work.
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
