//! Elementwise ops: a function of one operand ([`Map`]), of two ([`Zip`]), and BLAS's `y = alpha x + y` ([`Axpy`]) and
//! `x = alpha x` ([`Scal`]).
//!
//! Memory bandwidth alone limits these ops. Your own function is a line of WGSL ([`MapFn::Custom`],
//! [`ZipFn::Custom`]): fusing a chain of maps into one such function saves a trip through memory for each map.
//!
//! [`Transform`] takes up to four operands of any types, which may repeat along rows or columns.
//!
//! `map`, `zip`, `axpy` and `scal` share their variants:
//!
//! | variant | one thread |
//! |---|---|
//! | `vec4` | loads 16 bytes of each input at once; the fastest, and mostly the choice of `auto` |
//! | `plain` | one 32-bit word: the baseline |
//! | `grid-stride` | many words, a fixed distance apart, in a fixed number of workgroups |
//!
//! Operands above the device's largest binding are processed in several dispatches.

mod activation;
mod axpy;
mod map;
mod scal;
mod transform;
mod zip;

pub use activation::Activation;
pub use axpy::Axpy;
#[cfg(feature = "primitives")]
pub(crate) use map::{MAPPED, asked_map};
pub use map::{Map, MapFn};
pub use scal::Scal;
pub use transform::{Broadcast, Transform, TransformFn};
pub use zip::{Zip, ZipFn};

use crate::program::prelude::*;

/// The ops of this family.
pub const OPS: &[Operation] = &[map::INFO, zip::INFO, axpy::INFO, scal::INFO, transform::INFO];

pub(crate) const VARIANTS: &[Variant] = &[
    Variant::portable("plain", "one 32-bit word a thread"),
    Variant::portable("grid-stride", "a fixed number of workgroups, each thread strides over the words"),
    Variant::portable("vec4", "four words a thread, loaded and stored as 16 bytes"),
];

const DTYPES: [DType; 4] = [DType::F32, DType::F16, DType::I32, DType::U32];

const WORKGROUP_SIZE: u32 = 256;

/// Offsets of bindings are multiples of this, so chunks begin at multiples of it.
const CUT: u64 = 256;

/// Maximum of bytes of an operand that one dispatch covers: word indices stay far below 2^32.
const MAX_CHUNK: u64 = 1 << 31;

/// The variant up to so many bytes of which vec4s leave a rest for a second dispatch. f32, us of it and `vec4`: 10,001
/// 81, 75 (Mesa 22.3); 4,194,307 12.9, 14.5, 12,582,919 46.9, 42.5 (H100, Vulkan, driver 580.159.04).
fn with_rest(profile: &DeviceProfile) -> (&'static str, usize) {
    if profile.quirks.few_cores { ("plain", 32 << 10) } else { ("grid-stride", 24 << 20) }
}

/// Workgroups of the `grid-stride` variant: several for each core of the largest device, and few
/// enough on a processor that each still has work.
fn grid_stride_workgroups(profile: &DeviceProfile) -> u32 {
    if profile.quirks.few_cores { 64 } else { 4096 }
}

/// The order in which a kernel visits the words of its operands: a file beside that of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walk {
    Plain,
    GridStride,
    Vec4,
}

impl Walk {
    fn entry(self) -> &'static str {
        match self {
            Walk::Plain => "elementwise_plain",
            Walk::GridStride => "elementwise_grid_stride",
            Walk::Vec4 => "elementwise_vec4",
        }
    }

    fn specialise(self, spec: Spec, profile: &DeviceProfile) -> Spec {
        let spec = spec.constant("WORKGROUP_SIZE", WORKGROUP_SIZE);
        match self {
            Walk::Plain => spec.slot("walk", Fragment::Library("elementwise/elementwise_plain")),
            Walk::GridStride => spec
                .slot("walk", Fragment::Library("elementwise/elementwise_grid_stride"))
                .constant("WORKGROUPS", grid_stride_workgroups(profile)),
            Walk::Vec4 => spec.slot("walk", Fragment::Library("elementwise/elementwise_vec4")).flag("VEC4", true),
        }
    }

    fn workgroups(self, bytes: u64, profile: &DeviceProfile) -> u64 {
        let of_words = bytes.div_ceil(4 * u64::from(WORKGROUP_SIZE));
        match self {
            Walk::Plain => of_words,
            Walk::GridStride => of_words.min(grid_stride_workgroups(profile).into()),
            Walk::Vec4 => bytes.div_ceil(16 * u64::from(WORKGROUP_SIZE)),
        }
    }
}

