//! Merge sort by an order of the user's own.

use super::DTYPES;
use super::merge::merge_spec;
use crate::element::{DType, Element};
use crate::error::Result;
use crate::program::fill::fill;
use crate::program::{
    Access, Asked, Binding, Cost, DeviceProfile, Domain, Example, Grid, Input, Kernel, Op, OpCall, Operand,
    Operation, Program, Role, Setting, Variant, When, by_type, element_fragment, kernel_params, lowered_as,
    operands,
};
use crate::shader::{Fragment, Spec};
use crate::shape::index_u32;
use half::f16;
use std::sync::Arc;

/// Sorts keys, stably, by comparing them: `keys_out[i]` is the `i`-th of `keys` in the order that your WGSL function
/// `fn less(a: T, b: T) -> bool` defines. Values move with their keys.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (keys, values) = (gpu.upload(&[3i32, -1, 2, -3])?, gpu.upload(&[10u32, 11, 12, 13])?);
/// let (keys_out, values_out) = (gpu.alloc::<i32>(4)?, gpu.alloc::<u32>(4)?);
/// let by_size = MergeSort::new(4).less("fn less(a: T, b: T) -> bool { return abs(a) < abs(b); }");
/// let plan = by_size.with_values().plan::<i32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.with_values(&values, &values_out).record(&mut rec, &keys, &keys_out)?;
/// rec.submit()?;
/// assert_eq!(keys_out.read()?, [-1, 2, 3, -3]);
/// assert_eq!(values_out.read()?, [11, 12, 10, 13]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `keys` and `keys_out` have `n` elements, which may be 0; [`with_values`](MergeSort::with_values) adds `values` and
/// `values_out` of `n` u32 each. Inputs keep their contents and must be other wgpu buffers than the outputs.
///
/// # Types and order
/// Keys of u32, i32 and f32; ascending, or [`descending`](MergeSort::descending). Equal keys keep their order.
/// Without [`less`](MergeSort::less) the order is that of [`RadixSort`](crate::RadixSort). `less` must be a strict weak
/// ordering: false for equal keys, and transitive, also in what it calls equal. `a < b` is not one if keys of f32 may
/// be NaN. If `less` is not one, the output is some permutation of the keys.
///
/// # Precision and determinism
/// Keys and values are moved, never computed with. The same input gives the same bits in every run, and on every device
/// where `less` gives the same results.
///
/// # Cost
/// `log2(n / t)` passes, each of which reads and writes keys and values, after one that sorts tiles of `t` keys: 3840,
/// or 1792 with values. Two dispatches a pass. Scratch: keys and values once more, and 4 bytes for each tile.
///
/// # Variants
/// `merge-path`: a workgroup sorts or merges a tile.
///
/// # Errors
/// - [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest binding.
/// - [`Shader`](crate::ErrorKind::Shader): a `less` that does not compile.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// As [`Merge`](crate::Merge), for all pairs of runs at once: `shaders/primitives/merge_sort.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeSort {
    n: usize,
    descending: bool,
    values: bool,
    less: Option<Arc<str>>,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("merge-path", "a workgroup sorts or merges a tile")];

kernel_params! { struct MergeSortParams { n: u32, width: u32, tiles: u32 } }

impl MergeSort {
    /// Sorts `n` keys.
    pub fn new(n: usize) -> Self {
        Self { n, descending: false, values: false, less: None, variant: "auto".into() }
    }

    /// Orders keys by the WGSL function `fn less(a: T, b: T) -> bool`, where `T` is the element type: whether `a` comes
    /// before `b`. The text is validated, and runs as [`CustomOp`](crate::CustomOp) says.
    #[must_use]
    pub fn less(mut self, wgsl: &str) -> Self {
        self.less = Some(wgsl.into());
        self
    }

    /// Sorts the largest first. The default is the smallest first.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }

    /// Moves a u32 value with each key: operands `values` and `values_out`, which plans take by `with_values`.
    #[must_use]
    pub fn with_values(mut self) -> Self {
        self.values = true;
        self
    }

    /// Whether keys are compared by the user's function.
    pub(crate) fn is_custom(&self) -> bool {
        self.less.is_some()
    }

    crate::program::variants!(variant);

