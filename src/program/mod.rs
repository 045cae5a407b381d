//! Programs as plain data: kernels, dispatches, operands and scratch, independent of any executor.
//!
//! An op's descriptor and a [`DeviceProfile`] give a [`Program`]; executors run it. Recording, reports, warming up
//! and translation are loops over a `Program`. The choice of a variant is tested with hand-written profiles, without
//! a device.
//!
//! ```
//! use tilework::{Reduce, Sum};
//! use tilework::program::{DeviceProfile, Op};
//!
//! let program = Op::<f32>::lower(&Reduce::new(Sum, 1 << 20), &DeviceProfile::h100())?;
//! println!("{} because {}", program.variant(), program.decision.why);
//! assert_eq!(program.dispatches.len(), 2);
//! # Ok::<(), tilework::Error>(())
//! ```

mod ask;
mod call;
mod choices;
pub(crate) mod counted;
mod emit;
mod extents;
pub(crate) mod facts;
pub(crate) mod fill;
pub(crate) mod fit;
mod increments;
mod measurement;
mod operation;
pub(crate) mod prelude;
pub(crate) mod probe;
mod profile;
pub(crate) mod rows;
mod settings;
mod variant;
mod vectors_apart;
mod when;
mod written;

pub use ask::{Ask, OpCall, Role, Supply};
pub(crate) use ask::{Asked, by_type, front};
pub(crate) use call::operands;
pub use call::{Executor, PlanOn, Sink, With};
pub(crate) use choices::row_name;
pub use choices::{Choice, Choices, Denied};
pub(crate) use counted::{Covered, launch_for, limited};
pub use emit::Emitted;
pub(crate) use emit::quoted;
pub use facts::Fact;
pub(crate) use increments::{Increments, increments};
pub use measurement::{Clock, Measurement, Timing};
pub(crate) use measurement::{batch, warm_up};
pub use operation::{Comparison, Domain, Example, Operation};
#[cfg(feature = "cuda")]
pub(crate) use profile::short_name;
pub use profile::{Ceilings, CooperativeShape, DeviceClass, DeviceProfile, Features, Limits, OpenedBy, Quirks};
pub use settings::{Input, Setting, Settings, Takes};
pub(crate) use variant::{Bits, LENGTH, choose, choose_with, counted, deterministic, variants};
pub use variant::{DecidedBy, Decision, Requires, Translation, Variant};
pub(crate) use vectors_apart::{INCX, INCY, spread, spread_bounds};
pub use when::When;
pub(crate) use written::{Use, Written, check_read};

use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::shader::{self, Expanded, Fragment, Spec, Target, TextFacts, expand, expand_text};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The fragment with which kernels read and write elements of this type in 32-bit words. It fills the slot `element`.
/// Ops reject the types that they do not take (u64 and bf16 among them) before they call this.
pub(crate) fn element_fragment(dtype: DType) -> Fragment {
    Fragment::Library(match dtype {
        DType::F32 => "element/f32",
        DType::F16 | DType::Bf16 => "element/f16",
        DType::I32 => "element/i32",
        DType::U32 | DType::U64 => "element/u32",
        DType::U8 => "element/u8",
        DType::I8 => "element/i8",
    })
}

/// Workgroups along x before a dispatch folds into y, and along y before it folds into z.
///
/// Kernels use this constant, not `num_workgroups`, which is 0 under indirect dispatch on one backend. The shaders'
/// side is `shaders/workgroup/index.wgsl`.
pub const FOLD: u32 = 32768;

/// How a kernel uses an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read only.
    Read,
    /// Every element is written; none is read.
    Write,
    /// Read and written in place.
    ReadWrite,
}

/// A buffer that the caller passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// Name, as in the op's documentation.
    pub name: &'static str,
    /// Element type.
    pub dtype: DType,
    /// Number of elements.
    pub len: usize,
    /// Whether kernels read it, write it or both.
    pub access: Access,
}

