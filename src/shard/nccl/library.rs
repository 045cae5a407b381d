//! NCCL's library and its functions, found when the program runs.

use crate::cuda::{CudaGpu, CudaStream};
use crate::program::prelude::*;
use crate::shard::Combine;
use libloading::Library as Loaded;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::PathBuf;

/// Bytes of an identifier of a group.
pub(super) const ID_BYTES: usize = 128;

/// The oldest version whose functions have these types.
const OLDEST: c_int = 21800;

/// The variable that makes NCCL copy between devices of one process as between processes.
const DIRECT: &str = "NCCL_P2P_DIRECT_DISABLE";

/// File names of the library.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// `ncclUniqueId`, which is passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId {
    bytes: [u8; ID_BYTES],
}

type Comm = *mut c_void;
type Stream = *mut c_void;

/// NCCL's library. It is never unloaded, because NCCL has threads of its own.
pub(super) struct Library {
    loaded: ManuallyDrop<Loaded>,
    version: c_int,
    send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Comm, Stream) -> c_int,
    receive: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int,
    all_reduce: unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int,
    group_start: unsafe extern "C" fn() -> c_int,
    group_end: unsafe extern "C" fn() -> c_int,
    abort: unsafe extern "C" fn(Comm) -> c_int,
    destroy: unsafe extern "C" fn(Comm) -> c_int,
    text: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// Looks up a function.
///
/// # Safety
/// `F` is its type.
unsafe fn function<F: Copy>(loaded: &Loaded, name: &CStr) -> Result<F> {
    // SAFETY: the caller's promise.
    let found = unsafe { loaded.get::<F>(name.to_bytes_with_nul()) };
    found.map(|f| *f).map_err(|e| err!(Unsupported, "nccl: {e}; install NCCL 2.18 or newer"))
}

impl Library {
    /// Loads the file that `TILEWORK_NCCL` names, one in the folder that it names, or the one that the system finds.
    pub(super) fn find() -> Result<Self> {
        // NCCL would otherwise let one device read the buffers of another, which see only memory of CUDA's own that
        // way.
        if std::env::var_os(DIRECT).is_none() {
            return Err(err!(
                Unsupported,
                "nccl: set the environment variable {DIRECT}=1: ranks are threads of one process, and their buffers belong \
                 to Vulkan, which other devices cannot read directly"
            ));
        }
        let told = std::env::var_os("TILEWORK_NCCL").filter(|told| !told.is_empty()).map(PathBuf::from);
        let places: Vec<PathBuf> = match told {
            Some(folder) if folder.is_dir() => NAMES.iter().map(|name| folder.join(name)).collect(),
            Some(file) => vec![file],
            None => NAMES.iter().map(PathBuf::from).collect(),
        };
        let mut refused = Vec::new();
        for place in &places {
            // SAFETY: NCCL's initialisers have no visible effects.
            match unsafe { Loaded::new(place) } {
                Ok(loaded) => return Self::new(loaded),
                Err(e) => refused.push(e.to_string()),
            }
        }
        Err(err!(
            Unsupported,
            "nccl: the library was not found ({}); install NCCL 2.18 or newer, or run `pip install nvidia-nccl-cu12`; if it \
             is elsewhere, set TILEWORK_NCCL to the file {} or its folder",
            refused.join("; "),
            NAMES[0]
        ))
    }

    fn new(loaded: Loaded) -> Result<Self> {
        let mut version = 0;
        // SAFETY: the types are those of NCCL's header, and the pointer is valid.
        let found = unsafe {
            let get: unsafe extern "C" fn(*mut c_int) -> c_int = function(&loaded, c"ncclGetVersion")?;
            get(&mut version);
            Self {
                version,
                send: function(&loaded, c"ncclSend")?,
                receive: function(&loaded, c"ncclRecv")?,
                all_reduce: function(&loaded, c"ncclAllReduce")?,
                group_start: function(&loaded, c"ncclGroupStart")?,
                group_end: function(&loaded, c"ncclGroupEnd")?,
                abort: function(&loaded, c"ncclCommAbort")?,
                destroy: function(&loaded, c"ncclCommDestroy")?,
                text: function(&loaded, c"ncclGetErrorString")?,
                loaded: ManuallyDrop::new(loaded),
            }
        };
        if version < OLDEST {
            return Err(err!(
                Unsupported,
                "nccl: the library has version {version}; 2.18 ({OLDEST}) or newer is needed"
            ));
        }
        Ok(found)
    }

    fn check(&self, code: c_int, doing: &str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the text is NCCL's own, ended by a 0, and never freed.
        let text = unsafe { CStr::from_ptr((self.text)(code)) }.to_string_lossy();
        Err(err!(Io, "nccl: {doing}: {text} (code {code}); NCCL_DEBUG=WARN says more"))
    }

    /// Makes the identifier of a group.
    pub(super) fn unique_id(&self) -> Result<[u8; ID_BYTES]> {
        let mut id = UniqueId { bytes: [0; ID_BYTES] };
        // SAFETY: the type is that of NCCL's header, and the pointer is valid.
        let code = unsafe {
            let get: unsafe extern "C" fn(*mut UniqueId) -> c_int = function(&self.loaded, c"ncclGetUniqueId")?;
            get(&mut id)
        };
        self.check(code, "making a group")?;
        Ok(id.bytes)
    }
}

