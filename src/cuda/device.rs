use super::executable::Modules;
use super::nvrtc::Nvrtc;
use super::probe;
use super::program::CudaProfile;
use crate::program::prelude::*;
pub(super) use crate::store::lock;
use crate::store::{CacheDir, CacheReport, KEPT, Store};
use cudarc::driver::sys;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

/// The oldest supported driver, by CUDA version: the first with all of Hopper's instructions.
const OLDEST: c_int = 12000;

/// The device to open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CudaFilter {
    /// The first, which the driver makes the fastest.
    #[default]
    First,
    /// The device at this index of [`CudaGpu::devices`].
    Ordinal(usize),
    /// The device at this PCI address, as `0000:01:00.0`.
    PciBusId(String),
}

/// Options for opening a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaOptions {
    /// The device to open.
    pub device: CudaFilter,
    /// The NVRTC library, or its folder. By default it is searched for: see [`Nvrtc`].
    pub nvrtc: Option<PathBuf>,
    /// Where to keep compiled kernels.
    pub cache: CacheDir,
    /// Maximum of loaded modules that stay in memory though no plan has them, as
    /// [`GpuOptions::kept_pipelines`](crate::GpuOptions::kept_pipelines); 1024 by default.
    pub kept_modules: usize,
}

impl Default for CudaOptions {
    fn default() -> Self {
        Self { device: CudaFilter::First, nvrtc: None, cache: CacheDir::default(), kept_modules: KEPT }
    }
}

/// An open NVIDIA device: the counterpart of [`Gpu`](crate::Gpu) on CUDA.
///
/// Clones are cheap and share everything. It uses the device's primary context, as the CUDA runtime and its libraries
/// do, so they can share memory and streams.
///
/// ```
/// # if tilework::cuda::CudaGpu::devices().is_ok_and(|d| !d.is_empty()) && tilework::cuda::Nvrtc::find(None).is_ok() {
/// use tilework::cuda::CudaGpu;
/// use tilework::prelude::*;
///
/// let cuda = CudaGpu::new()?;
/// let (x, y) = (cuda.upload(&[1u32, 2, 3])?, cuda.alloc::<u32>(3)?);
/// let scan = Scan::new(Sum, 3).plan::<u32>(&cuda)?;
/// scan.run(&cuda.stream()?, &x, &y)?; // returns at once
/// assert_eq!(y.read()?, [1, 3, 6]); // waits
/// # }
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Clone)]
pub struct CudaGpu {
    pub(super) inner: Arc<CudaInner>,
}

pub(super) struct CudaInner {
    device: sys::CUdevice,
    context: sys::CUcontext,
    profile: CudaProfile,
    nvrtc: OnceLock<Result<Nvrtc>>,
    options: CudaOptions,
    store: Store,
    pub(super) modules: Arc<Modules>,
    /// Set by the first error that makes the context unusable.
    lost: AtomicBool,
    /// When the last measurement ended; the device was busy until then.
    pub(super) measured: Mutex<Option<Instant>>,
    ceilings: OnceLock<Ceilings>,
}

// SAFETY: the driver's handles may be used from every thread whose current context is theirs; `call` sets it.
unsafe impl Send for CudaInner {}
// SAFETY: as above; the driver locks what it must.
unsafe impl Sync for CudaInner {}

impl fmt::Debug for CudaGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaGpu({} at {})", self.profile().name, self.profile().pci_bus_id)
    }
}

impl PartialEq for CudaGpu {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}
impl Eq for CudaGpu {}

