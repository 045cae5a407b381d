//! NVIDIA's runtime compiler, loaded as a library, and its disk cache.

use super::program::CudaKernel;
use crate::error::{Result, err, filled};
use crate::store::Store;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, fmt, fs, ptr};
use xxhash_rust::xxh3::Xxh3;

/// The kind of machine code in the store.
const KIND: &str = "cubin";

/// NVIDIA's runtime compiler, which compiles our CUDA C++ kernels to machine code. It needs no GPU.
///
/// The library (`libnvrtc.so.13` or `.12`; on Windows `nvrtc64_130_0.dll` or `nvrtc64_120_0.dll`) is searched for in
/// this order: the path given to [`Nvrtc::find`]; `TILEWORK_NVRTC` (a file or a folder); the system's library paths;
/// the CUDA toolkit (`CUDA_PATH`, `CUDA_HOME`, `/usr/local/cuda`); Python packages, where `pip install
/// nvidia-cuda-nvrtc` puts it.
pub struct Nvrtc {
    /// Never unloaded, because it has threads and global state.
    library: ManuallyDrop<Library>,
    path: PathBuf,
    version: (u32, u32),
    archs: Vec<u32>,
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nvrtc({}.{} at {})", self.version.0, self.version.1, crate::error::shown(&self.path))
    }
}

/// `nvrtcProgram`.
type Handle = *mut c_void;
type Size = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
type Bytes = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;

/// File names of the library, newest first.
const NAMES: [&str; 3] = if cfg!(windows) {
    ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc.dll"]
} else {
    ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
};

/// The oldest supported version: the first with all of Hopper's instructions.
const OLDEST: (u32, u32) = (12, 0);

impl Nvrtc {
    /// Loads the library at `path`, a file or its folder, or the first that is found.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported), naming the searched places and the remedy.
    pub fn find(path: Option<&Path>) -> Result<Self> {
        let told = path.map(Path::to_path_buf).or_else(|| env::var_os("TILEWORK_NVRTC").map(PathBuf::from));
        let places = match told {
            Some(place) if place.is_dir() => NAMES.iter().map(|name| place.join(name)).collect(),
            Some(file) => vec![file],
            None => places(),
        };
        let mut refused = Vec::new();
        for place in &places {
            match Self::load(place) {
                Ok(found) => return Ok(found),
                // Mention only files that exist.
                Err(e) if place.exists() => refused.push(e.to_string()),
                Err(_) => {}
            }
        }
        let looked: Vec<_> = places.iter().map(|p| p.display().to_string()).collect();
        let refused = if refused.is_empty() { String::new() } else { format!(" ({})", refused.join("; ")) };
        Err(err!(
            Unsupported,
            "cuda: NVRTC, the CUDA compiler, was not found{refused}; install the CUDA toolkit 12 or newer, or run `pip \
             install nvidia-cuda-nvrtc`; if it is elsewhere, set TILEWORK_NVRTC (or CudaOptions::nvrtc) to the file {} or \
             its folder; searched {}",
            NAMES[0],
            looked.join(", ")
        ))
    }

    fn load(path: &Path) -> Result<Self> {
        let name = path.display();
        // The loader would block on a pipe. It searches for missing files itself.
        if path.metadata().is_ok_and(|meta| !meta.is_file()) {
            return Err(err!(Unsupported, "{name}: not a regular file"));
        }
        // SAFETY: NVRTC's initialisers have no visible effects.
        let library = unsafe { Library::new(path) }.map_err(|e| err!(Unsupported, "{name}: {e}"))?;
        let mut found =
            Self { library: ManuallyDrop::new(library), path: path.to_path_buf(), version: (0, 0), archs: Vec::new() };
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the type is that of NVRTC's header, and both pointers are valid.
        let code = unsafe {
            let version = found.function::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>(c"nvrtcVersion")?;
            version(&mut major, &mut minor)
        };
        found.check(code, "nvrtcVersion")?;
        found.version = (major as u32, minor as u32);
        if found.version < OLDEST {
            return Err(err!(
                Unsupported,
                "{name} is NVRTC {major}.{minor}; {}.{} or newer is needed",
                OLDEST.0,
                OLDEST.1
            ));
        }
        let mut count = 0;
        // SAFETY: as above; the list has room for as many numbers as NVRTC says it has.
        unsafe {
            let number = found.function::<unsafe extern "C" fn(*mut c_int) -> c_int>(c"nvrtcGetNumSupportedArchs")?;
            found.check(number(&mut count), "nvrtcGetNumSupportedArchs")?;
            let mut archs: Vec<c_int> = vec![0; count.max(0) as usize];
            let list = found.function::<unsafe extern "C" fn(*mut c_int) -> c_int>(c"nvrtcGetSupportedArchs")?;
            found.check(list(archs.as_mut_ptr()), "nvrtcGetSupportedArchs")?;
            found.archs = archs.into_iter().map(|a| a as u32).collect();
        }
        Ok(found)
    }