impl Operand {
    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        (self.len as u64).saturating_mul(self.dtype.size() as u64)
    }

    /// Fails unless the type and the length are those of the plan.
    pub(crate) fn check_given(&self, op: &str, dtype: DType, len: usize) -> Result<()> {
        let name = self.name;
        if dtype != self.dtype {
            return Err(err!(Shape, "{op}: {name} holds {dtype}; the plan wants {}", self.dtype));
        }
        if len != self.len {
            return Err(err!(
                Shape,
                "{op}: {name} has {len} elements; the plan wants {}; slice the buffer or plan again",
                self.len
            ));
        }
        Ok(())
    }

    pub(crate) fn check_count(op: &str, given: usize, wanted: &[Self]) -> Result<()> {
        if given == wanted.len() {
            return Ok(());
        }
        Err(err!(Shape, "{op}: {given} operands given; the plan wants {}", wanted.len()))
    }
}

/// Where the text of a kernel comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of the library: its path under `shaders/`, without `.wgsl`.
    Library(&'static str),
    /// WGSL that the library generates or a user gives.
    Text {
        /// Name shown in errors.
        name: Arc<str>,
        /// WGSL.
        text: Arc<str>,
    },
}

impl Hash for Source {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Library(name) => name.hash(state),
            // Equal texts have equal lengths. `Eq` tells the others apart.
            Self::Text { name, text } => (name, text.len()).hash(state),
        }
    }
}

/// A specialised shader and one of its entry points. Equal kernels share one pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Where the text comes from.
    pub source: Source,
    /// Constants, flags and fragments that fill the text.
    pub spec: Spec,
    /// The entry point.
    pub entry: &'static str,
    /// Whether the text is ours and proven, so that it may run without runtime checks. False if it holds a user's
    /// fragment that can do more than compute.
    pub trusted: bool,
}

impl Kernel {
    /// Makes a kernel of the library.
    pub fn library(name: &'static str, entry: &'static str, spec: Spec) -> Self {
        Self { source: Source::Library(name), spec, entry, trusted: true }
    }

    /// Makes the kernel of a file of the library whose entry point has the file's name.
    pub(crate) fn of_file(name: &'static str, spec: Spec) -> Self {
        Self::library(name, name.rsplit('/').next().unwrap_or(name), spec)
    }

    /// Expands the text for `target`.
    ///
    /// # Errors
    /// As [`expand`].
    pub fn expand(&self, target: Target) -> Result<Expanded> {
        match &self.source {
            Source::Library(name) => expand(name, &self.spec, target),
            Source::Text { name, text } => expand_text(name, text, &self.spec, target),
        }
    }

    /// What compiling the kernel needs to know of its text.
    pub(crate) fn facts(&self) -> Result<TextFacts> {
        shader::facts(&self.expand(Target::Naga)?, self.entry)
    }

    /// Returns `family/file:entry`, for labels and reports.
    pub fn label(&self) -> String {
        match &self.source {
            Source::Library(name) => format!("{name}:{}", self.entry),
            Source::Text { name, .. } => format!("{name}:{}", self.entry),
        }
    }
}

/// The resource behind a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// One of the program's operands.
    Operand(usize),
    /// One of the program's scratch areas.
    Scratch(usize),
    /// One of the program's constants, read only.
    Constant(usize),
}

/// A bound range of a resource. Binding 0 is always the parameters; these follow from binding 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The resource.
    pub resource: Resource,
    /// Byte offset: a multiple of 256, the strictest alignment.
    pub offset: u64,
    /// Size in bytes. A bound size is rounded up to a multiple of 4, and is at least 4.
    pub size: u64,
}

impl Binding {
    /// Binds the whole of `operands[index]`.
    pub fn operand(index: usize, operands: &[Operand]) -> Self {
        Self { resource: Resource::Operand(index), offset: 0, size: operands[index].bytes() }
    }
}

/// The number of workgroups of a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grid {
    /// Known when the op is planned.
    Direct([u32; 3]),
    /// Three `u32` at a byte offset of a resource, written by an earlier dispatch. The kernel that writes them keeps
    /// each at most the device's `max_workgroups_per_dimension`: beyond it drivers define nothing.
    Indirect {
        /// Where the counts are.
        resource: Resource,
        /// Byte offset of the first count.
        offset: u64,
    },
}

