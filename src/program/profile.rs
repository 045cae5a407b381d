//! A device's limits, features and quirks, as plain data.

use super::Choices;
use super::fit::LOOP_ROUNDS;

/// The kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceClass {
    /// A card with memory of its own.
    Discrete,
    /// A GPU that shares the processor's memory.
    Integrated,
    /// A GPU behind a virtual machine.
    Virtual,
    /// The processor, through a software driver that compiles kernels slowly.
    Cpu,
    /// Not known.
    Unknown,
}

/// The limits that kernels must keep. Names follow WebGPU's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the largest buffer.
    pub max_buffer_size: u64,
    /// Bytes of the largest storage binding.
    pub max_storage_binding: u64,
    /// Bytes of the largest uniform binding.
    pub max_uniform_binding: u64,
    /// Storage buffers that one kernel can bind.
    pub max_storage_buffers: u32,
    /// Alignment of a storage binding's offset, in bytes.
    pub storage_alignment: u32,
    /// Alignment of a uniform binding's offset, in bytes.
    pub uniform_alignment: u32,
    /// Bytes of workgroup memory.
    pub max_workgroup_bytes: u32,
    /// Threads of a workgroup.
    pub max_invocations: u32,
    /// Threads of a workgroup along x, y and z.
    pub max_workgroup_size: [u32; 3],
    /// Workgroups of a dispatch along each dimension.
    pub max_workgroups_per_dimension: u32,
}

impl Limits {
    /// The limits of every WebGPU device.
    pub const WEBGPU: Self = Self {
        max_buffer_size: 256 << 20,
        max_storage_binding: 128 << 20,
        max_uniform_binding: 64 << 10,
        max_storage_buffers: 8,
        storage_alignment: 256,
        uniform_alignment: 256,
        max_workgroup_bytes: 16 << 10,
        max_invocations: 256,
        max_workgroup_size: [256, 256, 64],
        max_workgroups_per_dimension: 65535,
    };
}

/// The optional features of a device that kernels use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Subgroup operations in compute shaders.
    pub subgroups: bool,
    /// 16-bit floats in shaders.
    pub f16: bool,
    /// 64-bit integers in shaders.
    pub int64: bool,
    /// Timestamps around a pass.
    pub timestamps: bool,
    /// Cooperative matrices.
    pub cooperative_matrix: bool,
    /// Compiled pipelines can be kept on disk.
    pub pipeline_cache: bool,
}

/// Who chose the features that a device was opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenedBy {
    /// tilework, with every feature that it uses and the adapter has.
    #[default]
    Tilework,
    /// tilework, without optional features: see [`webgpu_defaults`](crate::GpuOptions::webgpu_defaults).
    WebGpuDefaults,
    /// The program that owns the device. Its adapter may have more features.
    Caller,
}

/// What a driver cannot do, or does slowly, without reporting it. The default has no quirk.
///
/// ```
/// use tilework::program::{DeviceClass, Quirks};
/// assert_eq!(Quirks::of(DeviceClass::Discrete, "vulkan"), Quirks::default());
/// assert!(Quirks::of(DeviceClass::Cpu, "vulkan").serial_workgroups);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quirks {
    /// Rounds after which the driver silently ends all loops of a thread, counted over all of its loops together.
    /// `None` if the driver runs every loop to its end. If this quirk is missed, long loops end early and results are
    /// wrong.
    pub max_loop_rounds: Option<u32>,
    /// One core runs all threads of a workgroup, and its caches replace workgroup memory. At a barrier it suspends
    /// and resumes each thread. If this quirk is missed, policies choose kernels with many barriers and large
    /// workgroups, which take up to four times as long.
    pub serial_workgroups: bool,
    /// A few cores run all workgroups, and arithmetic costs more than loads from caches. If this quirk is missed,
    /// policies cut work into thousands of workgroups and into chunks larger than the caches, which costs time and
    /// gains nothing.
    pub few_cores: bool,
    /// Compile time grows fast with the length of a kernel. If this quirk is missed, policies unroll steps and
    /// register tiles, and a kernel may take seconds to compile.
    pub slow_compiler: bool,
    /// Workgroups do not start in order of their index: each core takes a range of them. If this quirk is missed,
    /// half of the workgroups that look back repeat the work of others.
    pub unordered_workgroups: bool,
    /// A workgroup that waits for another keeps it from running. If this quirk is missed, such waits last longer than
    /// the work that they wait for.
    pub waiting_starves: bool,
    /// `exp2` of NaN may be a number. If this quirk is missed, attention hides NaN.
    pub exp_drops_nan: bool,
    /// A store to one component of a vector in workgroup memory may write the whole vector, as WGSL allows. If this
    /// quirk is missed, stores of other threads to the other components may be lost. Where it is set, products read
    /// workgroup memory by single elements, which takes more instructions.
    pub stores_whole_vectors: bool,
}

