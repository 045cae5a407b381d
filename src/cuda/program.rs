use super::source;
use crate::analysis::Multiprocessor;
use crate::program::prelude::*;

/// The properties of a CUDA device, read from a device or written by hand.
#[derive(Debug, Clone, PartialEq)]
pub struct CudaProfile {
    /// Name reported by the driver.
    pub name: String,
    /// Compute capability: major, minor.
    pub compute: [u32; 2],
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a block can use after opting in.
    pub shared_per_block_optin: u32,
    /// Bytes of shared memory in a multiprocessor.
    pub shared_per_multiprocessor: u32,
    /// 32-bit registers in a multiprocessor.
    pub registers: u32,
    /// Maximum threads in a block.
    pub max_threads_per_block: u32,
    /// Maximum threads on a multiprocessor.
    pub max_threads_per_multiprocessor: u32,
    /// Maximum blocks on a multiprocessor.
    pub max_blocks_per_multiprocessor: u32,
    /// Bytes of shared memory that the system takes for each block.
    pub shared_reserved_per_block: u32,
    /// Bytes of device memory.
    pub total_memory: u64,
    /// Bytes of the L2 cache.
    pub l2_bytes: u64,
    /// Maximum clock of the multiprocessors.
    pub clock_khz: u32,
    /// Maximum clock of the memory.
    pub memory_clock_khz: u32,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: u32,
    /// Engines that copy while kernels run. With two, copies run in both directions at once.
    pub copy_engines: u32,
    /// Whether the device runs kernels with a grid-wide barrier.
    pub cooperative_launch: bool,
    /// PCI address, as `0000:01:00.0`; empty in profiles written by hand.
    pub pci_bus_id: String,
    /// The driver's UUID of the device, the same in Vulkan; zero in profiles written by hand.
    pub uuid: [u8; 16],
    /// Newest CUDA version that the driver supports: major, minor.
    pub driver: [u32; 2],
}

impl CudaProfile {
    fn written(name: &str, compute: [u32; 2], multiprocessors: u32, shared: u32, total_gib: u64) -> Self {
        Self {
            name: name.into(),
            compute,
            multiprocessors,
            shared_per_block_optin: shared,
            shared_per_multiprocessor: shared + 1024,
            registers: 65536,
            max_threads_per_block: 1024,
            max_threads_per_multiprocessor: 2048,
            max_blocks_per_multiprocessor: 32,
            shared_reserved_per_block: 1024,
            total_memory: total_gib << 30,
            l2_bytes: 40 << 20,
            clock_khz: 1_410_000,
            memory_clock_khz: 1_215_000,
            memory_bus_bits: 5120,
            copy_engines: 3,
            cooperative_launch: true,
            pci_bus_id: String::new(),
            uuid: [0; 16],
            driver: [13, 0],
        }
    }

    /// Returns a short name in one word, as [`DeviceProfile::id`](crate::program::DeviceProfile::id):
    /// `cuda-nvidia-h100`.
    pub fn id(&self) -> String {
        crate::program::short_name("cuda", &self.name)
    }

    /// Returns the profile of an H100 (SXM), written by hand.
    pub fn h100() -> Self {
        Self {
            l2_bytes: 50 << 20,
            clock_khz: 1_980_000,
            memory_clock_khz: 2_619_000,
            ..Self::written("NVIDIA H100 80GB HBM3", [9, 0], 132, 227 << 10, 80)
        }
    }

    /// Returns a typical profile of compute capability `compute / 10`: 75 (T4), 80 (A100), 90 (H100). Other numbers
    /// take the rest from the next lower of these.
    pub fn sm(compute: u32) -> Self {
        match compute {
            90.. => Self { compute: [compute / 10, compute % 10], ..Self::h100() },
            80.. => Self {
                compute: [compute / 10, compute % 10],
                ..Self::written("NVIDIA A100-SXM4-40GB", [8, 0], 108, 163 << 10, 40)
            },
            _ => Self {
                max_threads_per_multiprocessor: 1024,
                max_blocks_per_multiprocessor: 16,
                shared_reserved_per_block: 0,
                shared_per_multiprocessor: 64 << 10,
                l2_bytes: 4 << 20,
                clock_khz: 1_590_000,
                memory_clock_khz: 5_001_000,
                memory_bus_bits: 256,
                compute: [compute / 10, compute % 10],
                ..Self::written("Tesla T4", [7, 5], 40, 64 << 10, 16)
            },
        }
    }

    /// Returns the resources of a multiprocessor.
    pub fn multiprocessor(&self) -> Multiprocessor {
        Multiprocessor {
            threads: Some(self.max_threads_per_multiprocessor),
            blocks: Some(self.max_blocks_per_multiprocessor),
            shared_bytes: Some(self.shared_per_multiprocessor),
            registers: Some(self.registers),
            shared_bytes_reserved: self.shared_reserved_per_block,
        }
    }

