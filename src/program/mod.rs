//! The waist of the house: what will run, and on what, as plain data.
//!
//! Op families turn a descriptor into a [`Program`] by looking at a [`DeviceProfile`]; executors turn
//! a `Program` into work. Recording, reporting, warming up and translating are each a loop over a
//! `Program`, and choice of variant is tested with hand-written profiles, without a device.
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
pub(crate) mod facts;
pub(crate) mod fill;
pub(crate) mod fit;
mod measurement;
mod operation;
pub(crate) mod probe;
mod profile;
pub(crate) mod rows;
mod settings;
mod variant;
mod when;
mod written;

pub use ask::{Ask, Form, Role, Supply};
pub(crate) use ask::{Asked, by_type};
pub(crate) use call::operands;
pub use call::{Executor, PlanOn, Sink, With};
pub(crate) use choices::row_name;
pub use choices::{Choice, Choices, Denied};
pub use facts::Fact;
pub use measurement::{Clock, Measurement, Timing};
pub(crate) use measurement::{batch, warm_up};
pub use operation::{Comparison, Domain, Example, Operation};
#[cfg(feature = "cuda")]
pub(crate) use profile::short_name;
pub use profile::{
    Ceilings, CooperativeShape, DeviceClass, DeviceProfile, Features, Limits, OpenedBy, Quirks,
};
pub use settings::{Input, Setting, Settings, Takes};
pub(crate) use variant::{Bits, choose, choose_with, deterministic};
pub use variant::{DecidedBy, Decision, Requires, Translation, Variant};
pub use when::When;
pub(crate) use written::{Use, Written, check_read};

use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::shader::{Expanded, Fragment, Spec, Target, expand, expand_text};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The fragment by which kernels read and write elements of this type in 32-bit words: fills the slot
/// `element`. An op refuses the types it does not take (u64 and bf16 among them) before it asks.
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
/// A constant, and not `num_workgroups`, which is 0 under indirect dispatch on one backend. The
/// shader side is `shaders/workgroup/index.wgsl`.
pub const FOLD: u32 = 32768;

/// How a kernel uses an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Only read.
    Read,
    /// Only written, every element.
    Write,
    /// Read and written in place.
    ReadWrite,
}

/// A buffer that the caller gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// Name, as in the documentation of the op.
    pub name: &'static str,
    /// Element type.
    pub dtype: DType,
    /// Elements.
    pub len: usize,
    /// Read, written or both.
    pub access: Access,
}

impl Operand {
    /// Bytes of the operand.
    pub fn bytes(&self) -> u64 {
        (self.len as u64).saturating_mul(self.dtype.size() as u64)
    }

    /// Holds what is given for it against what was planned.
    pub(crate) fn check_given(&self, op: &str, dtype: DType, len: usize) -> Result<()> {
        let name = self.name;
        if dtype != self.dtype {
            return Err(err!(Shape, "{op}: {name} holds {dtype}, the plan is for {}", self.dtype));
        }
        if len != self.len {
            return Err(err!(
                Shape,
                "{op}: {name} has {len} elements, the plan is for {}; slice the buffer or plan again",
                self.len
            ));
        }
        Ok(())
    }

    /// Holds the number of operands that are given against that of those `wanted`.
    pub(crate) fn check_count(op: &str, given: usize, wanted: &[Self]) -> Result<()> {
        if given == wanted.len() {
            return Ok(());
        }
        Err(err!(Shape, "{op}: {given} operands given, {} wanted", wanted.len()))
    }
}

/// Where the text of a kernel comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file under `shaders/`, without its ending.
    Library(&'static str),
    /// Text made by a Rust function, or brought by a user, with the name it goes by in errors.
    Text {
        /// Name in errors.
        name: Arc<str>,
        /// WGSL.
        text: Arc<str>,
    },
}

impl Hash for Source {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Library(name) => name.hash(state),
            // Texts that are equal have one length; the others are told apart where they are compared.
            Self::Text { name, text } => (name, text.len()).hash(state),
        }
    }
}

/// A shader, specialised, and one of its entry points. Two equal kernels share one pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// The text.
    pub source: Source,
    /// What is rewritten in it.
    pub spec: Spec,
    /// The entry point.
    pub entry: &'static str,
    /// Whether the text is ours and proven, so that it may run without runtime checks: unless a user's fragment is
    /// part of it that could do more than compute.
    pub trusted: bool,
}