impl Quirks {
    /// Returns the quirks of a class of devices on a backend. All software drivers get the quirks of Mesa's. On
    /// backends other than Vulkan, nobody has shown how components are stored; in browsers, how workgroups wait.
    pub fn of(class: DeviceClass, backend: &str) -> Self {
        let software = class == DeviceClass::Cpu;
        Self {
            max_loop_rounds: software.then_some(LOOP_ROUNDS),
            serial_workgroups: software,
            few_cores: software,
            slow_compiler: software,
            unordered_workgroups: software || backend == "webgpu",
            waiting_starves: software || backend == "webgpu",
            exp_drops_nan: software,
            stores_whole_vectors: backend != "vulkan",
        }
    }
}

/// A cooperative matrix product that the device supports: factors of m x k and k x n elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CooperativeShape {
    /// Rows of the result.
    pub m: u32,
    /// Columns of the result.
    pub n: u32,
    /// Inner extent.
    pub k: u32,
    /// Element type of the factors.
    pub factors: String,
    /// Element type of the result.
    pub result: String,
}

/// Peak rates, measured on the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceilings {
    /// Bytes read plus bytes written per second, by a large copy.
    pub copy_bytes_per_second: f64,
    /// f32 operations per second by fused multiply-adds, each counted as two.
    pub fma_flop_per_second: f64,
}

/// A device: taken from an adapter, or written by hand.
///
/// ```
/// use tilework::program::DeviceProfile;
/// let strict = DeviceProfile::swiftshader();
/// assert_eq!(strict.subgroup_sizes, (4, 4));
/// assert!(!strict.features.f16);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceProfile {
    /// Name of the adapter.
    pub name: String,
    /// Driver and its version.
    pub driver: String,
    /// `vulkan`, `metal`, `dx12`, `gl` or `webgpu`.
    pub backend: String,
    /// Discrete, integrated, software, and so on.
    pub class: DeviceClass,
    /// Limits.
    pub limits: Limits,
    /// Features.
    pub features: Features,
    /// Who chose the features.
    pub opened_by: OpenedBy,
    /// What the driver cannot do, or does slowly.
    pub quirks: Quirks,
    /// Smallest and largest subgroup. Read from the device, never assumed.
    pub subgroup_sizes: (u32, u32),
    /// Cooperative matrix shapes.
    pub cooperative: Vec<CooperativeShape>,
    /// Peak rates, if measured.
    pub ceilings: Option<Ceilings>,
    /// Variants that measured faster than the policies' choice, or failed.
    pub choices: Choices,
    /// Whether every op must repeat its bits: see [`GpuOptions::deterministic`](crate::GpuOptions::deterministic).
    pub deterministic: bool,
}

/// Joins `backend` and `name` into one word of lower-case letters and digits.
pub(crate) fn short_name(backend: &str, name: &str) -> String {
    let name = name.split('(').next().unwrap_or_default().to_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let is_memory = |word: &&str| word.ends_with("gb") && word.starts_with(|c: char| c.is_ascii_digit());
    let words = words.take_while(|word| !is_memory(word));
    [backend].into_iter().chain(words).collect::<Vec<_>>().join("-")
}

impl DeviceProfile {
    /// Returns whether the processor runs the shaders. Use it for labels and to size measurements. What its drivers do
    /// differently is in [`quirks`](Self::quirks).
    pub fn is_cpu(&self) -> bool {
        self.class == DeviceClass::Cpu
    }

    /// Why a feature is missing, as the end of an error: `which NAME does not have`, or that the device was opened
    /// without.
    pub(crate) fn lacks(&self) -> String {
        let name = &self.name;
        match self.opened_by {
            OpenedBy::Tilework => format!("which {name} does not have"),
            OpenedBy::WebGpuDefaults => {
                format!("which {name} was opened without (GpuOptions::webgpu_defaults)")
            }
            OpenedBy::Caller => format!(
                "which the program opened {name} without (Gpu::device_descriptor asks for all that the adapter has)"
            ),
        }
    }

    /// Returns a one-word id for measurements: the backend and the adapter's name, without memory size and text in
    /// parentheses.
    ///
    /// ```
    /// use tilework::program::DeviceProfile;
    /// assert_eq!(DeviceProfile::h100().id(), "vulkan-nvidia-h100");
    /// ```
    pub fn id(&self) -> String {
        short_name(&self.backend, &self.name)
    }