impl Grid {
    /// Folds `workgroups` over the three dimensions.
    ///
    /// ```
    /// use tilework::program::Grid;
    /// assert_eq!(Grid::fold(5), Grid::Direct([5, 1, 1]));
    /// assert_eq!(Grid::fold(100_000), Grid::Direct([32768, 4, 1]));
    /// ```
    pub fn fold(workgroups: u64) -> Self {
        let fold = u64::from(FOLD);
        let (x, rows) = if workgroups <= fold { (workgroups, 1) } else { (fold, workgroups.div_ceil(fold)) };
        let (y, z) = if rows <= fold { (rows, 1) } else { (fold, rows.div_ceil(fold)) };
        // Above 2^45 workgroups z would overflow. Indices of 32 bits end long before that.
        Grid::Direct([x as u32, y as u32, z.min(u64::from(FOLD)) as u32])
    }
}

/// A field of a kernel's `Params`: name, byte offset, bytes.
pub type Field = (&'static str, usize, usize);

/// The `Params` of a kernel: a plain struct with its own layout, which a test compares with the shader's.
pub(crate) trait KernelParams: bytemuck::NoUninit {
    const FIELDS: &'static [Field];
}

/// Declares the Rust twin of a shader's `struct Params`.
macro_rules! kernel_params {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($field:ident: $ty:ty),* $(,)? }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
        $vis struct $name { $($vis $field: $ty),* }

        impl $crate::program::KernelParams for $name {
            const FIELDS: &'static [$crate::program::Field] = &[
                $((stringify!($field), std::mem::offset_of!($name, $field), size_of::<$ty>())),*
            ];
        }
    };
}
pub(crate) use kernel_params;

/// One launch of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    /// Index into [`Program::kernels`].
    pub kernel: usize,
    /// Bytes of the kernel's `Params`, bound at 0.
    pub params: Vec<u8>,
    /// Name, offset and size of each field of `params`.
    pub fields: &'static [Field],
    /// Bindings 1 and up.
    pub bindings: Vec<Binding>,
    /// Workgroups.
    pub grid: Grid,
}

/// The minimum cost of the work.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Floating-point (or integer) operations.
    pub flop: f64,
    /// Bytes that must move: each input read once, each output written once.
    pub bytes: f64,
}

impl Cost {
    /// The cost of `flop` operations and one pass over each operand.
    pub(crate) fn of(flop: f64, operands: &[Operand]) -> Self {
        Self { flop, bytes: operands.iter().map(|o| o.bytes() as f64).sum() }
    }
}

/// Whether a program gives the same bits each time it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Determinism {
    /// The same inputs give the same bits on the same device.
    SameBits,
    /// Elements combine in an order that varies from run to run, so the rounding varies too.
    RoundingVaries,
}

/// An op made ready for a device, as plain data. [`Op::lower`] returns it; [`Gpu::prepare`](crate::Gpu::prepare)
/// compiles it.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Name of the op.
    pub op: &'static str,
    /// The variant, who chose it and why.
    pub decision: Decision,
    /// The caller's buffers, in the order of the call.
    pub operands: Vec<Operand>,
    /// Bytes of each scratch area.
    pub scratch: Vec<u64>,
    /// Bytes of each constant. Constants are tables of the descriptor, uploaded once by the plan.
    pub constants: Vec<Vec<u8>>,
    /// Distinct kernels.
    pub kernels: Vec<Kernel>,
    /// Launches, in order. Each sees the writes of those before it.
    pub dispatches: Vec<Dispatch>,
    /// The minimum cost.
    pub cost: Cost,
    /// Bytes that the workgroups load and store, where the op's design gives a figure. Tiling and caches lower it.
    pub traffic: Option<f64>,
    /// Whether it gives the same bits each time it runs.
    pub determinism: Determinism,
}

#[cfg(test)]
impl Program {
    /// The field `name` of a dispatch's parameters, as an index.
    pub(crate) fn param(&self, dispatch: usize, name: &str) -> u64 {
        self.dispatches[dispatch].param(name).unwrap().into()
    }
}

