use super::DTYPES;
use super::sort::key_spec;
use crate::program::prelude::*;
use std::ops::Range;

/// Merges two sorted arrays: `output` has the elements of `a` and `b` in order, as `std::merge` gives them. Values can
/// move with their elements, which merges by key.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (a, b, output) = (gpu.upload(&[1.0f32, 4.0])?, gpu.upload(&[-2.0f32, 1.0, 9.0])?, gpu.alloc::<f32>(5)?);
/// let (of_a, of_b, values) = (gpu.upload(&[10u32, 11])?, gpu.upload(&[20u32, 21, 22])?, gpu.alloc::<u32>(5)?);
/// let plan = Merge::new(2, 3).with_values().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.with_values(&of_a, &of_b, &values).record(&mut rec, &a, &b, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [-2.0, 1.0, 1.0, 4.0, 9.0]);
/// assert_eq!(values.read()?, [20, 10, 21, 11, 22]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `a` has `n` elements, `b` has `m`, `output` has `n + m`; each may be 0. [`with_values`](Merge::with_values) adds
/// `a_values`, `b_values` and `values_out`, of as many u32. Inputs may share a wgpu buffer with each other, and not
/// with outputs. With [`counted`](Merge::counted) operands `a_length` and `b_length` of one u32 each hold the numbers
/// of elements, at most `n` and `m`, and `count` takes their sum.
///
/// # Types and order
/// u32, i32, f32 and f16, ascending or [`descending`](Merge::descending), in the order of
/// [`RadixSort`](crate::RadixSort): for floats -inf ... -0, +0 ... +inf, and every NaN last either way. Equal elements
/// of `a` come before those of `b`, and keep their order. If an input is not sorted, each element of `output` is one of
/// `a` or `b`, and which one is unspecified.
///
/// # Precision and determinism
/// Bits are moved unchanged, and the same on every device.
///
/// # Cost
/// Inputs are read once and outputs written once. Two dispatches: the first bisects for the begins of tiles. Scratch: 4
/// bytes for each tile of 2304 elements.
///
/// # Variants
/// `merge-path`: a workgroup merges a tile of the output.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// Merge path, O. Green, R. McColl and D. Bader (2012): `shaders/primitives/merge.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    n: usize,
    m: usize,
    descending: bool,
    values: bool,
    counted: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("merge-path", "a workgroup merges a tile of the output")];

kernel_params! { struct MergeParams { a_len: u32, b_len: u32, tiles: u32 } }
kernel_params! {
    struct MergePartParams { a_len: u32, b_len: u32, tiles: u32, a_begin: u32, b_begin: u32, begin: u32 }
}

impl Merge {
    /// Merges `n` elements with `m`.
    pub fn new(n: usize, m: usize) -> Self {
        Self { n, m, descending: false, values: false, counted: false, variant: "auto".into() }
    }

    /// Takes inputs with the largest first, and merges them so. The default is the smallest first.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }

    /// Moves a u32 value with each element: operands `a_values`, `b_values` and `values_out`, which plans take by
    /// `with_values`.
    #[must_use]
    pub fn with_values(mut self) -> Self {
        self.values = true;
        self
    }

