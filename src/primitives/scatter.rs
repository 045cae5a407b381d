use super::RadixSort;
use super::gather::{count_invalid, rows_of};
use crate::program::prelude::*;

/// How [`Scatter`] combines an element with the one that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScatterOp {
    /// Replaces it. Of several rows for one index the last stays.
    Set,
    /// Adds to it. Integers wrap.
    Add,
    /// Takes the smaller one; -0 is below +0, and NaN if one of them is NaN.
    Min,
    /// Takes the larger one; +0 is above -0, and NaN if one of them is NaN.
    Max,
}

impl ScatterOp {
    const ALL: [Self; 4] = [Self::Set, Self::Add, Self::Min, Self::Max];

    fn name(self) -> &'static str {
        ["set", "add", "min", "max"][self as usize]
    }

    fn flag(self) -> &'static str {
        ["SET", "ADD", "MIN", "MAX"][self as usize]
    }
}

/// Combines rows into rows of another array by index, in place: `into[indices[i], :] = into[indices[i], :] + x[i, :]`
/// for each `i`, or with a minimum, a maximum, or `x[i, :]` itself in place of the sum ([`ScatterOp`]).
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 3 rows of 2 elements
/// let (indices, into) = (gpu.upload(&[3u32, 0, 3])?, gpu.alloc_zeroed::<f32>(8)?);
/// let plan = Scatter::new(ScatterOp::Add, [4, 2], 3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &indices, &into)?;
/// rec.submit()?;
/// assert_eq!(into.read()?, [3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 6.0, 8.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `into` is rows x n, row-major, `indices` (u32) has any length, `x` has n elements for each index. Any extent may be
/// 0. Indices may repeat, unless [`distinct`](Self::distinct) promises otherwise. An index of `rows` or more is
/// skipped: nothing is written outside; [`checked`](Self::checked) counts them. `into` must not share a wgpu buffer
/// with the others. With [`counted`](Self::counted) an operand `length` of one u32 holds the number of indices, at most
/// as many as planned.
///
/// # Types
/// f32, f16, i32, u32, u8, i8.
///
/// # Precision and determinism
/// Replacing, minima, maxima and sums of integers are exact and the same in every run. A sum of f32 or f16 rounds after
/// each addition. `sorted` adds in the order of `x`, so that every device gives the same bits; `atomic` adds in an
/// order that varies, and [`deterministic`](Self::deterministic) rules it out. A NaN that a minimum or maximum gives
/// has the bits 0x7fc00000 (f16: 0x7e00).
///
/// # Cost
/// One operation an element. Each index and each row of `x` is read once, each row that it names is read and written
/// once. `atomic`: one dispatch, and to replace rows two more with 4 bytes of scratch a row of `into`, unless
/// `distinct`.
/// `sorted`: a sort of the indices with 16 bytes of scratch each; a run of equal indices is the work of one thread for
/// each column.
///
/// # Variants
/// `atomic` and `sorted`; `auto` (the default) takes `atomic`, or `sorted` if its bits must repeat and it rounds.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
/// - [`Unsupported`](ErrorKind::Unsupported): `atomic` by name where it rounds and bits must repeat.
///
/// # Algorithm
/// `shaders/primitives/scatter.wgsl` replaces whole words, `scatter_atomic.wgsl` does the rest, by compare-exchange
/// where no atomic fits; `scatter_sorted.wgsl` walks runs of equal indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scatter {
    op: ScatterOp,
    rows: usize,
    n: usize,
    indices: usize,
    distinct: bool,
    counted: bool,
    checked: bool,
    deterministic: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("sorted", "sorts the indices and combines the rows of each in order"),
    Variant::portable("atomic", "a thread combines one element by an atomic, or stores four words").in_any_order(),
];

kernel_params! { struct ScatterParams { count: u32, width: u32, rows: u32 } }
kernel_params! {
    struct ScatterElementsParams { count: u32, width: u32, rows: u32, skip: u32, steps: u32 }
}

/// Rows of a run that one dispatch combines, at most.
const MAX_STEPS: u64 = 1 << 20;

impl Scatter {
    /// Takes the shape of `into`, `rows` rows of `n` elements, and the number of indices.
    pub fn new(op: ScatterOp, [rows, n]: [usize; 2], indices: usize) -> Self {
        let variant = "auto".into();
        let [distinct, counted, checked, deterministic] = [false; 4];
        Self { op, rows, n, indices, distinct, counted, checked, deterministic, variant }
    }

    /// Promises that no index below `rows` repeats, which saves a pass where rows are replaced. If one does, one of its
    /// rows stays, and which one may vary.
    #[must_use]
    pub fn distinct(mut self) -> Self {
        self.distinct = true;
        self
    }