impl Drop for CudaInner {
    fn drop(&mut self) {
        // All plans are gone.
        self.modules.trim();
        // SAFETY: retained once when opened.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// Initialises the driver once. Returns the CUDA version it supports, as 12080.
fn driver() -> Result<c_int> {
    static DRIVER: OnceLock<Result<c_int>> = OnceLock::new();
    let found = DRIVER.get_or_init(|| {
        // SAFETY: the initialisers of the driver's library have no visible effects.
        if !unsafe { sys::is_culib_present() } {
            return usable(None, sys::CUresult::CUDA_SUCCESS);
        }
        let mut version = 0;
        // SAFETY: the pointer is valid.
        let code = unsafe { sys::cuDriverGetVersion(&mut version) };
        if code != sys::CUresult::CUDA_SUCCESS || version < OLDEST {
            return usable(Some(version), code);
        }
        // SAFETY: no preconditions.
        usable(Some(version), unsafe { sys::cuInit(0) })
    });
    found.clone()
}

/// Checks the driver's version and its answer to initialisation.
fn usable(version: Option<c_int>, code: sys::CUresult) -> Result<c_int> {
    let number = |v: c_int| format!("{}.{}", v / 1000, v % 1000 / 10);
    match (version, code) {
        (None, _) => Err(err!(
            NoAdapter,
            "cuda: no driver: {} was not found; install NVIDIA's driver, or use Gpu, which does not need CUDA",
            if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" }
        )),
        (Some(version), sys::CUresult::CUDA_SUCCESS) if version < OLDEST => Err(err!(
            Unsupported,
            "cuda: the driver is too old: it supports CUDA {}, but {} or newer is needed; update NVIDIA's driver",
            number(version),
            number(OLDEST)
        )),
        (Some(version), sys::CUresult::CUDA_SUCCESS) => Ok(version),
        (Some(_), sys::CUresult::CUDA_ERROR_NO_DEVICE) => Err(err!(
            NoAdapter,
            "cuda: the driver finds no device; check that nvidia-smi lists one and CUDA_VISIBLE_DEVICES hides none"
        )),
        (Some(version), code) => Err(err!(
            NoAdapter,
            "cuda: the driver for CUDA {} does not start: {}; check that nvidia-smi runs",
            number(version),
            describe(code)
        )),
    }
}

fn describe(code: sys::CUresult) -> String {
    // Without a driver there is no text.
    if code == sys::CUresult::CUDA_ERROR_STUB_LIBRARY {
        return format!("only a stub of the driver library was found ({code:?})");
    }
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: the pointer is valid; the text is the driver's own, ended by a 0, and never freed.
    unsafe {
        if sys::cuGetErrorString(code, &mut text) == sys::CUresult::CUDA_SUCCESS && !text.is_null() {
            return format!("{} ({code:?})", CStr::from_ptr(text).to_string_lossy());
        }
    }
    format!("{code:?}")
}

/// Converts a driver code to an error.
pub(super) fn check(code: sys::CUresult, doing: &str) -> Result<()> {
    use sys::CUresult as R;
    let (kind, remedy) = match code {
        R::CUDA_SUCCESS => return Ok(()),
        R::CUDA_ERROR_OUT_OF_MEMORY => (ErrorKind::OutOfMemory, "; free buffers, or split the work"),
        R::CUDA_ERROR_NO_DEVICE | R::CUDA_ERROR_INVALID_DEVICE => (ErrorKind::NoAdapter, ""),
        R::CUDA_ERROR_NOT_SUPPORTED | R::CUDA_ERROR_NO_BINARY_FOR_GPU | R::CUDA_ERROR_INVALID_IMAGE => {
            (ErrorKind::Unsupported, "")
        }
        R::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES | R::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE => {
            (ErrorKind::TooLarge, "; use another variant")
        }
        code if loses(code) => (ErrorKind::DeviceLost, "; this process cannot use the device again: start a new one"),
        _ => (ErrorKind::Validation, ""),
    };
    Err(Error::new(kind, format!("{doing}: {}{remedy}", describe(code))))
}

/// Returns whether the error makes the context unusable.
fn loses(code: sys::CUresult) -> bool {
    use sys::CUresult as R;
    matches!(
        code,
        R::CUDA_ERROR_ILLEGAL_ADDRESS
            | R::CUDA_ERROR_MISALIGNED_ADDRESS
            | R::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | R::CUDA_ERROR_INVALID_PC
            | R::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | R::CUDA_ERROR_HARDWARE_STACK_ERROR
            | R::CUDA_ERROR_LAUNCH_FAILED
            | R::CUDA_ERROR_LAUNCH_TIMEOUT
            | R::CUDA_ERROR_ASSERT
            | R::CUDA_ERROR_ECC_UNCORRECTABLE
            | R::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | R::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | R::CUDA_ERROR_DEINITIALIZED
    )
}

fn describe_device(device: sys::CUdevice, version: c_int) -> Result<CudaProfile> {
    use sys::CUdevice_attribute_enum as A;
    let attribute = |which| {
        let mut value = 0;
        // SAFETY: the pointer is valid, and so is the device.
        check(unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) }, "describing a device")?;
        Ok::<_, Error>(value.max(0) as u32)
    };
    // Newer drivers do not report clocks.
    let clock = |which| attribute(which).unwrap_or(0);
    let text = |what: &dyn Fn(*mut c_char, c_int) -> sys::CUresult| {
        let mut bytes: [c_char; 256] = [0; 256];
        check(what(bytes.as_mut_ptr(), 255), "describing a device")?;
        let bytes: Vec<u8> = bytes.iter().take_while(|b| **b != 0).map(|b| *b as u8).collect();
        Ok::<_, Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut memory = 0;
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the pointers are valid, and so is the device.
    unsafe {
        check(sys::cuDeviceTotalMem_v2(&mut memory, device), "describing a device")?;
        check(sys::cuDeviceGetUuid_v2(&mut uuid, device), "describing a device")?;
    }
    Ok(CudaProfile {
        // SAFETY: the buffer has the room that is said.
        name: text(&|to, len| unsafe { sys::cuDeviceGetName(to, len, device) })?,
        // SAFETY: as above.
        pci_bus_id: text(&|to, len| unsafe { sys::cuDeviceGetPCIBusId(to, len, device) })?.to_lowercase(),
        compute: [
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ],
        multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared_per_block_optin: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_per_multiprocessor: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        registers: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        max_threads_per_block: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_threads_per_multiprocessor: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        max_blocks_per_multiprocessor: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        shared_reserved_per_block: attribute(A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
        total_memory: memory as u64,
        l2_bytes: u64::from(attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        clock_khz: clock(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        memory_clock_khz: clock(A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
        memory_bus_bits: clock(A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
        copy_engines: attribute(A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)?,
        cooperative_launch: attribute(A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0,
        uuid: uuid.bytes.map(|b| b as u8),
        driver: [version as u32 / 1000, version as u32 % 1000 / 10],
    })
}

impl CudaGpu {
    /// Lists the devices, in the driver's order.
    ///
    /// # Errors
    /// [`NoAdapter`](ErrorKind::NoAdapter) if there is no driver, or it finds no device or does not start;
    /// [`Unsupported`](ErrorKind::Unsupported) for a driver older than CUDA 12.0.
    pub fn devices() -> Result<Vec<CudaProfile>> {
        let version = driver()?;
        let mut count = 0;
        // SAFETY: the pointer is valid and the driver initialised.
        check(unsafe { sys::cuDeviceGetCount(&mut count) }, "cuda: counting devices")?;
        (0..count).map(|ordinal| describe_device(device_at(ordinal)?, version)).collect()
    }

    /// Opens the first device. Fails like [`CudaGpu::open`].
    pub fn new() -> Result<Self> {
        Self::open(CudaOptions::default())
    }

    /// Opens a device.
    ///
    /// # Errors
    /// As [`CudaGpu::devices`]; [`NoAdapter`](ErrorKind::NoAdapter) if there is no such device. A missing NVRTC is
    /// reported by the first plan that compiles.
    pub fn open(options: CudaOptions) -> Result<Self> {
        let version = driver()?;
        let list = || {
            let found = Self::devices().unwrap_or_default();
            let found = found.iter().map(|p| format!("{} at {}", p.name, p.pci_bus_id));
            found.collect::<Vec<_>>().join(", ")
        };
        let none = |wanted: String| err!(NoAdapter, "cuda: no device {wanted}; available: {}", list());
        let device = match &options.device {
            CudaFilter::First => device_at(0).map_err(|_| none("at all".into()))?,
            CudaFilter::Ordinal(n) => {
                c_int::try_from(*n).ok().and_then(|n| device_at(n).ok()).ok_or_else(|| none(format!("number {n}")))?
            }
            CudaFilter::PciBusId(id) => {
                let text = CString::new(id.as_str()).map_err(|_| none(format!("at {id:?}")))?;
                let mut device = 0;
                // SAFETY: the pointers are valid, and the text ends with a 0.
                let code = unsafe { sys::cuDeviceGetByPCIBusId(&mut device, text.as_ptr()) };
                check(code, "").map_err(|_| none(format!("at {id}")))?;
                device
            }
        };
        let profile = describe_device(device, version)?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the pointer is valid; released when dropped.
        let code = unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, device) };
        check(code, &format!("cuda: opening {}", profile.name))?;
        Ok(Self {
            inner: Arc::new(CudaInner {
                device,
                context,
                profile,
                nvrtc: OnceLock::new(),
                // Machine code depends on the target and the NVRTC version; its key holds both.
                store: Store::new(&options.cache, "cuda", &[]),
                modules: Arc::new(Modules::new("CUDA modules", options.kept_modules)),
                options,
                lost: AtomicBool::new(false),
                measured: Mutex::new(None),
                ceilings: OnceLock::new(),
            }),
        })
    }

    /// Returns the properties of the device.
    pub fn profile(&self) -> &CudaProfile {
        &self.inner.profile
    }

    /// Returns the copy bandwidth and the rate of f32 multiply-adds, measured by two small kernels on first use, which
    /// takes about a second.
    ///
    /// # Errors
    /// Those of [`nvrtc`](Self::nvrtc); out of memory; device lost.
    pub fn ceilings(&self) -> Result<Ceilings> {
        if let Some(known) = self.inner.ceilings.get() {
            return Ok(*known);
        }
        let measured = probe::measure(self)?;
        Ok(*self.inner.ceilings.get_or_init(|| measured))
    }

    /// Returns the compiler, which is searched for on first use. Fails like [`Nvrtc::find`].
    pub fn nvrtc(&self) -> Result<&Nvrtc> {
        let found = self.inner.nvrtc.get_or_init(|| Nvrtc::find(self.inner.options.nvrtc.as_deref()));
        found.as_ref().map_err(Clone::clone)
    }

    /// Returns statistics of the cache so far: kernels found, compiled, saved, and in memory.
    pub fn cache(&self) -> CacheReport {
        let (in_memory, dropped) = self.inner.modules.counts();
        CacheReport { in_memory, dropped, ..self.inner.store.report() }
    }

    /// Waits for all device work and unloads the modules that no plan has: planning loads them again.
    /// [`CudaStream::trim`](super::CudaStream::trim) frees scratch.
    pub fn trim(&self) {
        self.inner.modules.trim();
    }

    /// Removes all compiled CUDA kernels from disk, of other devices too. Loaded kernels stay in use.
    pub fn clear_cache(&self) {
        self.inner.store.clear();
    }

    pub(super) fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Returns the driver's context handle, `CUcontext`, for other libraries.
    pub fn context(&self) -> *mut c_void {
        self.inner.context.cast()
    }

    /// Returns the driver's number of the device, `CUdevice`.
    #[cfg(all(feature = "nccl", target_os = "linux"))]
    pub(crate) fn device(&self) -> i32 {
        self.inner.device
    }

    /// Returns the free and the total bytes of device memory. Fails if the device is lost.
    pub fn memory(&self) -> Result<(u64, u64)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are valid.
        self.call("memory", || unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// Waits for all device work. Fails if the device is lost.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: no preconditions but a current context.
        self.call("wait", || unsafe { sys::cuCtxSynchronize() })
    }

    /// Calls another CUDA library with this device's context current.
    #[cfg(all(feature = "nccl", target_os = "linux"))]
    pub(crate) fn with_current<R>(&self, doing: &str, f: impl FnOnce() -> R) -> Result<R> {
        let mut result = None;
        self.call(doing, || {
            result = Some(f());
            sys::CUresult::CUDA_SUCCESS
        })?;
        result.ok_or_else(|| err!(DeviceLost, "{doing}: the context of {} is gone", self.profile().name))
    }

    /// Calls the driver with this device's context current.
    pub(crate) fn call(&self, doing: &str, f: impl FnOnce() -> sys::CUresult) -> Result<()> {
        if self.inner.lost.load(Ordering::Relaxed) {
            return Err(err!(
                DeviceLost,
                "{doing}: {} was lost to an earlier error; this process cannot use it again: start a new one",
                self.profile().name
            ));
        }
        // SAFETY: the context is retained as long as `self` lives.
        let code = unsafe { sys::cuCtxSetCurrent(self.inner.context) };
        let code = if code == sys::CUresult::CUDA_SUCCESS { f() } else { code };
        if loses(code) {
            self.inner.lost.store(true, Ordering::Relaxed);
        }
        check(code, doing)
    }
}

fn device_at(ordinal: c_int) -> Result<sys::CUdevice> {
    let mut device = 0;
    // SAFETY: the pointer is valid and the driver initialised.
    check(unsafe { sys::cuDeviceGet(&mut device, ordinal) }, "cuda: finding a device")?;
    Ok(device)
}

#[cfg(test)]
mod tests;