impl Dispatch {
    pub(crate) fn param(&self, name: &str) -> Option<u32> {
        let &(_, at, _) = self.fields.iter().find(|(field, _, size)| *field == name && *size == 4)?;
        Some(u32::from_ne_bytes(self.params.get(at..at + 4)?.try_into().ok()?))
    }
}

impl Program {
    pub(crate) fn of_only_variant(
        op: &'static str, asked: &str, variants: &'static [Variant], profile: &DeviceProfile,
    ) -> Result<Self> {
        let only = || (variants[0].name, "the only variant".to_owned());
        Ok(Self::new(op, choose(op, asked, variants, profile, only)?.1))
    }

    pub(crate) fn new(op: &'static str, decision: Decision) -> Self {
        Self {
            op,
            decision,
            operands: Vec::new(),
            scratch: Vec::new(),
            constants: Vec::new(),
            kernels: Vec::new(),
            dispatches: Vec::new(),
            cost: Cost::default(),
            traffic: None,
            determinism: Determinism::SameBits,
        }
    }

    /// Returns the variant's name.
    pub fn variant(&self) -> &'static str {
        self.decision.variant
    }

    /// Adds a kernel unless it is there, and returns its index.
    pub(crate) fn kernel(&mut self, kernel: Kernel) -> usize {
        self.kernels.iter().position(|k| *k == kernel).unwrap_or_else(|| {
            self.kernels.push(kernel);
            self.kernels.len() - 1
        })
    }

    pub(crate) fn dispatch<P: KernelParams>(&mut self, kernel: usize, params: &P, bindings: Vec<Binding>, grid: Grid) {
        let params = bytemuck::bytes_of(params).to_vec();
        self.dispatches.push(Dispatch { kernel, params, fields: P::FIELDS, bindings, grid });
    }

    pub(crate) fn scratch(&mut self, bytes: u64) -> Binding {
        self.scratch.push(bytes);
        Binding { resource: Resource::Scratch(self.scratch.len() - 1), offset: 0, size: bytes }
    }

    /// Appends another program. Its operands become these resources, each from its first byte.
    pub(crate) fn append(&mut self, other: Program, operands: &[Resource]) {
        let operands: Vec<_> = operands.iter().map(|&resource| (resource, 0)).collect();
        self.append_at(other, &operands, &mut Vec::new());
    }

    /// As [`append`](Self::append), with operands that start at these byte offsets. Programs appended with the same
    /// `shared` share scratch: each area grows to the largest need.
    pub(crate) fn append_at(&mut self, other: Program, operands: &[(Resource, u64)], shared: &mut Vec<usize>) {
        if other.determinism == Determinism::RoundingVaries {
            self.determinism = Determinism::RoundingVaries;
        }
        let kernels: Vec<usize> = other.kernels.into_iter().map(|kernel| self.kernel(kernel)).collect();
        for (area, bytes) in other.scratch.into_iter().enumerate() {
            match shared.get(area) {
                Some(&known) => self.scratch[known] = self.scratch[known].max(bytes),
                None => {
                    shared.push(self.scratch.len());
                    self.scratch.push(bytes);
                }
            }
        }
        let constants = self.constants.len();
        self.constants.extend(other.constants);
        let place = |resource| match resource {
            Resource::Operand(i) => operands[i],
            Resource::Scratch(i) => (Resource::Scratch(shared[i]), 0),
            Resource::Constant(i) => (Resource::Constant(constants + i), 0),
        };
        for mut dispatch in other.dispatches {
            dispatch.kernel = kernels[dispatch.kernel];
            for binding in &mut dispatch.bindings {
                let (resource, begin) = place(binding.resource);
                *binding = Binding { resource, offset: begin + binding.offset, ..*binding };
            }
            if let Grid::Indirect { resource, offset } = &mut dispatch.grid {
                let (there, begin) = place(*resource);
                (*resource, *offset) = (there, begin + *offset);
            }
            self.dispatches.push(dispatch);
        }
    }

    pub(crate) fn constant(&mut self, bytes: Vec<u8>) -> Binding {
        let size = bytes.len() as u64;
        self.constants.push(bytes);
        Binding { resource: Resource::Constant(self.constants.len() - 1), offset: 0, size }
    }

    /// Returns the bytes that the workgroups load and store: [`traffic`](Self::traffic), or else every bound range once
    /// in each dispatch. `None` if the device counts the workgroups of a dispatch.
    pub fn requested(&self) -> Option<f64> {
        self.traffic.or_else(|| {
            let bytes = |d: &Dispatch| match d.grid {
                Grid::Direct(_) => {
                    // A range bound twice is seen as two types.
                    let first = |(i, b): &(usize, &Binding)| !d.bindings[..*i].contains(b);
                    Some(d.bindings.iter().enumerate().filter(first).map(|(_, b)| b.size as f64).sum::<f64>())
                }
                Grid::Indirect { .. } => None,
            };
            self.dispatches.iter().map(bytes).sum()
        })
    }

    /// Returns the total bytes of scratch.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}

