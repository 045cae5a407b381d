use super::histogram::{Histogram, Rule, binned};
use super::{RadixSort, ReduceOffsets, Sum, WORDS};
use crate::program::prelude::*;

/// Adds up the weights of the elements in each bin: `sums[i]` is the sum of `weights[j]` over all `j` with
/// `edge[i] <= input[j] < edge[i + 1]`; the last bin includes its upper edge. It is NumPy's `histogram` with weights.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, weights) = (gpu.upload(&[0.1f32, 0.9, 0.2, 7.0])?, gpu.upload(&[0.5f32, 2.0, 0.25, 9.0])?);
/// let sums = gpu.alloc::<f32>(2)?;
/// let plan = WeightedHistogram::new(4, 2, 0.0, 1.0).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &weights, &sums)?;
/// rec.submit()?;
/// assert_eq!(sums.read()?, [0.75, 2.0]); // 7.0 lies in no bin
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` (f32) and `weights` have `n` elements, `sums` has one for each bin, up to 2^20, and is overwritten. `n` may
/// be 0. `sums` must be another wgpu buffer than the inputs. With [`counted`](Self::counted) an operand `length` of one
/// u32 holds the number of elements.
///
/// # Types
/// Weights of f32, i32 and u32; sums of integers wrap. The bins are those of [`Histogram::range`] or
/// [`Histogram::with_edges`] for f32: an element outside, or NaN, does not count.
///
/// # Precision and determinism
/// Numbers are compared with the edges exactly. Sums are rounded as those of [`ReduceOffsets`]: the same device gives
/// the same bits in every run.
///
/// # Cost
/// A sort of the weights by bin, one pass for each 8 bits of the number of bins, then one read of each weight. Scratch:
/// 16 bytes an element, 4 a bin, and that of [`RadixSort`] and [`ReduceOffsets`]. Counts alone are cheaper by
/// [`Histogram`].
///
/// # Variants
/// One, `sorted`.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): those of [`Histogram`] for its bins; an unknown variant.
/// - [`Unsupported`](ErrorKind::Unsupported): weights of another type.
/// - [`TooLarge`](ErrorKind::TooLarge): more than 2^20 bins, or an operand above the largest binding.
///
/// # Algorithm
/// `shaders/primitives/weighted_histogram.wgsl`, [`RadixSort`] and [`ReduceOffsets`].
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedHistogram {
    bins: Histogram,
    n: usize,
    counted: bool,
    variant: String,
}

kernel_params! { struct WeightedBinsParams { n: u32, bins: u32, least: u32, span: u32, edges: u32 } }

const VARIANTS: &[Variant] = &[Variant::portable("sorted", "sorts the weights by bin, and adds up the neighbours")];

impl WeightedHistogram {
    /// Adds up `n` weights by `bins` bins of equal width from `lo` to `hi`, both included.
    pub fn new(n: usize, bins: usize, lo: f64, hi: f64) -> Self {
        Self { bins: Histogram::new(n, bins).range(lo, hi), n, counted: false, variant: "auto".into() }
    }

    /// Adds up `n` weights by the bins between neighbouring `edges`.
    pub fn with_edges(n: usize, edges: impl Into<Vec<f64>>) -> Self {
        Self { bins: Histogram::with_edges(n, edges), n, counted: false, variant: "auto".into() }
    }

    counted!(counted, "elements", "Elements behind it are ignored.");
    variants!(variant);

    pub(crate) fn bins(&self) -> &Histogram {
        &self.bins
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (name, bins) = (INFO.name, self.bins.bins());
        if !WORDS.contains(&dtype) {
            return Err(err!(Unsupported, "{name}: weights of {dtype}; convert them to f32, i32 or u32"));
        }
        let mut program = Program::of_only_variant(name, &self.variant, VARIANTS, profile)?;
        self.bins.check(DType::F32).map_err(|e| e.context(name))?;
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands =
            vec![operand("input", DType::F32, self.n, Access::Read), operand("weights", dtype, self.n, Access::Read)];
        program.operands.extend(self.counted.then(|| operand("length", DType::U32, 1, Access::Read)));
        let sums = Resource::Operand(program.operands.len());
        program.operands.push(operand("sums", dtype, bins, Access::Write));
        profile.check_bindings(name, &program.operands, "add up parts, then their sums")?;
        program.cost = Cost::of(self.n as f64, &program.operands);
        let n = index_u32(name, "n", self.n)?;
        let rule = Rule::of(&self.bins, DType::F32).filter(|_| n > 0);
        let Some(rule) = rule else {
            program.append(fill(bins, [0; 2], profile)?, &[sums]);
            return Ok(program);
        };
        let params = WeightedBinsParams {
            n,
            bins: bins as u32,
            least: rule.least,
            span: rule.span,
            edges: rule.table.len() as u32,
        };
        let edges = program.constant(bytemuck::cast_slice(&rule.table).to_vec());
        let [keys, sorted, weights] = [0, 1, 2].map(|_| program.scratch(4 * u64::from(n)));
        let offsets = program.scratch(4 * (bins as u64 + 1));
        let kernel = |entry, spec| Kernel::library("primitives/weighted_histogram", entry, spec);
        let length = self.counted.then(|| Binding::operand(2, &program.operands));
        let limit = |spec, at| limited(spec, self.counted, at);
        let find = program.kernel(kernel("weighted_histogram_keys", limit(Spec::new(), 4)));
        let input = Binding::operand(0, &program.operands);
        let grid = Grid::fold(u64::from(n).div_ceil(256));
        let bindings = [input, edges, keys].into_iter().chain(length).collect();
        program.dispatch(find, &params, bindings, grid);
        if let Some(length) = length {
            launch_for(&mut program, length, &[(0, Covered::new(0, n, 256))]);
        }
        // Elements that are in no bin come last.
        let sort = RadixSort::new(self.n).bits(0..usize::BITS - bins.leading_zeros()).with_values();
        let sort = sort.when(self.counted, RadixSort::counted);
        let order = [keys.resource, Resource::Operand(1)].into_iter().chain(length.map(|l| l.resource));
        let order: Vec<_> = order.chain([sorted.resource, weights.resource]).collect();
        program.append(Op::<u32>::lower(&sort, profile)?, &order);
        let begin = program.kernel(kernel("weighted_histogram_offsets", limit(Spec::new().flag("OFFSETS", true), 3)));
        let grid = Grid::fold((bins as u64 + 1).div_ceil(256));
        program.dispatch(begin, &params, [sorted, offsets].into_iter().chain(length).collect(), grid);
        let reduce = ReduceOffsets::new(Sum, self.n, bins);
        let reduce = match dtype {
            DType::F32 => Op::<f32>::lower(&reduce, profile)?,
            DType::I32 => Op::<i32>::lower(&reduce, profile)?,
            _ => Op::<u32>::lower(&reduce, profile)?,
        };
        program.append(reduce, &[weights.resource, offsets.resource, sums]);
        Ok(program)
    }
}

operands! {
    impl[T: Element,] WeightedHistogram, T {
        fn record(input: f32, weights: T, sums: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(WeightedHistogram);

pub(super) const INFO: Operation = Operation {
    name: "weighted-histogram",
    about: "sums of the weights of the elements in each bin",
    inputs: &[Input::new("input", "(n)"), Input::new("weights", "f32, i32, u32 (n)")],
    outputs: &[("sums", "(bins)")],
    types: &[DType::F32],
    options: &[
        Setting::number("bins", "256"),
        Setting::number("lo", ""),
        Setting::number("hi", ""),
        Setting::array("edges", "(bins + 1)"),
        LENGTH,
    ],
    make: Some(make),
    variants: WeightedHistogram::variants,
    samples,
    domains: &[("input", Domain::Any), ("weights", Domain::Finite), ("edges", Domain::Increasing)],
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100], options: &[("lo", "-1"), ("hi", "1")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    asked.check_type(&input)?;
    let weights = asked.of_own_type("weights", &[n])?;
    let (bins, variant) = (binned(asked, &input)?, asked.variant().to_owned());
    asked.set("bins", &[bins.bins()]);
    let (dtype, sums) = (weights.dtype(), Role::Result(vec![bins.bins()]));
    let length = asked.length(1, vec![n])?.0;
    let op = WeightedHistogram { bins, n, counted: length.is_some(), variant };
    let inputs = [Role::Given(input), Role::Given(weights)];
    let operands = inputs.into_iter().chain(length).chain([sums]).collect();
    by_type!(asked, dtype, [f32, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = |n, bins| WeightedHistogram::new(n, bins, -1.0, 1.0).variant(variant);
    Ok(vec![
        op(10_001, 64).lower_as(DType::F32, profile)?,
        op(300, 1000).lower_as(DType::U32, profile)?,
        op(300, 9).counted().lower_as(DType::U32, profile)?,
        WeightedHistogram::with_edges(9, [0.0, 1.0, 10.0]).variant(variant).lower_as(DType::I32, profile)?,
    ])
}