/// A rank's handle of a group.
pub(super) struct Communicator {
    library: Library,
    cuda: CudaGpu,
    handle: Comm,
    aborted: Cell<bool>,
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if self.aborted.get() {
            return;
        }
        // A rank that fails must not wait for others.
        let end = if std::thread::panicking() { self.library.abort } else { self.library.destroy };
        // SAFETY: made by `new`, ended once.
        let _ = self.cuda.with_current("nccl: leaving the group", || unsafe { end(self.handle) });
    }
}

impl Communicator {
    /// Joins a group; waits for all of its ranks.
    pub(super) fn new(library: Library, cuda: &CudaGpu, id: &[u8], rank: usize, size: usize) -> Result<Self> {
        let mut unique = UniqueId { bytes: [0; ID_BYTES] };
        unique.bytes.copy_from_slice(id.get(..ID_BYTES).ok_or_else(|| err!(Malformed, "nccl: a short identifier"))?);
        let mut handle: Comm = std::ptr::null_mut();
        // SAFETY: the type is that of NCCL's header.
        let join: unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int) -> c_int =
            unsafe { function(&library.loaded, c"ncclCommInitRank")? };
        let code = cuda.with_current("nccl: joining a group", || {
            // SAFETY: the pointer is valid, and the device's context is current.
            unsafe { join(&mut handle, size as c_int, unique, rank as c_int) }
        })?;
        library.check(code, "joining a group")?;
        Ok(Self { library, cuda: cuda.clone(), handle, aborted: Cell::new(false) })
    }

    pub(super) fn version(&self) -> c_int {
        self.library.version
    }

    /// Ends the group without other ranks: kernels that wait for them end.
    pub(super) fn abort(&self) -> Result<()> {
        if self.aborted.replace(true) {
            return Ok(());
        }
        let code = self.cuda.with_current("nccl: ending the group", || {
            // SAFETY: made by `new`, ended once: `aborted` is set.
            unsafe { (self.library.abort)(self.handle) }
        })?;
        self.library.check(code, "ending the group")
    }

    /// Fails once the group has ended.
    fn alive(&self, doing: &str) -> Result<()> {
        match self.aborted.get() {
            true => Err(err!(Io, "nccl: {doing}: the group has ended after an error")),
            false => Ok(()),
        }
    }

    /// Puts messages on the stream that travel at the same time: rank, address and bytes of each.
    pub(super) fn exchange(
        &self, stream: &CudaStream, sends: &[(usize, u64, usize)], receives: &[(usize, u64, usize)],
    ) -> Result<()> {
        /// `ncclUint8`.
        const BYTES: c_int = 1;
        self.alive("exchange")?;
        let library = &self.library;
        let codes = self.cuda.with_current("nccl: exchange", || {
            // SAFETY: the addresses are of memory that the caller keeps, of these sizes; the stream is alive.
            unsafe {
                let mut codes = vec![(library.group_start)()];
                for &(to, address, bytes) in sends {
                    let from = address as *const c_void;
                    codes.push((library.send)(from, bytes, BYTES, to as c_int, self.handle, stream.raw()));
                }
                for &(from, address, bytes) in receives {
                    let to = address as *mut c_void;
                    codes.push((library.receive)(to, bytes, BYTES, from as c_int, self.handle, stream.raw()));
                }
                codes.push((library.group_end)());
                codes
            }
        })?;
        codes.into_iter().try_for_each(|code| library.check(code, "exchange"))
    }

    /// Puts an all-reduce in place on the stream.
    pub(super) fn all_reduce(
        &self, stream: &CudaStream, address: u64, elements: usize, dtype: DType, how: Combine,
    ) -> Result<()> {
        // `ncclDataType_t` and `ncclRedOp_t`.
        let of_type = match dtype {
            DType::I8 => 0,
            DType::U8 => 1,
            DType::I32 => 2,
            DType::U32 => 3,
            DType::U64 => 5,
            DType::F16 => 6,
            DType::F32 => 7,
            DType::Bf16 => 9,
        };
        let of_op = match how {
            Combine::Sum => 0,
            Combine::Prod => 1,
            Combine::Max => 2,
            Combine::Min => 3,
        };
        self.reduce_all(stream, address, elements, of_type, of_op)
    }

    /// Puts a sum of f64 over all ranks on the stream, in place.
    pub(super) fn add_doubles(&self, stream: &CudaStream, address: u64, elements: usize) -> Result<()> {
        /// `ncclFloat64` and `ncclSum`.
        const DOUBLES: c_int = 8;
        const SUM: c_int = 0;
        self.reduce_all(stream, address, elements, DOUBLES, SUM)
    }

    fn reduce_all(
        &self, stream: &CudaStream, address: u64, elements: usize, of_type: c_int, of_op: c_int,
    ) -> Result<()> {
        self.alive("all-reduce")?;
        let library = &self.library;
        let code = self.cuda.with_current("nccl: all-reduce", || {
            let (from, to) = (address as *const c_void, address as *mut c_void);
            // SAFETY: the address is of memory that the caller keeps, of this size; the stream is alive.
            unsafe { (library.all_reduce)(from, to, elements, of_type, of_op, self.handle, stream.raw()) }
        })?;
        library.check(code, "all-reduce")
    }
}

#[cfg(test)]
mod tests;
