use super::select::KEEP;
use super::{DTYPES, Predicate};
use crate::program::prelude::*;
use std::sync::Arc;

/// Finds where a predicate first holds: `result` is `[i, c]`, where `i` is the first place at which it holds, `n` if
/// there is none, and `c` the number of such places.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, result) = (gpu.upload(&[3.0f32, 0.5, -1.0, -2.0])?, gpu.alloc::<u32>(2)?);
/// let below = Predicate::custom("fn keep(x: T) -> bool { return x < 0.0; }");
/// let plan = Find::new(4, below).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &result)?;
/// rec.submit()?;
/// assert_eq!(result.read()?, [2, 2]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// | question | answer |
/// |---|---|
/// | `find_if`, `count_if` | `i`, `c` |
/// | `any_of`, `none_of`, `all_of` | `c > 0`, `c == 0`, `c == n` |
/// | `mismatch`, `equal` of two arrays | `i`, `c == 0` of [`mismatch`](Self::mismatch) |
/// | `adjacent_find`, `is_sorted_until` | `i` of [`pairs`](Self::pairs) of slices that are one element apart |
/// | `is_partitioned`, `partition_point` | `i + c == n`, `i`, where the predicate holds behind the point |
///
/// # Shapes
/// `input` has `n` elements, as `other` of [`mismatch`](Self::mismatch) and [`pairs`](Self::pairs); `n` may be 0.
/// `result` has two u32. With [`counted`](Self::counted) an operand `length` of one u32 holds the number of elements,
/// at most `n`. Inputs may be slices of one buffer.
///
/// # Types, precision and determinism
/// f32, f16, which your functions see as f32, i32 and u32. The same result in every run. A device may flush subnormal
/// numbers to 0 where a function compares them.
///
/// # Cost
/// Inputs are read once, to the end: the place is known no earlier than the number. Two dispatches, no scratch.
///
/// # Variants
/// `walk`: a bounded number of workgroups walks the input.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an input above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
/// - [`Shader`](ErrorKind::Shader): a predicate that does not compile.
///
/// # Algorithm
/// `shaders/primitives/find.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Find {
    n: usize,
    rule: FindRule,
    counted: bool,
    variant: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FindRule {
    Where(Predicate),
    Mismatch,
    /// A function of an element of each array.
    Pairs(Arc<str>),
}

const VARIANTS: &[Variant] = &[Variant::portable("walk", "a bounded number of workgroups walks the input")];

kernel_params! { struct FindParams { n: u32, groups: u32 } }

const TILE: u64 = 4096;
/// Maximum of workgroups, so that few atomics meet: 16 for each multiprocessor of an H100.
const MAX_GROUPS: u64 = 2112;

impl Find {
    /// Looks for elements, of `n`, that `predicate` keeps.
    pub fn new(n: usize, predicate: Predicate) -> Self {
        Self { n, rule: FindRule::Where(predicate), counted: false, variant: "auto".into() }
    }

