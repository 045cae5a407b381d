use super::merge::merge_spec;
use super::values::Values;
use super::{DTYPES, Gather};
use crate::program::prelude::*;
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
/// `values_out` of `n` u32 each, [`with_wide_values`](MergeSort::with_wide_values) of several words. With
/// [`counted`](MergeSort::counted) an operand `length` of one u32 holds the number of keys. Inputs keep their contents
/// and must be other wgpu buffers than the outputs.
///
/// # Types and order
/// Keys of u32, i32, f32 and f16; ascending, or [`descending`](MergeSort::descending). Equal keys keep their order.
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
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`Shader`](ErrorKind::Shader): a `less` that does not compile.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): values of no word, an unknown variant.
///
/// # Algorithm
/// As [`Merge`](crate::Merge), for all pairs of runs at once: `shaders/primitives/merge_sort.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeSort {
    n: usize,
    descending: bool,
    values: bool,
    /// Words of a value.
    width: usize,
    counted: bool,
    less: Option<Arc<str>>,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("merge-path", "a workgroup sorts or merges a tile")];

kernel_params! { struct MergeSortParams { n: u32, width: u32, tiles: u32 } }

impl MergeSort {
    /// Sorts `n` keys.
    pub fn new(n: usize) -> Self {
        Self { n, descending: false, values: false, width: 1, counted: false, less: None, variant: "auto".into() }
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
        (self.values, self.width) = (true, 1);
        self
    }

    /// Moves a value of `words` u32 with each key, as
    /// [`RadixSort::with_wide_values`](crate::RadixSort::with_wide_values).
    #[must_use]
    pub fn with_wide_values(mut self, words: usize) -> Self {
        (self.values, self.width) = (true, words);
        self
    }

    counted!(counted, "keys", "There may be anything behind it in the outputs.");

    /// Whether keys are compared by the user's function.
    pub(crate) fn is_custom(&self) -> bool {
        self.less.is_some()
    }

    variants!(variant);

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
        let Self { n, values, width, .. } = *self;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        let mut pairs = vec![("keys", "keys_out", dtype, n)];
        let words = elements(INFO.name, "values", &[n, width])?;
        if width == 0 {
            return Err(err!(InvalidArgument, "{}: values of 0 words; sort keys alone", INFO.name));
        }
        pairs.extend(values.then_some(("values", "values_out", DType::U32, words)));
        let inputs = pairs.iter().map(|(name, _, dtype, len)| operand(name, *dtype, *len, Access::Read));
        program.operands.extend(inputs);
        program.operands.extend(self.counted.then(|| operand("length", DType::U32, 1, Access::Read)));
        let first = program.operands.len();
        let outputs = pairs.iter().map(|(_, name, dtype, len)| operand(name, *dtype, *len, Access::Write));
        program.operands.extend(outputs);
        profile.check_bindings(INFO.name, &program.operands, "sort parts and merge them")?;
        let n32 = index_u32(INFO.name, "n", n)?;
        // A workgroup sorts a block of 512 x 9 keys where it has room for them, and merges tiles of half of that.
        let wide = profile.limits.max_workgroup_bytes >= 4 * 513 * 9 + 64 && profile.limits.max_invocations >= 512;
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
        let (mut input, mut output) = (bind(0..pairs.len()), bind(first..first + pairs.len()));
        let length = self.counted.then(|| Binding::operand(pairs.len(), &program.operands));
        let gathered = if values && width != 1 { Some(program.scratch(4 * n as u64)) } else { None };
        if let Some(positions) = gathered {
            // The first pass makes the positions as it goes, and reads no values.
            (_, output[1]) = (input.pop(), positions);
        }
        let other: Vec<_> = pairs
            .iter()
            .map(|(_, _, dtype, _)| match passes {
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
        let bound = (1 + input.len() + output.len()) as u32;
        let sort = limited(sort.flag("POSITIONS", gathered.is_some()), self.counted, bound);
        let sort = program.kernel(library("merge_sort_block", sort));
        let moved = |from: &[Binding], to: &[Binding]| -> Vec<_> {
            from.iter().zip(to).flat_map(|(from, to)| [*from, *to]).collect()
        };
        let mut bindings = moved(&input, target(0));
        bindings.extend(target(0).iter().skip(input.len()).copied().chain(length));
        program.dispatch(sort, &params, bindings, Grid::fold(blocks.into()));
        if passes > 0 {
            let spec = spec.constant("WORKGROUP_SIZE", merging);
            let after = |at: u32| at + u32::from(broken.is_some());
            let bisect = limited(spec.clone().flag("DIAGONALS", true), self.counted, after(3));
            let bisect = program.kernel(library("merge_sort_diagonals", bisect));
            let last = if values { 6 } else { 4 };
            let spec = limited(spec.constant("BROKEN_BINDING", last), self.counted, after(last));
            let merge = program.kernel(library("merge_sort_tiles", spec));
            for pass in 1..=passes {
                let params = MergeSortParams { width: block << (pass - 1), tiles, ..params };
                let (from, to) = (target(pass - 1), target(pass));
                let bindings = [from[0], diagonals].into_iter().chain(broken).chain(length).collect();
                program.dispatch(bisect, &params, bindings, Grid::fold(u64::from(tiles.div_ceil(merging))));
                let mut bindings = moved(from, to);
                bindings.insert(1, diagonals);
                bindings.extend(broken.into_iter().chain(length));
                program.dispatch(merge, &params, bindings, Grid::fold(tiles.into()));
            }
        }
        if let Some(positions) = gathered {
            let gather = Gather::new([n, width], n).when(self.counted, Gather::counted);
            let length = length.map(|length| length.resource);
            let [from, to] = [1, first + 1].map(Resource::Operand);
            let operands: Vec<_> = [from, positions.resource].into_iter().chain(length).chain([to]).collect();
            program.append(gather.lower_as(DType::U32, profile)?, &operands);
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] MergeSort, T {
        fn record(keys: T, keys_out: T);
        /// Takes values that move with the keys.
        optional with_values(values: u32, values_out: u32);
        /// Takes the number of keys from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(MergeSort: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "merge-sort",
    about: "keys in order, stable, by a comparison of your own, and values with their keys",
    inputs: &[Input::new("keys", "(n)"), Input::optional("values", "u32, i32, f32 (n, ...)")],
    outputs: &[("keys", "(n)"), ("[values]", "(n, ...)")],
    types: &DTYPES,
    options: &[Setting::flag("descending"), Setting::text("less", "FILE", ""), LENGTH],
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
    let values = Values::asked(asked, n, true)?;
    if let Some(values) = &values {
        op = op.with_wide_values(values.words);
    }
    let (length, output) = asked.length(1, vec![n])?;
    op = op.when(length.is_some(), MergeSort::counted);
    let outputs = Values::outputs(values.as_ref(), output);
    let given = [keys].into_iter().chain(values.iter().map(|v| v.array.clone())).map(Role::Given);
    let operands = given.chain(length).chain(outputs).collect();
    by_type!(asked, dtype, [f32, f16, i32, u32], T => {
        Ok(Values::typed(values.as_ref(), 1, OpCall::new::<T>(op, operands)))
    })
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
        Op::<i32>::lower(&custom.clone().with_values(), profile)?,
        Op::<u32>::lower(&custom.with_wide_values(3).counted(), profile)?,
    ])
}