    /// Looks up a function of the library.
    ///
    /// # Safety
    /// `F` is its type.
    unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F> {
        // SAFETY: the caller's promise.
        let found = unsafe { self.library.get::<F>(name.to_bytes_with_nul()) };
        found.map(|f| *f).map_err(|e| err!(Unsupported, "{}: {e}", self.path.display()))
    }

    fn check(&self, code: c_int, doing: &str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the type is that of NVRTC's header; the text is NVRTC's own, ended by a 0, and never freed.
        let text = unsafe {
            let text = self.function::<unsafe extern "C" fn(c_int) -> *const c_char>(c"nvrtcGetErrorString")?;
            CStr::from_ptr(text(code)).to_string_lossy()
        };
        Err(err!(Shader, "{doing}: NVRTC {}.{} reports: {text} ({code})", self.version.0, self.version.1))
    }

    /// Returns the path of the library.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the version: major, minor.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Returns whether it compiles for `target`, such as `sm_80` or `sm_90a`.
    pub fn compiles_for(&self, target: &str) -> bool {
        let number = target.trim_start_matches("sm_").trim_end_matches('a');
        number.parse().is_ok_and(|n: u32| self.archs.contains(&n))
    }

    /// Compiles a kernel for `target`, such as `sm_80` or `sm_90a`, to machine code.
    ///
    /// # Errors
    /// [`Shader`](crate::ErrorKind::Shader) with the compiler's log; [`Unsupported`](crate::ErrorKind::Unsupported) for
    /// a target that this version does not know.
    pub fn compile(&self, kernel: &CudaKernel, target: &str) -> Result<Vec<u8>> {
        if !self.compiles_for(target) {
            return Err(err!(
                Unsupported,
                "{}: NVRTC {}.{} compiles for {:?}, not for {target}; install another version",
                kernel.label(),
                self.version.0,
                self.version.1,
                self.archs
            ));
        }
        let (text, headers) = kernel.texts()?;
        let label = kernel.label();
        let c = |text: &str| CString::new(text).map_err(|_| err!(Shader, "{label}: the text contains a 0 byte"));
        let (source, name) = (c(text)?, c(&format!("shaders/{}.cu", kernel.source))?);
        let names = headers.iter().map(|(name, _)| c(name)).collect::<Result<Vec<_>>>()?;
        let texts = headers.iter().map(|(_, text)| c(text)).collect::<Result<Vec<_>>>()?;
        let options = options(kernel, target).iter().map(|o| c(o)).collect::<Result<Vec<_>>>()?;
        let pointers = |list: &[CString]| list.iter().map(|s| s.as_ptr()).collect::<Vec<_>>();
        let (names, texts, options) = (pointers(&names), pointers(&texts), pointers(&options));
        type Strings = *const *const c_char;
        type Create = unsafe extern "C" fn(*mut Handle, *const c_char, *const c_char, c_int, Strings, Strings) -> c_int;
        let mut program: Handle = ptr::null_mut();
        // SAFETY: the types are those of NVRTC's header; strings end with a 0, lists are as long as said, and NVRTC
        // copies what it keeps.
        let compiled = unsafe {
            let create = self.function::<Create>(c"nvrtcCreateProgram")?;
            let compile =
                self.function::<unsafe extern "C" fn(Handle, c_int, Strings) -> c_int>(c"nvrtcCompileProgram")?;
            let code = create(
                &mut program,
                source.as_ptr(),
                name.as_ptr(),
                headers.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            );
            self.check(code, &label)?;
            compile(program, options.len() as c_int, options.as_ptr())
        };
        let result = self.check(compiled, &label).map_err(|e| {
            // SAFETY: the program is alive until below.
            let log = unsafe { self.bytes(program, c"nvrtcGetProgramLogSize", c"nvrtcGetProgramLog") };
            let log = log.unwrap_or_default();
            // Only the first errors: the rest usually follow from them.
            let log = String::from_utf8_lossy(&log);
            let first: Vec<_> = log.trim_end_matches(['\0', '\n']).lines().take(20).collect();
            e.context(&first.join("\n"))
        });
        // SAFETY: as above.
        let result = result.and_then(|()| unsafe { self.bytes(program, c"nvrtcGetCUBINSize", c"nvrtcGetCUBIN") });
        // SAFETY: nothing uses the program from here on.
        unsafe {
            let destroy = self.function::<unsafe extern "C" fn(*mut Handle) -> c_int>(c"nvrtcDestroyProgram")?;
            destroy(&mut program);
        }
        result
    }