    /// Returns the side of the cooperative matrices that kernels use: square, of f16, with sums of f32. `None` if the
    /// device has none, if it is not a Vulkan device (kernels are translated for Vulkan only), or if its subgroup
    /// size, on which a matrix depends, varies.
    ///
    /// ```
    /// use tilework::program::DeviceProfile;
    /// assert_eq!(DeviceProfile::h100().cooperative_side(), Some(16));
    /// assert_eq!(DeviceProfile::mesa().cooperative_side(), None);
    /// ```
    pub fn cooperative_side(&self) -> Option<u32> {
        let has = |side: u32| {
            let fits = |s: &CooperativeShape| [s.m, s.n, s.k] == [side; 3] && s.factors == "f16" && s.result == "f32";
            self.cooperative.iter().any(fits)
        };
        let features = self.features.cooperative_matrix && self.features.f16;
        let (min, max) = self.subgroup_sizes;
        let usable = features && self.backend == "vulkan" && min == max && min > 0;
        [16, 8].into_iter().find(|side| usable && has(*side))
    }

    /// Returns a profile of WebGPU's default limits and no optional feature: every op runs there.
    pub fn webgpu_defaults() -> Self {
        Self {
            name: "WebGPU defaults".into(),
            driver: String::new(),
            backend: "webgpu".into(),
            class: DeviceClass::Unknown,
            limits: Limits::WEBGPU,
            features: Features::default(),
            opened_by: OpenedBy::default(),
            quirks: Quirks::of(DeviceClass::Unknown, "webgpu"),
            subgroup_sizes: (4, 128),
            cooperative: Vec::new(),
            ceilings: None,
            choices: Choices::default(),
            deterministic: false,
        }
    }

    /// Returns the profile of SwiftShader, the strictest of the software drivers.
    pub fn swiftshader() -> Self {
        Self {
            name: "SwiftShader Device (Subzero)".into(),
            driver: "SwiftShader 5.0.0".into(),
            backend: "vulkan".into(),
            class: DeviceClass::Cpu,
            limits: Limits {
                max_buffer_size: 1 << 30,
                max_storage_binding: 1 << 30,
                max_storage_buffers: 10,
                ..Limits::WEBGPU
            },
            features: Features { subgroups: true, timestamps: true, ..Features::default() },
            quirks: Quirks::of(DeviceClass::Cpu, "vulkan"),
            subgroup_sizes: (4, 4),
            ..Self::webgpu_defaults()
        }
    }

    /// Returns the profile of Mesa 22.3's software Vulkan driver.
    pub fn mesa() -> Self {
        Self {
            name: "llvmpipe (LLVM 15.0.6, 256 bits)".into(),
            driver: "llvmpipe Mesa 22.3.6".into(),
            backend: "vulkan".into(),
            class: DeviceClass::Cpu,
            limits: Limits {
                max_buffer_size: (2 << 30) - 1,
                max_storage_binding: 128 << 20,
                max_storage_buffers: 16,
                storage_alignment: 16,
                uniform_alignment: 16,
                max_workgroup_bytes: 32 << 10,
                max_invocations: 1024,
                max_workgroup_size: [1024, 1024, 1024],
                ..Limits::WEBGPU
            },
            features: Features { subgroups: true, f16: true, int64: true, timestamps: true, ..Features::default() },
            quirks: Quirks::of(DeviceClass::Cpu, "vulkan"),
            subgroup_sizes: (8, 8),
            ..Self::webgpu_defaults()
        }
    }

    /// Returns the profile of an NVIDIA H100 through Vulkan.
    pub fn h100() -> Self {
        let shape =
            |result: &str| CooperativeShape { m: 16, n: 16, k: 16, factors: "f16".into(), result: result.into() };
        Self {
            name: "NVIDIA H100 80GB HBM3".into(),
            driver: "NVIDIA 580.159.04".into(),
            backend: "vulkan".into(),
            class: DeviceClass::Discrete,
            limits: Limits {
                max_buffer_size: 4_292_870_144,
                max_storage_binding: 2_147_483_644,
                max_storage_buffers: 1 << 20,
                storage_alignment: 16,
                uniform_alignment: 64,
                max_workgroup_bytes: 48 << 10,
                max_invocations: 1024,
                max_workgroup_size: [1024, 1024, 64],
                ..Limits::WEBGPU
            },
            features: Features {
                subgroups: true,
                f16: true,
                int64: true,
                timestamps: true,
                cooperative_matrix: true,
                pipeline_cache: true,
            },
            opened_by: OpenedBy::default(),
            quirks: Quirks::of(DeviceClass::Discrete, "vulkan"),
            subgroup_sizes: (32, 32),
            cooperative: vec![shape("f16"), shape("f32")],
            ceilings: Some(Ceilings { copy_bytes_per_second: 2.99e12, fma_flop_per_second: 6.0e13 }),
            choices: Choices::default(),
            deterministic: false,
        }
    }
}