    /// Counts the indices of `rows` or more: an operand `invalid` of one u32, which plans take by `with_invalid`.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.checked = true;
        self
    }

    counted!(counted, "indices", "Here `n` is the number of indices; indices and rows behind it are ignored.");

    variants!(variant);

    deterministic!(deterministic);

    /// How elements are combined, and whether indices were promised to be distinct.
    pub(crate) fn rule(&self) -> (ScatterOp, bool) {
        (self.op, self.distinct)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { rows, n, indices, .. } = *self;
        let bits = Bits { rounds: self.op == ScatterOp::Add && dtype.is_float(), deterministic: self.deterministic };
        let (variant, decision) = choose_with(INFO.name, &self.variant, VARIANTS, profile, bits, || {
            ("atomic", "one pass; a sort takes several".to_owned())
        })?;
        let mut program = Program::new(INFO.name, decision);
        program.determinism = variant.determinism(bits.rounds);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        let len = elements(INFO.name, "x", &[indices, n])?;
        program.operands =
            vec![operand("x", dtype, len, Access::Read), operand("indices", DType::U32, indices, Access::Read)];
        program.operands.extend(self.counted.then(|| operand("length", DType::U32, 1, Access::Read)));
        let to = program.operands.len();
        let size = elements(INFO.name, "into", &[rows, n])?;
        program.operands.push(operand("into", dtype, size, Access::ReadWrite));
        profile.check_bindings(INFO.name, &program.operands, "take fewer rows at a time")?;
        let (count, width) = (index_u32(INFO.name, "indices", indices)?, index_u32(INFO.name, "n", n)?);
        let rows = index_u32(INFO.name, "rows", rows)?;
        let moved = (len + 2 * self.rows.min(indices) * n) * dtype.size();
        program.cost = Cost { flop: len as f64, bytes: (moved + 4 * indices) as f64 };
        if self.checked {
            count_invalid(&mut program, self.counted, self.rows, profile)?;
        }
        if len == 0 || rows == 0 {
            return Ok(program);
        }
        let [x, of, into] = [0, 1, to].map(|i| Binding::operand(i, &program.operands));
        let length = self.counted.then(|| Binding::operand(2, &program.operands));
        // The kernel that binds these, and the length behind them.
        let limit = |spec, bindings: Vec<Binding>| {
            let bindings: Vec<_> = bindings.into_iter().chain(length).collect();
            (limited(spec, self.counted, bindings.len() as u32), bindings)
        };
        let each = |items: u64| Grid::fold(items.div_ceil(256));
        // What dispatches cover, of rows of so many items.
        let mut covered = Vec::new();
        let of_width = |width| Covered { width, ..Covered::new(0, count, 256) };
        let launched = |mut program: Program, covered: &[_]| {
            if let Some(length) = length {
                launch_for(&mut program, length, covered);
            }
            Ok(program)
        };
        let spec = Spec::new().slot("element", element_fragment(dtype)).flag(self.op.flag(), true);
        let spec = spec.flag("FLOAT", dtype.is_float()).flag("BYTES", dtype.size() == 1);
        let spec = if dtype == DType::F16 { spec.constant("NAN", "0x7e00u") } else { spec };
        let params = ScatterElementsParams { count, width, rows, skip: 0, steps: 0 };
        if variant.name == "sorted" {
            let [keys, places, sorted, order] = [(); 4].map(|()| program.scratch(4 * u64::from(count)));
            let (own, bindings) = limit(Spec::new(), vec![of, keys, places]);
            let prepare = program.kernel(Kernel::of_file("primitives/scatter_prepare", own));
            let all = ScatterParams { count, width, rows };
            covered.push((program.dispatches.len(), of_width(1)));
            program.dispatch(prepare, &all, bindings, each(count.into()));
            let sort = RadixSort::new(indices).bits(0..32 - rows.leading_zeros()).with_values();
            let sort = Op::<u32>::lower(&sort.when(self.counted, RadixSort::counted), profile)?;
            let of_sort = [keys, places].into_iter().chain(length).chain([sorted, order]);
            program.append(sort, &of_sort.map(|binding| binding.resource).collect::<Vec<_>>());
            let (spec, bindings) = limit(spec.flag("REPLACE", true), vec![x, sorted, into, order]);
            let kernel = program.kernel(Kernel::of_file("primitives/scatter_sorted", spec));
            let steps = profile.loop_steps(2, MAX_STEPS);
            for run in program.chunks(count.into(), steps)? {
                let params = ScatterElementsParams { skip: run.start as u32, steps: steps as u32, ..params };
                covered.push((program.dispatches.len(), of_width(width)));
                program.dispatch(kernel, &params, bindings.clone(), each(len as u64));
            }
            return launched(program, &covered);
        }
        let mut bindings = vec![x, of, into];
        if self.op == ScatterOp::Set && !self.distinct {
            let owners = program.scratch(4 * u64::from(rows));
            program.append(fill(rows as usize, [0; 2], profile)?, &[owners.resource]);
            let (own, of_own) = limit(Spec::new(), vec![of, owners]);
            let own = program.kernel(Kernel::of_file("primitives/scatter_owners", own));
            let all = ScatterParams { count, width, rows };
            covered.push((program.dispatches.len(), of_width(1)));
            program.dispatch(own, &all, of_own, each(count.into()));
            bindings.push(owners);
        }
        let row = n * dtype.size();
        if self.op == ScatterOp::Set && row.is_multiple_of(4) {
            let item = if row.is_multiple_of(16) { 16 } else { 4 };
            let spec = Spec::new().flag("VECTORS", item == 16).flag("DISTINCT", self.distinct);
            let (spec, bindings) = limit(spec, bindings);
            let kernel = program.kernel(Kernel::of_file("primitives/scatter", spec));
            let params = ScatterParams { count, width: (row / item) as u32, rows };
            covered.push((program.dispatches.len(), of_width(params.width)));
            program.dispatch(kernel, &params, bindings, each((indices * row / item) as u64));
            return launched(program, &covered);
        }
        let native = self.op != ScatterOp::Set && dtype.size() == 4 && !dtype.is_float();
        let spec = spec.flag("NATIVE", native).flag("DISTINCT", self.distinct);
        let spec = spec.flag("SIGNED_WORDS", native && dtype == DType::I32);
        let (spec, bindings) = limit(spec, bindings);
        let kernel = program.kernel(Kernel::of_file("primitives/scatter_atomic", spec));
        covered.push((program.dispatches.len(), of_width(width)));
        program.dispatch(kernel, &params, bindings, each(len as u64));
        launched(program, &covered)
    }
}