    /// Calls a pair of functions that return a size and that many bytes.
    ///
    /// # Safety
    /// The program is alive, and the functions are such a pair.
    unsafe fn bytes(&self, program: Handle, size: &CStr, bytes: &CStr) -> Result<Vec<u8>> {
        let mut len = 0;
        // SAFETY: the caller's promise; the room is as large as NVRTC says.
        unsafe {
            self.check(self.function::<Size>(size)?(program, &mut len), "size")?;
            let mut found = filled("cuda: code of a kernel", len, 0u8)?;
            self.check(self.function::<Bytes>(bytes)?(program, found.as_mut_ptr().cast()), "bytes")?;
            Ok(found)
        }
    }

    pub(super) fn load_or_compile(&self, kernel: &CudaKernel, target: &str, store: &Store) -> Result<Vec<u8>> {
        let begin = Instant::now();
        let key = self.key(kernel, target)?;
        if let Some(code) = store.load(KIND, &key) {
            store.count(true, begin.elapsed());
            return Ok(code);
        }
        let code = self.compile(kernel, target)?;
        store.count(false, begin.elapsed());
        store.save(KIND, &key, &code);
        Ok(code)
    }

    fn key(&self, kernel: &CudaKernel, target: &str) -> Result<Vec<u8>> {
        let (text, headers) = kernel.texts()?;
        let mut hash = Xxh3::new();
        // Each part with its length, so that different lists of parts differ.
        let mut part = |bytes: &[u8]| {
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(text.as_bytes());
        for (name, text) in headers {
            part(name.as_bytes());
            part(text.as_bytes());
        }
        for option in options(kernel, target) {
            part(option.as_bytes());
        }
        let (major, minor) = self.version;
        let key = format!("{} {target} NVRTC {major}.{minor} {:032x}", kernel.source, hash.digest128());
        Ok(key.into_bytes())
    }
}

fn options(kernel: &CudaKernel, target: &str) -> Vec<String> {
    let fixed = [format!("--gpu-architecture={target}"), "--std=c++17".into(), "-default-device".into()];
    let defines = kernel.defines.iter().map(|(name, value)| format!("--define-macro={name}={value}"));
    fixed.into_iter().chain(defines).collect()
}

fn places() -> Vec<PathBuf> {
    // A bare name: the system's library paths.
    let mut found: Vec<PathBuf> = NAMES.iter().map(PathBuf::from).collect();
    let mut folders = Vec::new();
    let toolkits = ["CUDA_PATH", "CUDA_HOME"].iter().filter_map(|name| env::var_os(name).map(PathBuf::from));
    for toolkit in toolkits.chain([PathBuf::from("/usr/local/cuda")]) {
        folders.extend(["lib64", "lib", "bin/x64", "bin"].map(|folder| toolkit.join(folder)));
    }
    for packages in python_packages() {
        folders.extend(["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"].map(|folder| packages.join(folder)));
    }
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        found.extend(NAMES.iter().map(|name| folder.join(name)));
    }
    found
}

fn python_packages() -> Vec<PathBuf> {
    let home = |rest: &str| env::var_os("HOME").map(|home| Path::new(&home).join(rest));
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| env::var_os(name).map(PathBuf::from));
    let roots = environments.chain(home(".local")).chain(["/usr/local", "/usr"].map(PathBuf::from));
    let mut found = Vec::new();
    for root in roots {
        for entry in fs::read_dir(root.join("lib")).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("python3") {
                found.extend(["site-packages", "dist-packages"].map(|folder| entry.path().join(folder)));
            }
        }
    }
    found
}

#[cfg(test)]
#[cfg(feature = "primitives")] // what it compiles
mod tests;