/// A kernel over operands of equal length and type. The three ops and other elementwise ops lower to it.
pub(crate) struct Sweep<'a> {
    pub(crate) op: &'static str,
    pub(crate) shader: &'static str,
    pub(crate) variant: &'a str,
    pub(crate) dtype: DType,
    pub(crate) n: usize,
    pub(crate) operands: &'a [(&'static str, Access)],
    /// The spec, without the slots and constants of the walk and the element type.
    pub(crate) spec: Spec,
    pub(crate) flop_per_element: f64,
}

impl Sweep<'_> {
    /// Adds operands and dispatches; `params` makes the parameters of a dispatch over a number of elements, behind
    /// as many as the second number says.
    pub(crate) fn lower<P: KernelParams>(
        self, profile: &DeviceProfile, params: impl Fn(u32, u32) -> P,
    ) -> Result<Program> {
        let Self { op, dtype, n, .. } = self;
        let auto = || match (with_rest(profile), n.saturating_mul(dtype.size())) {
            ((variant, most), bytes) if !(bytes as u64).is_multiple_of(CUT) && bytes < most => {
                (variant, "one dispatch, also for elements behind the last vec4".to_owned())
            }
            _ => ("vec4", "16-byte loads and stores come closest to the memory's speed".to_owned()),
        };
        let (variant, decision) = choose(op, self.variant, VARIANTS, profile, auto)?;
        if !DTYPES.contains(&dtype) {
            return Err(err!(Unsupported, "{op}: elements of {dtype}; convert them to f32, f16, i32 or u32"));
        }
        let spec = self.spec.slot("element", element_fragment(dtype));

        let mut program = Program::new(op, decision);
        program.operands =
            self.operands.iter().map(|&(name, access)| Operand { name, dtype, len: n, access }).collect();
        profile.check_buffers(op, &program.operands, "split the work into smaller calls")?;
        let bytes = program.operands[0].bytes();
        let passes: usize = self.operands.iter().map(|(_, a)| if *a == Access::ReadWrite { 2 } else { 1 }).sum();
        program.cost = Cost { flop: self.flop_per_element * n as f64, bytes: (passes as u64 * bytes) as f64 };

        let chunk = (profile.limits.max_storage_binding.min(MAX_CHUNK) / CUT * CUT).max(CUT);
        let mut sweep = |walk: Walk, offset: u64, size: u64| {
            let kernel = Kernel::library(self.shader, walk.entry(), walk.specialise(spec.clone(), profile));
            let kernel = program.kernel(kernel);
            let bindings =
                (0..self.operands.len()).map(|i| Binding { resource: Resource::Operand(i), offset, size }).collect();
            let elements = (size / dtype.size() as u64) as u32;
            let params = params(elements, (offset / dtype.size() as u64) as u32);
            program.dispatch(kernel, &params, bindings, Grid::fold(walk.workgroups(size, profile)));
        };
        for BoundChunk { first: offset, count: size } in BoundChunk::full(bytes, chunk) {
            match variant.name {
                "plain" => sweep(Walk::Plain, offset, size),
                "grid-stride" => sweep(Walk::GridStride, offset, size),
                _ => {
                    // The rest begins at a multiple of CUT, where a binding may begin.
                    let body = size / CUT * CUT;
                    if body > 0 {
                        sweep(Walk::Vec4, offset, body);
                    }
                    if body < size {
                        sweep(Walk::Plain, offset + body, size - body);
                    }
                }
            }
        }
        Ok(program)
    }
}

/// Adds an operand of one element behind the others, and binds it in every dispatch.
fn bind_scalar(program: &mut Program, name: &'static str, dtype: DType) {
    program.operands.push(Operand { name, dtype, len: 1, access: Access::Read });
    let scalar = Binding::operand(program.operands.len() - 1, &program.operands);
    program.dispatches.iter_mut().for_each(|dispatch| dispatch.bindings.push(scalar));
}

/// Adds the operand `length` in the same way, and launches for it where that pays.
fn bind_length(program: &mut Program, dtype: DType) {
    bind_scalar(program, LENGTH.name, DType::U32);
    let length = Binding::operand(program.operands.len() - 1, &program.operands);
    let covered = program.dispatches.iter().enumerate().filter_map(|(at, dispatch)| {
        let words = match program.kernels[dispatch.kernel].entry {
            entry if entry == Walk::Vec4.entry() => 4,
            entry if entry == Walk::Plain.entry() => 1,
            _ => return None,
        };
        let each = WORKGROUP_SIZE * words * 4 / dtype.size() as u32;
        Some((at, Covered::new(dispatch.param("first")?, dispatch.param("n")?, each)))
    });
    let covered: Vec<_> = covered.collect();
    launch_for(program, length, &covered);
}

#[cfg(test)]
mod tests;