operands! {
    impl[T: Element,] Scatter, T {
        fn record(x: T, indices: u32, into: T);
        /// Takes the number of indices from the device.
        optional with_length(length: u32);
        /// Takes the number of indices that are out of range.
        optional with_invalid(invalid: u32);
    }
}

lowered_as!(Scatter: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "scatter",
    about: "rows of x set, added, or combined by min or max into rows by index; indices out of range are skipped",
    inputs: &[Input::new("x", "(m, ...)"), Input::new("indices", "u32 (m)"), Input::new("into", "(n, ...)")],
    outputs: &[("into", "as into")],
    types: &HostData::TYPES,
    options: &[
        Setting::word("op", || ScatterOp::ALL.map(ScatterOp::name).to_vec()),
        Setting::flag("distinct"),
        Setting::flag("check"),
        Setting::flag("deterministic"),
        LENGTH,
    ],
    make: Some(make),
    variants: Scatter::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let x = asked.any("x")?;
    asked.check_type(&x)?;
    let (m, width) = rows_of(asked, "x", &x)?;
    let indices = asked.indices("indices", &[m], m)?;
    let dtype = x.dtype();
    let into = asked.any_of("into", x.shape(), dtype)?;
    let (rows, found) = rows_of(asked, "into", &into)?;
    if found != width {
        return Err(err!(Shape, "scatter: x is {x} and into {into}; their rows must have the same shape"));
    }
    let settings = asked.settings();
    let word = settings.choice("op")?;
    let op = ScatterOp::ALL.into_iter().find(|op| op.name() == word).unwrap_or(ScatterOp::Set);
    let n = elements(INFO.name, "a row", &width)?;
    let check = settings.has("check");
    let op = Scatter::new(op, [rows, n], m).variant(asked.variant()).when(check, Scatter::checked);
    let op = op.when(settings.has("distinct"), Scatter::distinct);
    let op = op.when(settings.has("deterministic"), Scatter::deterministic);
    let length = asked.length(1, vec![m])?.0;
    let op = op.when(length.is_some(), Scatter::counted);
    let inputs = [x, indices].map(Role::Given).into_iter().chain(length);
    let mut operands: Vec<_> = inputs.chain([Role::Updated(into)]).collect();
    operands.extend(check.then_some(Role::Invalid { op: INFO.name, below: rows }));
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (dtype, n) in
        [(DType::F32, 4), (DType::F16, 3), (DType::I32, 3), (DType::U32, 1), (DType::U8, 5), (DType::I8, 4)]
    {
        for op in ScatterOp::ALL {
            let scatter = Scatter::new(op, [5, n], 7).variant(variant);
            programs.push(scatter.lower_as(dtype, profile)?);
            programs.push(scatter.clone().counted().lower_as(dtype, profile)?);
            if op == ScatterOp::Set {
                programs.push(scatter.distinct().checked().lower_as(dtype, profile)?);
            }
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