impl Kernel {
    /// A kernel of the library.
    pub fn library(name: &'static str, entry: &'static str, spec: Spec) -> Self {
        Self { source: Source::Library(name), spec, entry, trusted: true }
    }

    /// The text for `target`.
    ///
    /// # Errors
    /// As [`expand`].
    pub fn expand(&self, target: Target) -> Result<Expanded> {
        match &self.source {
            Source::Library(name) => expand(name, &self.spec, target),
            Source::Text { name, text } => expand_text(name, text, &self.spec, target),
        }
    }

    /// `family/file:entry`, for labels and reports.
    pub fn label(&self) -> String {
        match &self.source {
            Source::Library(name) => format!("{name}:{}", self.entry),
            Source::Text { name, .. } => format!("{name}:{}", self.entry),
        }
    }
}

/// What a binding shows to a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// One of the program's operands.
    Operand(usize),
    /// One of the program's scratch areas.
    Scratch(usize),
    /// One of the program's constants; only read.
    Constant(usize),
}

/// A range of a resource, bound. Binding 0 is always the parameters; these follow from binding 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Binding {
    /// What is bound.
    pub resource: Resource,
    /// Byte offset; a multiple of 256, the strictest alignment there is.
    pub offset: u64,
    /// Bytes; rounded up to a multiple of 4, and at least 4, when bound.
    pub size: u64,
}

impl Binding {
    /// The whole of `operands[index]`.
    pub fn operand(index: usize, operands: &[Operand]) -> Self {
        Self { resource: Resource::Operand(index), offset: 0, size: operands[index].bytes() }
    }
}

/// How many workgroups a dispatch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grid {
    /// Known when planned.
    Direct([u32; 3]),
    /// Three `u32` at a byte offset of a resource, written by an earlier dispatch. Each must be at most
    /// the device's `max_workgroups_per_dimension`, which the kernel that writes them sees to: drivers
    /// define nothing for more.
    Indirect {
        /// Where the counts are.
        resource: Resource,
        /// Byte offset of the first of them.
        offset: u64,
    },
}

impl Grid {
    /// `workgroups` in all, folded over the three dimensions.
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
        // Above 2^45 workgroups z would overflow; every index is 32 bits long before that.
        Grid::Direct([x as u32, y as u32, z.min(u64::from(FOLD)) as u32])
    }
}

/// A field of a kernel's `Params`: name, byte offset, bytes.
pub type Field = (&'static str, usize, usize);

/// The `Params` of a kernel: a plain struct that knows its own layout, so that a test can hold it
/// against the shader's.
pub(crate) trait KernelParams: bytemuck::NoUninit {
    /// Fields in order.
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
    /// Where each field of `params` lies.
    pub fields: &'static [Field],
    /// Bound from 1 on.
    pub bindings: Vec<Binding>,
    /// Workgroups.
    pub grid: Grid,
}

/// What the work costs at the least.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Floating-point (or integer) operations.
    pub flop: f64,
    /// Mandatory bytes: each input read once, each output written once.
    pub bytes: f64,
}

/// What can be said of the bits of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Determinism {
    /// Same device, same inputs, same bits.
    SameBits,
    /// Rounding may differ from run to run, since the order of combination does.
    RoundingVaries,
}

/// What will run: plain data.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Name of the op.
    pub op: &'static str,
    /// The variant, who chose it and why.
    pub decision: Decision,
    /// Buffers of the caller, in the order of the call.
    pub operands: Vec<Operand>,
    /// Bytes of each scratch area.
    pub scratch: Vec<u64>,
    /// Bytes of each constant: tables that the descriptor holds, uploaded once by the plan.
    pub constants: Vec<Vec<u8>>,
    /// Kernels, each once.
    pub kernels: Vec<Kernel>,
    /// Launches, in order; each sees what those before it wrote.
    pub dispatches: Vec<Dispatch>,
    /// What the work costs at the least.
    pub cost: Cost,
    /// Bytes that its workgroups ask of memory, where the design says: what tiling saves, and what caches may.
    pub traffic: Option<f64>,
    /// What can be said of the bits.
    pub determinism: Determinism,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that asks for what is not there fails")]