    /// Looks for places, of `n`, at which two arrays differ. -0 equals +0, and NaN equals nothing. Such plans are
    /// recorded by `record_pairs`.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, y) = (gpu.upload(&[1u32, 2, 3])?, gpu.upload(&[1u32, 2, 4])?);
    /// let result = gpu.alloc::<u32>(2)?;
    /// let mut rec = gpu.recorder();
    /// Find::mismatch(3).plan::<u32>(&gpu)?.record_pairs(&mut rec, &x, &y, &result)?;
    /// rec.submit()?;
    /// assert_eq!(result.read()?, [2, 1]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn mismatch(n: usize) -> Self {
        Self { rule: FindRule::Mismatch, ..Self::new(n, Predicate::NonZero) }
    }

    /// Looks for places, of `n`, at which your WGSL function `fn keep(x: T, y: T) -> bool` of the elements of two
    /// arrays returns true. It is validated, and runs as [`CustomOp`](crate::CustomOp) says. Such plans are recorded by
    /// `record_pairs`.
    pub fn pairs(n: usize, wgsl: &str) -> Self {
        Self { rule: FindRule::Pairs(wgsl.into()), ..Self::new(n, Predicate::NonZero) }
    }

    counted!(counted, "elements", "Elements behind it are ignored, and `i` is that number if there is no place.");

    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, counted, .. } = *self;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands.push(operand("input", dtype, n, Access::Read));
        let pairs = !matches!(self.rule, FindRule::Where(_));
        program.operands.extend(pairs.then(|| operand("other", dtype, n, Access::Read)));
        program.operands.extend(counted.then(|| operand("length", DType::U32, 1, Access::Read)));
        program.operands.push(operand("result", DType::U32, 2, Access::Write));
        profile.check_bindings(INFO.name, &program.operands, "look at parts in separate calls")?;
        let count = index_u32(INFO.name, "n", n)?;
        program.cost = Cost::of(n as f64, &program.operands);
        let whole: Vec<_> = (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
        let result = whole[whole.len() - 1];
        let none = if n == 0 { 0 } else { u32::MAX };
        program.append(fill(2, [none, 0], profile)?, &[result.resource]);
        if n == 0 {
            return Ok(program);
        }
        let arrays = 1 + usize::from(pairs);
        let spec = Spec::new()
            .slot("element", element_fragment(dtype))
            .flag("FLOAT_KEYS", dtype.is_float())
            .flag("HALVES", dtype == DType::F16)
            .flag("PAIRS", pairs)
            .flag("DIFFER", self.rule == FindRule::Mismatch);
        let spec = match &self.rule {
            FindRule::Where(Predicate::Custom(text)) | FindRule::Pairs(text) => {
                spec.slot("predicate", Fragment::of_user(text))
            }
            FindRule::Where(Predicate::NonZero) | FindRule::Mismatch => spec,
        };
        let spec = limited(spec, counted, arrays as u32 + 2);
        let kernel = program.kernel(Kernel::of_file("primitives/find", spec));
        let groups = (n as u64).div_ceil(TILE).min(MAX_GROUPS);
        let params = FindParams { n: count, groups: groups as u32 };
        let bindings = whole[..arrays].iter().copied().chain([result]).chain(counted.then(|| whole[arrays]));
        program.dispatch(kernel, &params, bindings.collect(), Grid::fold(groups));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Find, T {
        fn record(input: T, result: u32);
        fn record_pairs(input: T, other: T, result: u32);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Find: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "find",
    about: "the first place that is not 0, or at which two arrays differ, and the number of such places",
    inputs: &[Input::new("input", "(n)"), Input::optional("other", "(n)")],
    outputs: &[("result", "u32 (2)")],
    types: &DTYPES,
    options: &[KEEP, LENGTH],
    domains: &[("input", Domain::Finite), ("other", Domain::Finite)],
    make: Some(make),
    variants: Find::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    let (dtype, keep) = (input.dtype(), asked.settings().word(KEEP.name));
    let mut operands = vec![Role::Given(input)];
    let op = if asked.has_more() {
        operands.push(Role::Given(asked.like("other", &[n])?));
        keep.map_or_else(|| Find::mismatch(n), |wgsl| Find::pairs(n, wgsl))
    } else {
        Find::new(n, keep.map_or(Predicate::NonZero, Predicate::custom))
    };
    let length = asked.length(1, vec![n])?.0;
    let op = op.when(length.is_some(), Find::counted).variant(asked.variant());
    operands.extend(length.into_iter().chain([Role::Result(vec![2])]));
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let less = Find::pairs(10_000, "fn keep(x: T, y: T) -> bool { return x > y; }");
    let some = Find::new(10_000, Predicate::NonZero);
    let mut all = Vec::new();
    for dtype in DTYPES {
        for op in [&some, &some.clone().counted(), &Find::mismatch(10_000), &less, &less.clone().counted()] {
            all.push(op.clone().variant(variant).lower_as(dtype, profile)?);
        }
    }
    Ok(all)
}