    /// Reads the numbers of elements, at most `n` and `m`, from the device: operands `a_length` and `b_length` of one
    /// u32 each. An operand `count` of one u32 takes their sum. Plans take the three by `with_lengths`. Larger numbers
    /// count as `n` and `m`. Elements of outputs behind the merged ones are not written.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (a, b, output) = (gpu.upload(&[1u32, 4, 0])?, gpu.upload(&[3u32, 9])?, gpu.alloc::<u32>(5)?);
    /// let (of_a, of_b, count) = (gpu.upload(&[2u32])?, gpu.upload(&[1u32])?, gpu.alloc::<u32>(1)?);
    /// let plan = Merge::new(3, 2).counted().plan::<u32>(&gpu)?;
    /// let mut rec = gpu.recorder();
    /// plan.with_lengths(&of_a, &of_b, &count).record(&mut rec, &a, &b, &output)?;
    /// rec.submit()?;
    /// assert_eq!(count.read()?, [3]);
    /// assert_eq!(output.slice(..3)?.read()?, [1, 3, 4]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.counted = true;
        self
    }

    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, m, values, .. } = *self;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands = vec![operand("a", dtype, n, Access::Read), operand("b", dtype, m, Access::Read)];
        if values {
            program.operands.push(operand("a_values", DType::U32, n, Access::Read));
            program.operands.push(operand("b_values", DType::U32, m, Access::Read));
        }
        let lengths = program.operands.len();
        if self.counted {
            let of = |name| operand(name, DType::U32, 1, Access::Read);
            program.operands.extend(["a_length", "b_length"].map(of));
        }
        let (len, to) = (n.saturating_add(m), program.operands.len());
        program.operands.push(operand("output", dtype, len, Access::Write));
        if values {
            program.operands.push(operand("values_out", DType::U32, len, Access::Write));
        }
        if self.counted {
            program.operands.push(operand("count", DType::U32, 1, Access::Write));
        }
        profile.check_bindings(INFO.name, &program.operands, "merge parts in separate calls")?;
        program.cost = Cost::of(len as f64, &program.operands);
        let bind = |i: usize| Binding::operand(i, &program.operands);
        let outputs = if values { vec![bind(to), bind(2), bind(3), bind(to + 1)] } else { vec![bind(to)] };
        let counts = if self.counted {
            vec![bind(lengths + 1), bind(program.operands.len() - 1), bind(lengths)]
        } else {
            Vec::new()
        };
        let job = MergeJob { inputs: [bind(0), bind(1)], lens: [n, m], counts, begins: None, outputs };
        job.add(&mut program, merge_spec(dtype, self.descending)?, profile)?;
        Ok(program)
    }
}

pub(super) fn merge_spec(dtype: DType, descending: bool) -> Result<Spec> {
    match dtype {
        DType::F16 => {
            let flip = if descending { 0xffff } else { 0 };
            Ok(Spec::new().constant("FLIP", flip).flag("HALVES", true))
        }
        _ => key_spec(dtype, descending),
    }
}

pub(super) struct MergeJob {
    pub(super) inputs: [Binding; 2],
    pub(super) lens: [usize; 2],
    /// If the device counts the elements: the length of the second input, at most that above; the length of the result,
    /// which it writes; and that of the first input, unless it is known.
    pub(super) counts: Vec<Binding>,
    /// Where both inputs and the output begin in their operands, if not at the start.
    pub(super) begins: Option<[u32; 3]>,
    pub(super) outputs: Vec<Binding>,
}

/// Merges ranges of two operands of `lens` elements to the places from `begin` on: operands `a`, `b`, `output`. Ranges
/// may begin where a slice could not be bound.
pub(crate) fn part(
    dtype: DType, lens: [usize; 3], [a, b]: [&Range<usize>; 2], begin: usize, descending: bool, profile: &DeviceProfile,
) -> Result<Program> {
    let operand = |name, len, access| Operand { name, dtype, len, access };
    let mut program = Program::of_only_variant(INFO.name, "auto", VARIANTS, profile)?;
    program.operands = vec![
        operand("a", lens[0], Access::Read),
        operand("b", lens[1], Access::Read),
        operand("output", lens[2], Access::Write),
    ];
    profile.check_bindings(INFO.name, &program.operands, "use more ranks")?;
    let len = a.len().saturating_add(b.len());
    program.cost = Cost { flop: len as f64, bytes: 2.0 * (len * dtype.size()) as f64 };
    let bind = |i: usize| Binding::operand(i, &program.operands);
    let at = |name, at: usize| index_u32(INFO.name, name, at);
    let job = MergeJob {
        inputs: [bind(0), bind(1)],
        lens: [a.len(), b.len()],
        counts: Vec::new(),
        begins: Some([
            at("the begin of a", a.start)?,
            at("the begin of b", b.start)?,
            at("the begin of the output", begin)?,
        ]),
        outputs: vec![bind(2)],
    };
    job.add(&mut program, key_spec(dtype, descending)?, profile)?;
    Ok(program)
}

/// Adds the kernel that finds the begins of tiles.
fn diagonals(program: &mut Program, spec: Spec) -> usize {
    let spec = spec.flag("DIAGONALS", true);
    program.kernel(Kernel::library("primitives/merge", "merge_diagonals", spec))
}