    /// Returns whether kernels for `arch` run here.
    pub fn runs(&self, arch: Arch) -> bool {
        arch.runs_on(self.compute)
    }

    /// Returns the target to compile for, as NVRTC names it.
    pub fn target(&self) -> String {
        // `sm_90` lacks the warpgroup instructions. Code for `sm_90a` runs on nothing else.
        let suffix = if self.compute == [9, 0] { "a" } else { "" };
        format!("sm_{}{}{suffix}", self.compute[0], self.compute[1])
    }
}

/// The oldest architecture that runs a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    /// Turing and later.
    Sm75,
    /// Ampere and later.
    Sm80,
    /// Hopper only, because of its warpgroup instructions.
    Sm90a,
}

impl Arch {
    /// Returns whether a device of this compute capability runs such kernels.
    pub fn runs_on(self, compute: [u32; 2]) -> bool {
        match self {
            Arch::Sm75 => compute >= [7, 5],
            Arch::Sm80 => compute >= [8, 0],
            Arch::Sm90a => compute == [9, 0],
        }
    }
}

/// An entry point of a `.cu` file with its macros.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CudaKernel {
    /// A file under `shaders/`, without extension: `dense/gemm_wmma`.
    pub source: &'static str,
    /// Name of an `extern "C" __global__` function.
    pub entry: &'static str,
    /// Macros defined before the first line.
    pub defines: Vec<(&'static str, String)>,
    /// The oldest architecture that runs it.
    pub arch: Arch,
}

impl CudaKernel {
    /// Creates a kernel without macros.
    pub fn new(source: &'static str, entry: &'static str, arch: Arch) -> Self {
        Self { source, entry, defines: Vec::new(), arch }
    }

    /// Defines a macro. Give it a name in capitals: NVRTC's own headers come later and use names such as `T`.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "a number, or a word")]
    pub fn define(mut self, name: &'static str, value: impl ToString) -> Self {
        self.defines.push((name, value.to_string()));
        self
    }

    /// Returns `family/file:entry`, for labels and reports.
    pub fn label(&self) -> String {
        format!("{}:{}", self.source, self.entry)
    }

    /// Returns the text of the file, and the name and text of each file that it includes.
    ///
    /// # Errors
    /// [`Shader`](ErrorKind::Shader) if the library has no such file.
    pub fn texts(&self) -> Result<(&'static str, Vec<(&'static str, &'static str)>)> {
        source::with_includes(self.source)
    }
}

/// The memory that a [`TensorMap`] describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArgMemory {
    /// An operand of the program.
    Operand(usize),
    /// A scratch area of the program.
    Scratch(usize),
}

impl From<ArgMemory> for Arg {
    fn from(of: ArgMemory) -> Self {
        match of {
            ArgMemory::Operand(i) => Self::Operand(i),
            ArgMemory::Scratch(i) => Self::Scratch(i),
        }
    }
}

/// The layout of a tile in shared memory. A permuted one lets threads read a column without bank conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// Row by row, not permuted.
    None,
    /// Permutes the 16-byte chunks of each 32 bytes.
    B32,
    /// Permutes the 16-byte chunks of each 64 bytes.
    B64,
    /// Permutes the 16-byte chunks of each 128 bytes.
    B128,
}

/// A tensor in memory, as the bulk copy engine sees it. Elements out of bounds read as zero and are not written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorMap {
    /// The memory.
    pub of: ArgMemory,
    /// Bytes from its start, a multiple of 16.
    pub offset: u64,
    /// Element type.
    pub dtype: DType,
    /// Whether f32 elements are rounded to tf32 during the copy.
    pub rounds_to_tf32: bool,
    /// Extents, innermost first; 1 to 5 dimensions.
    pub dims: Vec<u64>,
    /// Bytes between neighbours along dimension 1 and up, multiples of 16.
    pub strides: Vec<u64>,
    /// Extents of a tile, 1 to 256.
    pub box_dims: Vec<u32>,
    /// The layout of a tile in shared memory.
    pub swizzle: Swizzle,
}

/// A kernel argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// Address of an operand.
    Operand(usize),
    /// Address of a scratch area.
    Scratch(usize),
    /// A `u32`.
    U32(u32),
    /// A `u64`.
    U64(u64),
    /// A `float`.
    F32(f32),
    /// 128 bytes, `const __grid_constant__ CUtensorMap`, built for the addresses of the call.
    Tensor(TensorMap),
    /// A null address.
    Null,
}

