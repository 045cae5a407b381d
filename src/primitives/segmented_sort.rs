//! Sort of the keys of each segment.

use super::sort::RadixSort;
use super::{Argsort, WORDS};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::{
    Access, Asked, Binding, Comparison, Cost, DeviceProfile, Domain, Example, Grid, Input, Kernel, Op,
    OpCall, Operand, Operation, Program, Role, Setting, Variant, When, by_type, kernel_params, lowered_as,
    operands,
};
use crate::shader::Spec;
use crate::shape::index_u32;

/// Sorts the keys of each segment, stably: `keys_out[b..e]` holds `keys[b..e]` in order, where `b` and `e` are
/// neighbours among the offsets. Values move with their keys.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let keys = gpu.upload(&[3.0f32, -1.0, 2.0, 9.0, 8.0])?;
/// let (offsets, keys_out) = (gpu.upload(&[0u32, 3, 3, 5])?, gpu.alloc::<f32>(5)?); // 3 segments, one empty
/// let sort = SegmentedSort::new(5, 3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// sort.record(&mut rec, &keys, &offsets, &keys_out)?;
/// rec.submit()?;
/// assert_eq!(keys_out.read()?, [-1.0, 2.0, 3.0, 8.0, 9.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `keys` and `keys_out` have `n` elements, `offsets` (u32) has one more than there are segments, in ascending order;
/// [`with_values`](Self::with_values) adds `values` and `values_out` of `n` u32 each. Segments may be empty or as long
/// as `n`, and `n` may be 0. Keys before the first offset, and from the last one on, are sorted as segments of their
/// own. Outputs must be other wgpu buffers than inputs.
///
/// Offsets may leave the array. If they decrease, keys are sorted by the number that a bisection of the offsets gives
/// for their position, then among themselves: the output is always a permutation of the input, and nothing is written
/// outside.
///
/// # Types and order
/// Keys of f32, i32 and u32, in the order of [`RadixSort`]: equal keys keep their order, ascending and
/// [`descending`](Self::descending), and every NaN comes last in its segment either way.
///
/// # Precision and determinism
/// Keys and values are moved, never computed with. The same input gives the same bits on every device.
///
/// # Cost
/// The same for segments of any lengths: a sort of all keys with their positions, a stable sort of the positions by
/// segment (one pass for each 8 bits of the number of segments), and one move of keys and values. Scratch: 20 bytes a
/// key, and what the sorts need.
///
/// # Variants
/// Those of [`RadixSort`], chosen as there.
///
/// # Errors
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
/// - [`Unsupported`](crate::ErrorKind::Unsupported): a variant that the device cannot run.
/// - [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest binding.
///
/// # Algorithm
/// [`Argsort`], `shaders/primitives/segmented_sort_owners.wgsl`, [`RadixSort`] and `segmented_sort_move.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentedSort {
    n: usize,
    segments: usize,
    descending: bool,
    values: bool,
    variant: String,
}

kernel_params! { struct SegmentOwnersParams { count: u32, offsets: u32 } }
kernel_params! { struct SegmentMoveParams { count: u32 } }

impl SegmentedSort {
    /// Sorts the segments of `n` keys.
    pub fn new(n: usize, segments: usize) -> Self {
        Self { n, segments, descending: false, values: false, variant: "auto".into() }
    }

    /// Moves a u32 value with each key: operands `values` and `values_out`, which plans take by `with_values`.
    #[must_use]
    pub fn with_values(mut self) -> Self {
        self.values = true;
        self
    }

    /// Sorts the largest first. The default is the smallest first.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }

    crate::program::variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, .. } = *self;
        let offsets = self.segments.saturating_add(1);
        let order = Argsort::new(n).when(self.descending, Argsort::descending).variant(&self.variant);
        let order = order.lower_as(dtype, profile)?;
        let mut program = Program::new(INFO.name, order.decision.clone());
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands.push(operand("keys", dtype, n, Access::Read));
        program.operands.push(operand("offsets", DType::U32, offsets, Access::Read));
        if self.values {
            program.operands.push(operand("values", DType::U32, n, Access::Read));
        }
        program.operands.push(operand("keys_out", dtype, n, Access::Write));
        if self.values {
            program.operands.push(operand("values_out", DType::U32, n, Access::Write));
        }
        profile.check_bindings(INFO.name, &program.operands, "sort some segments at a time")?;
        program.cost = Cost::of(0.0, &program.operands);
        let count = index_u32(INFO.name, "n", n)?;
        if count == 0 {
            return Ok(program);
        }
        let bound: Vec<_> =
            (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
        let mut scratch = || program.scratch(4 * u64::from(count));
        let [by_key, owners, sorted, positions] = [scratch(), scratch(), scratch(), scratch()];
        let each = Grid::fold(u64::from(count).div_ceil(256));
        let mut shared = Vec::new();
        program.append_at(order, &[(bound[0].resource, 0), (by_key.resource, 0)], &mut shared);
        let own = program.kernel(Kernel::of_file("primitives/segmented_sort_owners", Spec::new()));
        let params = SegmentOwnersParams { count, offsets: offsets as u32 };
        program.dispatch(own, &params, vec![bound[1], by_key, owners], each);
        let bits = usize::BITS - offsets.leading_zeros();
        let sort = RadixSort::new(n).bits(0..bits.min(32)).with_values().variant(&self.variant);
        let moved = [owners, by_key, sorted, positions].map(|binding| (binding.resource, 0));
        program.append_at(Op::<u32>::lower(&sort, profile)?, &moved, &mut shared);
        let spec = Spec::new().flag("VALUES", self.values);
        let kernel = program.kernel(Kernel::of_file("primitives/segmented_sort_move", spec));
        let bindings = match *bound {
            [keys, _, values, keys_out, values_out] => vec![positions, keys, keys_out, values, values_out],
            [keys, .., keys_out] => vec![positions, keys, keys_out],
            _ => Vec::new(),
        };
        program.dispatch(kernel, &SegmentMoveParams { count }, bindings, each);
        Ok(program)
    }
}

const VARIANTS: &[Variant] = super::sort::VARIANTS;

operands! {
    impl[T: Element,] SegmentedSort, T {
        fn record(keys: T, offsets: u32, keys_out: T);
        /// Takes values that move with the keys.
        optional with_values(values: u32, values_out: u32);
    }
}

lowered_as!(SegmentedSort: f32, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "segmented-sort",
    about: "the keys of each segment in order, stable, and values with their keys",
    inputs: &[
        Input::new("keys", "(n)"),
        Input::new("offsets", "u32 (s+1)"),
        Input::optional("values", "u32 (n)"),
    ],
    outputs: &[("keys", "(n)"), ("[values]", "u32 (n)")],
    types: &WORDS,
    options: &[Setting::flag("descending")],
    domains: &[("keys", Domain::Runs), ("values", Domain::Bits)],
    make: Some(make),
    variants: SegmentedSort::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

/// The offsets of a request, and the number of segments.
pub(super) fn asked_offsets(asked: &mut Asked<'_>, n: usize) -> Result<(Role, usize)> {
    let offsets = asked.any_indices("offsets", &[n / 8 + 1], n.saturating_add(1))?;
    let [len] = asked.dims("offsets", &offsets)?;
    let segments = len.checked_sub(1).ok_or_else(|| {
        err!(Shape, "{}: offsets has no element; it must have one more than there are segments", asked.name())
    })?;
    Ok((Role::Given(offsets), segments))
}

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (keys, [n]) = asked.array("keys")?;
    let (offsets, segments) = asked_offsets(asked, n)?;
    let descending = asked.settings().has("descending");
    let op = SegmentedSort::new(n, segments).when(descending, SegmentedSort::descending);
    let op = op.variant(asked.variant());
    let dtype = keys.dtype();
    let mut operands = vec![Role::Given(keys), offsets];
    let values = asked.has_more();
    if values {
        operands.push(Role::Given(asked.of("values", &[n], DType::U32)?));
    }
    operands.extend((0..=usize::from(values)).map(|_| Role::Result(vec![n])));
    let op = op.when(values, SegmentedSort::with_values);
    by_type!(asked, dtype, [f32, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = SegmentedSort::new(10_001, 90).variant(variant);
    Ok(vec![
        op.clone().with_values().lower_as(DType::F32, profile)?,
        op.clone().descending().lower_as(DType::I32, profile)?,
        op.lower_as(DType::U32, profile)?,
    ])
}