/// Finds where the tiles of `threads * items` elements of a merge begin in its first input. `spec` says how words are
/// compared. If the device counts the elements, the words behind the begins are both lengths.
pub(super) fn find_tiles(
    program: &mut Program, spec: Spec, inputs: [Binding; 2],
    ([a_len, b_len], lengths): ([u32; 2], Option<[Binding; 2]>), [threads, items]: [u32; 2],
) -> Binding {
    let tiles = (u64::from(a_len) + u64::from(b_len)).div_ceil(u64::from(threads * items));
    let begins = program.scratch(4 * (tiles.max(1) + if lengths.is_some() { 2 } else { 0 }));
    if tiles > 0 {
        let spec = spec.flag("COUNTED", lengths.is_some()).flag("COUNTED_A", lengths.is_some());
        let kernel = diagonals(program, spec.constant("WORKGROUP_SIZE", threads).constant("ITEMS", items));
        let params = MergeParams { a_len, b_len, tiles: tiles as u32 };
        let grid = Grid::fold(tiles.div_ceil(threads.into()));
        let mut bindings = vec![inputs[0], inputs[1], begins];
        if let Some([of_a, of_b]) = lengths {
            bindings.extend([of_b, program.scratch(4), of_a]);
        }
        program.dispatch(kernel, &params, bindings, grid);
    }
    begins
}

impl MergeJob {
    /// Adds them to `program`; `spec` says how words are compared.
    pub(super) fn add(self, program: &mut Program, spec: Spec, profile: &DeviceProfile) -> Result<()> {
        let [a_len, b_len] =
            [("n", self.lens[0]), ("m", self.lens[1])].map(|(name, len)| index_u32(program.op, name, len));
        let (a_len, b_len) = (a_len?, b_len?);
        let len = u64::from(index_u32(program.op, "n + m", self.lens[0].saturating_add(self.lens[1]))?);
        let (threads, items) = if profile.quirks.serial_workgroups { (64, 7) } else { (256, 9) };
        let tiles = len.div_ceil(u64::from(threads * items));
        let spec = spec.constant("WORKGROUP_SIZE", threads).constant("ITEMS", items);
        let counted = !self.counts.is_empty();
        let spec = spec.flag("COUNTED", counted).flag("PART", self.begins.is_some());
        let tiles_word = tiles as u32;
        let dispatch = |program: &mut Program, kernel, bindings, grid| match self.begins {
            None => {
                let params = MergeParams { a_len, b_len, tiles: tiles_word };
                program.dispatch(kernel, &params, bindings, grid);
            }
            Some([a_begin, b_begin, begin]) => {
                let params = MergePartParams { a_len, b_len, tiles: tiles_word, a_begin, b_begin, begin };
                program.dispatch(kernel, &params, bindings, grid);
            }
        };
        let mut bindings = self.inputs.to_vec();
        // Both lengths lie behind the diagonals, if the device counts them.
        bindings.push(program.scratch(4 * if counted { tiles + 2 } else { tiles.max(1) }));
        if len > 0 || counted {
            let kernel = diagonals(program, spec.clone().flag("COUNTED_A", self.counts.len() > 2));
            let bindings = bindings.iter().chain(&self.counts).copied().collect();
            let grid = Grid::fold(tiles.div_ceil(threads.into()).max(1));
            dispatch(program, kernel, bindings, grid);
        }
        if len > 0 {
            // Stores of four words: keys of 2^27 in 455 us instead of 463 on an H100 (Vulkan, driver 580.159.04).
            let halves = program.operands.iter().any(|operand| operand.dtype == DType::F16);
            let begin = self.begins.map_or(0, |[.., begin]| begin);
            let vectors = len.is_multiple_of(4) && begin.is_multiple_of(4) && !counted && !halves;
            // Threads that guess where they begin: 433 us instead of 438.
            let spec = spec.flag("VALUES", self.outputs.len() > 1).flag("VECTORS", vectors).flag("GUESS", true);
            let kernel = program.kernel(Kernel::library("primitives/merge", "merge_tiles", spec));
            bindings.extend(self.outputs);
            dispatch(program, kernel, bindings, Grid::fold(tiles));
        }
        Ok(())
    }
}