/// One launch of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Index into [`CudaProgram::kernels`].
    pub kernel: usize,
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Blocks of a cluster along x, y, z; `[1; 3]` without clusters.
    pub cluster: [u32; 3],
    /// Threads in a block.
    pub block: u32,
    /// Bytes of dynamic shared memory. Above 48 KiB the executor opts in.
    pub shared: u32,
    /// Arguments, in order.
    pub args: Vec<Arg>,
    /// Whether blocks wait for each other, so that all must run at once.
    pub cooperative: bool,
}

impl Launch {
    /// Creates a launch without clusters, dynamic shared memory or a grid-wide barrier.
    pub fn new(kernel: usize, grid: [u32; 3], block: u32, args: Vec<Arg>) -> Self {
        Self { kernel, grid, cluster: [1; 3], block, shared: 0, args, cooperative: false }
    }
}

/// A lowered op: kernels and launches for a CUDA device, as plain data.
#[derive(Debug, Clone, PartialEq)]
pub struct CudaProgram {
    /// Name of the op.
    pub op: &'static str,
    /// The variant, and who chose it and why.
    pub decision: Decision,
    /// The caller's buffers, in the order of the call. Each starts at a multiple of 16 bytes.
    pub operands: Vec<Operand>,
    /// Kernels, without duplicates.
    pub kernels: Vec<CudaKernel>,
    /// Bytes of each scratch area. Each starts at a multiple of 256 bytes, with undefined contents.
    pub scratch: Vec<u64>,
    /// Scratch areas that are zeroed before the first launch.
    pub zeroed: Vec<usize>,
    /// Launches, in order. Each sees the writes of earlier ones.
    pub launches: Vec<Launch>,
    /// The minimum cost.
    pub cost: Cost,
    /// Whether the result is reproducible.
    pub determinism: Determinism,
}

impl CudaProgram {
    /// Creates an empty program.
    pub fn new(op: &'static str, decision: Decision) -> Self {
        Self {
            op,
            decision,
            operands: Vec::new(),
            kernels: Vec::new(),
            scratch: Vec::new(),
            zeroed: Vec::new(),
            launches: Vec::new(),
            cost: Cost::default(),
            determinism: Determinism::SameBits,
        }
    }

    /// Returns the name of the variant.
    pub fn variant(&self) -> &'static str {
        self.decision.variant
    }

    /// Adds a kernel unless it is there. Returns its index.
    pub fn kernel(&mut self, kernel: CudaKernel) -> usize {
        self.kernels.iter().position(|k| *k == kernel).unwrap_or_else(|| {
            self.kernels.push(kernel);
            self.kernels.len() - 1
        })
    }

    /// Adds a scratch area. Returns its index.
    pub fn scratch(&mut self, bytes: u64) -> usize {
        self.scratch.push(bytes);
        self.scratch.len() - 1
    }

    /// Adds a scratch area that is zeroed before the first launch. Returns its index.
    pub fn zeroed_scratch(&mut self, bytes: u64) -> usize {
        let area = self.scratch(bytes);
        self.zeroed.push(area);
        area
    }

    /// Returns the total bytes of scratch.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch.iter().sum()
    }

    pub(super) fn bytes_of(&self, place: ArgMemory) -> Option<u64> {
        match place {
            ArgMemory::Operand(i) => self.operands.get(i).map(Operand::bytes),
            ArgMemory::Scratch(i) => self.scratch.get(i).copied(),
        }
    }

    /// Checks the program for consistency and against the limits in the profile.
    ///
    /// # Errors
    /// - [`InvalidArgument`](ErrorKind::InvalidArgument): the program contradicts itself.
    /// - [`Unsupported`](ErrorKind::Unsupported): a kernel for another architecture.
    /// - [`TooLarge`](ErrorKind::TooLarge): a launch above a limit of the device.
    pub fn check(&self, profile: &CudaProfile) -> Result<()> {
        if let Some(area) = self.zeroed.iter().find(|&&area| area >= self.scratch.len()) {
            let areas = self.scratch.len();
            return Err(err!(InvalidArgument, "{}: zeroes scratch area {area} of {areas}", self.op));
        }
        for (i, launch) in self.launches.iter().enumerate() {
            self.check_launch(launch, profile).map_err(|e| e.context(&format!("{}: launch {i}", self.op)))?;
        }
        Ok(())
    }

    /// Checks the map against the rules of the copy engine and the size of the memory.
    fn check_launch(&self, launch: &Launch, profile: &CudaProfile) -> Result<()> {
        let Some(kernel) = self.kernels.get(launch.kernel) else {
            return Err(err!(InvalidArgument, "uses kernel {} of {}", launch.kernel, self.kernels.len()));
        };
        let label = kernel.label();
        if !profile.runs(kernel.arch) {
            return Err(err!(
                Unsupported,
                "{label} needs {:?}; {} is sm_{}{}; use another variant",
                kernel.arch,
                profile.name,
                profile.compute[0],
                profile.compute[1]
            ));
        }
        let Launch { grid, cluster, block, shared, cooperative, .. } = launch;
        if *block == 0 || *block > profile.max_threads_per_block {
            return Err(err!(
                TooLarge,
                "{label} has {block} threads in a block; {} allows 1 to {}",
                profile.name,
                profile.max_threads_per_block
            ));
        }
        if *shared > profile.shared_per_block_optin {
            return Err(err!(
                TooLarge,
                "{label} needs {shared} bytes of shared memory; a block of {} has {}; use another variant",
                profile.name,
                profile.shared_per_block_optin
            ));
        }
        let max = [i32::MAX as u32, 65535, 65535];
        if grid.iter().zip(max).any(|(n, max)| *n == 0 || *n > max) {
            return Err(err!(
                TooLarge,
                "{label} has a grid of {grid:?} blocks; allowed are 1 to {max:?}; split the work"
            ));
        }
        let blocks: u32 = cluster.iter().product();
        if cluster.contains(&0) || blocks > 16 || grid.iter().zip(cluster).any(|(n, c)| n % c != 0) {
            return Err(err!(
                InvalidArgument,
                "{label} has clusters of {cluster:?} blocks in a grid of {grid:?}; a cluster has at most 16 blocks and divides \
                 the grid"
            ));
        }
        if blocks > 1 && profile.compute < [9, 0] {
            return Err(err!(Unsupported, "{label} uses clusters, which {} lacks; use another variant", profile.name));
        }
        if *cooperative && !profile.cooperative_launch {
            return Err(err!(
                Unsupported,
                "{label} has a grid-wide barrier, which {} does not support; use another variant",
                profile.name
            ));
        }
        for arg in &launch.args {
            let place = match arg {
                Arg::Operand(i) => ArgMemory::Operand(*i),
                Arg::Scratch(i) => ArgMemory::Scratch(*i),
                Arg::Tensor(map) => map.of,
                _ => continue,
            };
            let Some(bytes) = self.bytes_of(place) else {
                return Err(err!(InvalidArgument, "{label} uses {place:?}, which does not exist"));
            };
            if let Arg::Tensor(map) = arg {
                map.check(bytes).map_err(|e| e.context(&label))?;
            }
        }
        Ok(())
    }
}