/// A descriptor that can be lowered for elements of type `T`.
///
/// You may implement it for your own op. All kernels of such an op run with runtime checks, as in
/// [`Gpu::prepare`](crate::Gpu::prepare).
pub trait Op<T: Element> {
    /// Checks shapes and limits, chooses the variant and its policy, and returns the program.
    ///
    /// # Errors
    /// Those of the op: an invalid shape, a limit of the device, a variant that the device cannot run.
    fn lower(&self, profile: &DeviceProfile) -> Result<Program>;

    /// Whether this crate wrote the op. Other crates cannot implement it, because they cannot name its argument.
    #[doc(hidden)]
    fn is_proven(&self, _: sealed::Ours) -> bool {
        false
    }
}

mod sealed {
    /// A type that only this crate can name.
    #[derive(Debug, Clone, Copy)]
    pub struct Ours;
}

/// Marks an op of this crate, whose programs bound their indices.
macro_rules! proven {
    () => {
        fn is_proven(&self, _: $crate::program::Ours) -> bool {
            true
        }
    };
}
pub(crate) use proven;

/// Implements [`Op`] for each of these element types, by an expression of the descriptor, the type and the profile.
macro_rules! lowers {
    (impl $generics:tt $op:ty as [$($t:ty),+],
     |$self:ident, $dtype:pat_param, $profile:ident| $body:expr) => {
        $($crate::program::lowers!(@one $generics $op, $t, $self, $dtype, $profile, $body);)+
    };
    (@one [$($generics:tt)*] $op:ty, $t:ty, $self:ident, $dtype:pat_param, $profile:ident, $body:expr) => {
        impl<$($generics)*> $crate::program::Op<$t> for $op {
            $crate::program::proven!();

            fn lower(
                &self,
                $profile: &$crate::program::DeviceProfile,
            ) -> $crate::error::Result<$crate::program::Program> {
                let ($self, $dtype) = (self, <$t as $crate::element::Element>::DTYPE);
                $body
            }
        }
    };
}
pub(crate) use lowers;

/// Implements [`Op`] by the op's `lower_as(dtype, profile)`: for all element types, or for those listed.
macro_rules! lowered_as {
    (<$code:ident: $bound:ident> $op:ty: $($t:ty),+) => {
        $crate::program::lowers! {
            impl[$code: $bound] $op as [$($t),+], |op, dtype, profile| op.lower_as(dtype, profile)
        }
    };
    ($op:ty) => {
        $crate::program::lowers! {
            impl[T: $crate::Element] $op as [T], |op, dtype, profile| op.lower_as(dtype, profile)
        }
    };
    ($op:ty: $($t:ty),+) => {
        $crate::program::lowers! {
            impl[] $op as [$($t),+], |op, dtype, profile| op.lower_as(dtype, profile)
        }
    };
}
pub(crate) use lowered_as;
pub(crate) use sealed::Ours;

/// Lowers an op. Kernels of a user's own op run with runtime checks, because nobody has proven their indices.
pub(crate) fn lower<T: Element, D: Op<T>>(op: &D, profile: &DeviceProfile) -> Result<Program> {
    let mut program = op.lower(profile)?;
    if !op.is_proven(Ours) {
        shader::check_users();
        program.kernels.iter_mut().for_each(|kernel| kernel.trusted = false);
    }
    Ok(program)
}