impl Program {
    /// The field `name` of a dispatch's parameters, as an index.
    pub(crate) fn param(&self, dispatch: usize, name: &str) -> u64 {
        self.dispatches[dispatch].param(name).unwrap().into()
    }
}

impl Dispatch {
    /// The parameter `name`, where it is one word.
    pub(crate) fn param(&self, name: &str) -> Option<u32> {
        let &(_, at, _) = self.fields.iter().find(|(field, _, size)| *field == name && *size == 4)?;
        Some(u32::from_ne_bytes(self.params.get(at..at + 4)?.try_into().ok()?))
    }
}

impl Program {
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

    /// Name of the variant.
    pub fn variant(&self) -> &'static str {
        self.decision.variant
    }

    /// Adds a kernel, once, and returns its index.
    pub(crate) fn kernel(&mut self, kernel: Kernel) -> usize {
        self.kernels.iter().position(|k| *k == kernel).unwrap_or_else(|| {
            self.kernels.push(kernel);
            self.kernels.len() - 1
        })
    }

    pub(crate) fn dispatch<P: KernelParams>(
        &mut self,
        kernel: usize,
        params: &P,
        bindings: Vec<Binding>,
        grid: Grid,
    ) {
        let params = bytemuck::bytes_of(params).to_vec();
        self.dispatches.push(Dispatch { kernel, params, fields: P::FIELDS, bindings, grid });
    }

    /// Adds a scratch area of `bytes` and returns a binding of the whole of it.
    pub(crate) fn scratch(&mut self, bytes: u64) -> Binding {
        self.scratch.push(bytes);
        Binding { resource: Resource::Scratch(self.scratch.len() - 1), offset: 0, size: bytes }
    }

    /// Appends the work of another program, whose operands are these resources, each from its first byte on.
    pub(crate) fn append(&mut self, other: Program, operands: &[Resource]) {
        let operands: Vec<_> = operands.iter().map(|&resource| (resource, 0)).collect();
        self.append_at(other, &operands, &mut Vec::new());
    }

    /// As [`append`](Self::append), with operands from these bytes on, and scratch that the programs which are appended
    /// with the same `shared` have in common: its areas are made as large as the largest needs.
    pub(crate) fn append_at(
        &mut self,
        other: Program,
        operands: &[(Resource, u64)],
        shared: &mut Vec<usize>,
    ) {
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

    /// Adds a constant and returns a binding of the whole of it.
    pub(crate) fn constant(&mut self, bytes: Vec<u8>) -> Binding {
        let size = bytes.len() as u64;
        self.constants.push(bytes);
        Binding { resource: Resource::Constant(self.constants.len() - 1), offset: 0, size }
    }

    /// Bytes of scratch in all.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}

/// A descriptor that can be lowered for elements of type `T`.
///
/// You may implement it. The kernels of your op run with runtime checks, those of the library among them, as in
/// [`Gpu::prepare`](crate::Gpu::prepare).
pub trait Op<T: Element> {
    /// Checks shapes and limits, chooses variant and policy, and says what will run.
    ///
    /// # Errors
    /// Those of the op: a shape it does not define, a limit of the device, a variant that the device
    /// cannot run.
    fn lower(&self, profile: &DeviceProfile) -> Result<Program>;

    /// Whether this crate wrote the op. Nobody else can write this function, as nobody else can name its argument.
    #[doc(hidden)]
    fn is_proven(&self, _: sealed::Ours) -> bool {
        false
    }
}

mod sealed {
    /// What only this crate can name.
    #[derive(Debug, Clone, Copy)]
    pub struct Ours;
}

/// Says of an op of this crate that its programs bound their indices.
macro_rules! proven {
    () => {
        fn is_proven(&self, _: $crate::program::Ours) -> bool {
            true
        }
    };
}
pub(crate) use proven;
pub(crate) use sealed::Ours;

/// Lowers an op. Kernels of a user's own op run with runtime checks: nobody has proven what it made or changed.
pub(crate) fn lower<T: Element, D: Op<T>>(op: &D, profile: &DeviceProfile) -> Result<Program> {
    let mut program = op.lower(profile)?;
    if !op.is_proven(Ours) {
        program.kernels.iter_mut().for_each(|kernel| kernel.trusted = false);
    }
    Ok(program)
}