operands! {
    impl[T: Element,] Merge, T {
        fn record(a: T, b: T, output: T);
        /// Takes values that move with the elements.
        optional with_values(a_values: u32, b_values: u32, values_out: u32);
        /// Takes the numbers of elements from the device, and one for their sum.
        optional with_lengths(a_length: u32, b_length: u32, count: u32);
    }
}

lowered_as!(Merge: f32, f16, i32, u32);

/// The options of ops on two arrays whose lengths the device knows.
pub(super) const LENGTHS: [Setting; 2] = [Setting::array("a-length", "u32 (1)"), Setting::array("b-length", "u32 (1)")];

/// The lengths of a request on arrays of `lens` elements: of each array, if one is given.
pub(super) fn asked_lengths(asked: &mut Asked<'_>, lens: [usize; 2]) -> Result<Option<[Role; 2]>> {
    let [of_a, of_b] = LENGTHS.map(|of| asked.named_of(of.name, &[1], DType::U32));
    let (of_a, of_b) = (of_a?, of_b?);
    if of_a.is_none() && of_b.is_none() {
        return Ok(None);
    }
    let role = |given: Option<HostArray>, all: usize| {
        let all = || HostArray::new(&[1], vec![u32::try_from(all).unwrap_or(u32::MAX)]);
        given.map_or_else(all, Ok).map(Role::Given)
    };
    Ok(Some([role(of_a, lens[0])?, role(of_b, lens[1])?]))
}

pub(super) const INFO: Operation = Operation {
    name: "merge",
    about: "two sorted arrays in order, stable, and values with their elements",
    inputs: &[
        Input::new("a", "(n)"),
        Input::new("b", "(m)"),
        Input::optional("a_values", "u32 (n)"),
        Input::optional("b_values", "u32 (m)"),
    ],
    outputs: &[("output", "(n + m)"), ("[values]", "u32 (n + m)")],
    types: &DTYPES,
    options: &[Setting::flag("descending"), LENGTHS[0], LENGTHS[1]],
    domains: &[
        ("a", Domain::Increasing),
        ("b", Domain::Increasing),
        ("a_values", Domain::Bits),
        ("b_values", Domain::Bits),
    ],
    make: Some(make),
    variants: Merge::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (a, [n]) = asked.array("a")?;
    asked.check_type(&a)?;
    let dtype = a.dtype();
    let (b, [m]) = asked.free_of("b", [n], dtype)?;
    let mut op = Merge::new(n, m).variant(asked.variant());
    op = op.when(asked.settings().has("descending"), Merge::descending);
    let mut operands = vec![Role::Given(a), Role::Given(b)];
    let len = n.checked_add(m).ok_or_else(|| err!(TooLarge, "merge: {n} and {m} elements are too many"))?;
    let mut outputs = vec![Role::Result(vec![len])];
    if asked.has_more() {
        operands.push(Role::Given(asked.of("a_values", &[n], DType::U32)?));
        operands.push(Role::Given(asked.of("b_values", &[m], DType::U32)?));
        outputs.push(Role::Result(vec![len]));
        op = op.with_values();
    }
    match asked_lengths(asked, [n, m])? {
        None => operands.extend(outputs),
        Some(lengths) => {
            op = op.counted();
            operands.extend(lengths);
            operands.extend(outputs.iter().map(|_| Role::Counted));
            operands.push(Role::Count);
        }
    }
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Merge::new(10_000, 3000).variant(variant);
    Ok(vec![
        Op::<f32>::lower(&op, profile)?,
        Op::<f32>::lower(&op.clone().descending().with_values(), profile)?,
        Op::<i32>::lower(&op, profile)?,
        Op::<f16>::lower(&op.clone().descending(), profile)?,
        Op::<f16>::lower(&op.clone().with_values().counted(), profile)?,
        Op::<u32>::lower(&op.clone().with_values().counted(), profile)?,
        Op::<u32>::lower(&op.with_values(), profile)?,
        part(DType::U32, [10_000, 3000, 11_000], [&(77..9000), &(1..2000)], 13, false, profile)?,
    ])
}