impl TensorMap {
    /// Holds the map against the rules of the copy engine, and against the `bytes` that are there.
    fn check(&self, bytes: u64) -> Result<()> {
        let size = self.dtype.size() as u64;
        let rank = self.dims.len();
        let wrong = |what: &str| Err(err!(InvalidArgument, "{what} in {self:?} of {bytes} bytes"));
        if !(1..=5).contains(&rank) || self.strides.len() + 1 != rank || self.box_dims.len() != rank {
            return wrong("needs 1 to 5 dimensions, a stride for each but the first, and a box extent for each");
        }
        if self.dims.iter().any(|d| !(1..=1 << 32).contains(d)) {
            return wrong("extents must be 1 to 2^32");
        }
        if self.box_dims.iter().any(|b| !(1..=256).contains(b)) {
            return wrong("box extents must be 1 to 256");
        }
        if self.strides.iter().any(|s| s % 16 != 0 || *s >= 1 << 40) || !self.offset.is_multiple_of(16) {
            return wrong("strides and offset must be multiples of 16 bytes");
        }
        let inner = u64::from(self.box_dims[0]) * size;
        let max = match self.swizzle {
            Swizzle::None => u64::MAX,
            Swizzle::B32 => 32,
            Swizzle::B64 => 64,
            Swizzle::B128 => 128,
        };
        if !inner.is_multiple_of(16) || inner > max {
            return wrong("the box must be a multiple of 16 bytes wide, and no wider than the swizzle");
        }
        let last = |dim: &u64, stride: u64| (dim - 1).saturating_mul(stride);
        let outer = self.dims[1..].iter().zip(&self.strides).map(|(dim, stride)| last(dim, *stride));
        let end = outer.fold(self.offset.saturating_add(self.dims[0] * size), u64::saturating_add);
        if end > bytes {
            return wrong("the end must lie within the memory");
        }
        Ok(())
    }
}

/// A descriptor of an op with CUDA kernels for elements of type `T`. [`CudaGpu`](super::CudaGpu) plans it.
pub trait CudaOp<T: Element> {
    /// Checks shapes and limits, chooses the variant, and returns the program.
    ///
    /// # Errors
    /// As the op: an invalid shape, a limit of the device, a variant that the device cannot run.
    fn lower(&self, profile: &CudaProfile) -> Result<CudaProgram>;
}

#[cfg(test)]
mod tests;