    /// How keys are compared. Integers without a comparison of the user's are compared by `<`.
    fn spec(&self, dtype: DType) -> Result<Spec> {
        if self.less.is_none() && dtype.is_float() {
            return merge_spec(dtype, self.descending);
        }
        let spec = Spec::new().slot("element", element_fragment(dtype)).flag("CUSTOM", true);
        let spec = spec.flag("HALVES", dtype == DType::F16);
        let spec = spec.flag("DESCENDING", self.descending);
        Ok(match &self.less {
            Some(less) => spec.slot("less", Fragment::of_user(less)).flag("CHECKED", true),
            None => spec,
        })
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, values, .. } = *self;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name, dtype, access| Operand { name, dtype, len: n, access };
        let mut pairs = vec![("keys", "keys_out", dtype)];
        pairs.extend(values.then_some(("values", "values_out", DType::U32)));
        program.operands.extend(pairs.iter().map(|(name, _, dtype)| operand(name, *dtype, Access::Read)));
        program.operands.extend(pairs.iter().map(|(_, name, dtype)| operand(name, *dtype, Access::Write)));
        profile.check_bindings(INFO.name, &program.operands, "sort parts and merge them")?;
        let n32 = index_u32(INFO.name, "n", n)?;
        // A workgroup sorts a block of 512 x 9 keys where it has room for them, and merges tiles of half of that.
        let wide =
            profile.limits.max_workgroup_bytes >= 4 * 513 * 9 + 64 && profile.limits.max_invocations >= 512;
        let ([threads, items], merging) = match (profile.quirks.serial_workgroups, values) {
            (true, _) => ([64, 7], 64),
            (false, true) => ([256, 7], 256),
            (false, false) if wide => ([512, 9], 256),
            (false, false) => ([256, 15], 256),
        };
        let block = threads * items;
        let blocks = n32.div_ceil(block);
        let tiles = n32.div_ceil(merging * items);
        let passes = blocks.max(1).next_power_of_two().ilog2();
        let moved = Cost::of(n as f64 * f64::from(n32.max(1).ilog2()), &program.operands);
        program.cost = Cost { bytes: moved.bytes * f64::from(passes + 1), ..moved };
        if n == 0 {
            return Ok(program);
        }
        let spec = self.spec(dtype)?.constant("ITEMS", items).flag("VALUES", values);
        let bind = |range: std::ops::Range<usize>| -> Vec<_> {
            range.map(|i| Binding::operand(i, &program.operands)).collect()
        };
        let (input, output) = (bind(0..pairs.len()), bind(pairs.len()..2 * pairs.len()));
        let other: Vec<_> = pairs
            .iter()
            .map(|(.., dtype)| match passes {
                0 => output[0],
                _ => program.scratch((dtype.size() * n) as u64),
            })
            .collect();
        let diagonals = program.scratch(4 * u64::from(tiles));
        let broken = self.is_custom().then(|| program.scratch(4));
        if let Some(broken) = broken {
            program.append(fill(1, [0, 0], profile)?, &[broken.resource]);
        }
        let library = |entry, spec| Kernel::library("primitives/merge_sort", entry, spec);
        // Passes write to both in turns, the last to the output.
        let target = |pass: u32| if (passes - pass).is_multiple_of(2) { &output } else { &other };
        let params = MergeSortParams { n: n32, width: 0, tiles: blocks };
        let sort = spec.clone().constant("WORKGROUP_SIZE", threads).flag("BLOCK", true);
        let sort = program.kernel(library("merge_sort_block", sort));
        let moved = |from: &[Binding], to: &[Binding]| -> Vec<_> {
            from.iter().zip(to).flat_map(|(from, to)| [*from, *to]).collect()
        };
        program.dispatch(sort, &params, moved(&input, target(0)), Grid::fold(blocks.into()));
        if passes == 0 {
            return Ok(program);
        }
        let spec = spec.constant("WORKGROUP_SIZE", merging);
        let bisect = program.kernel(library("merge_sort_diagonals", spec.clone().flag("DIAGONALS", true)));
        let spec = spec.constant("BROKEN_BINDING", if values { 6 } else { 4 });
        let merge = program.kernel(library("merge_sort_tiles", spec));
        for pass in 1..=passes {
            let params = MergeSortParams { width: block << (pass - 1), tiles, ..params };
            let (from, to) = (target(pass - 1), target(pass));
            let bindings = [from[0], diagonals].into_iter().chain(broken).collect();
            program.dispatch(bisect, &params, bindings, Grid::fold(u64::from(tiles.div_ceil(merging))));
            let mut bindings = moved(from, to);
            bindings.insert(1, diagonals);
            bindings.extend(broken);
            program.dispatch(merge, &params, bindings, Grid::fold(tiles.into()));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] MergeSort, T {
        fn record(keys: T, keys_out: T);
        /// Takes values that move with the keys.
        optional with_values(values: u32, values_out: u32);
    }
}

lowered_as!(MergeSort: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "merge-sort",
    about: "keys in order, stable, by a comparison of your own, and values with their keys",
    inputs: &[Input::new("keys", "(n)"), Input::optional("values", "u32 (n)")],
    outputs: &[("keys", "(n)"), ("[values]", "u32 (n)")],
    types: &DTYPES,
    options: &[Setting::flag("descending"), Setting::text("less", "FILE", "")],
    domains: &[("keys", Domain::Runs), ("values", Domain::Bits)],
    make: Some(make),
    variants: MergeSort::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (keys, [n]) = asked.array("keys")?;
    let settings = asked.settings();
    let mut op = MergeSort::new(n).variant(asked.variant());
    op = op.when(settings.has("descending"), MergeSort::descending);
    if let Some(wgsl) = settings.word("less") {
        op = op.less(wgsl);
    }
    let dtype = keys.dtype();
    let mut operands = vec![Role::Given(keys)];
    if asked.has_more() {
        operands.push(Role::Given(asked.of("values", &[n], DType::U32)?));
        op = op.with_values();
    }
    operands.extend(vec![Role::Result(vec![n]); operands.len()]);
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = MergeSort::new(10_000).variant(variant);
    let custom = op.clone().less("fn less(a: T, b: T) -> bool { return a * a < b * b; }");
    Ok(vec![
        Op::<f32>::lower(&op, profile)?,
        Op::<i32>::lower(&op.clone().descending().with_values(), profile)?,
        Op::<u32>::lower(&op, profile)?,
        Op::<f32>::lower(&custom.clone().descending(), profile)?,
        Op::<f16>::lower(&op, profile)?,
        Op::<f16>::lower(&op.clone().descending().with_values(), profile)?,
        Op::<f16>::lower(&custom.clone().with_values(), profile)?,
        Op::<i32>::lower(&custom.with_values(), profile)?,
    ])
}
