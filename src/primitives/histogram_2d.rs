use super::histogram::{Histogram, Rule};
use crate::program::prelude::*;

/// Counts points by bins of two axes: `counts[i, j]` is the number of points with `x` in bin `i` of the first axis and
/// `y` in bin `j` of the second, as `numpy.histogram2d` gives it.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[0.1f32, 0.9, 0.2])?, gpu.upload(&[0.3f32, 0.6, 1.0])?);
/// let counts = gpu.alloc::<u32>(4)?;
/// let plan = Histogram2d::new(3, [2, 2], [0.0, 0.0], [1.0, 1.0]).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y, &counts)?;
/// rec.submit()?;
/// assert_eq!(counts.read()?, [1, 1, 0, 1]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` and `y` have `n` elements, `counts` (u32) has bins x bins, row-major, with up to 2^20 in all. `n` may be 0.
/// `counts` must be another wgpu buffer than the inputs. With [`counted`](Self::counted) an operand `length` of one u32
/// holds the number of points.
///
/// # Types
/// f32. The bins of an axis are those of [`Histogram::range`]: of equal width, `hi` itself in the last one. A point
/// with a coordinate outside, or NaN, does not count.
///
/// # Precision and determinism
/// Exact, and the same on every device: numbers are compared with the edges, rounded to f32. Counts wrap at 2^32.
///
/// # Cost
/// Reads each point once; two bisections and one atomic addition a point. Two dispatches, no scratch.
///
/// # Variants
/// `privatized` counts in workgroup memory, for up to 4096 bins in all; `global` in device memory. `auto` (the default)
/// takes `privatized` where it can.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): no bins, a range that is empty or not finite in f32, an
///   unknown variant.
/// - [`Unsupported`](ErrorKind::Unsupported): `privatized` by name with more bins.
/// - [`TooLarge`](ErrorKind::TooLarge): more than 2^20 bins, or an operand above the largest binding.
///
/// # Algorithm
/// `shaders/primitives/histogram_2d.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram2d {
    n: usize,
    bins: [usize; 2],
    lo: [f64; 2],
    hi: [f64; 2],
    counted: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("global", "counts by atomics in device memory"),
    Variant::portable("privatized", "counts in workgroup memory, and adds up at the end"),
];

/// Maximum of bins of both axes together.
const MAX_CELLS: usize = 1 << 20;
/// Maximum of counts in workgroup memory: 16 KiB.
const MAX_PRIVATE: usize = 4096;

kernel_params! {
    struct Histogram2dParams { x_axis: [u32; 4], y_axis: [u32; 4], n: u32, bins_y: u32, cells: u32, workgroups: u32 }
}

impl Histogram2d {
    /// Counts `n` points in so many bins of each axis, between `lo` and `hi` of each.
    pub fn new(n: usize, bins: [usize; 2], lo: [f64; 2], hi: [f64; 2]) -> Self {
        Self { n, bins, lo, hi, counted: false, variant: "auto".into() }
    }

    counted!(counted, "points", "Points behind it are ignored.");
    variants!(variant);

    pub(crate) fn axis(&self, i: usize) -> (usize, f64, f64) {
        (self.bins[i], self.lo[i], self.hi[i])
    }

    fn rule(&self, i: usize) -> Result<Rule> {
        let (bins, lo, hi) = self.axis(i);
        if bins == 0 {
            return Err(err!(InvalidArgument, "histogram-2d: bins are {:?}; both must be above 0", self.bins));
        }
        let ends = [lo as f32, hi as f32];
        let rule = (ends.iter().all(|end| end.is_finite()) && ends[0] < ends[1])
            .then(|| Rule::of(&Histogram::new(self.n, bins).range(lo, hi), DType::F32));
        rule.flatten().ok_or_else(|| {
            err!(
                InvalidArgument,
                "histogram-2d: axis {i} is from {lo:?} to {hi:?}; both ends must be finite in f32, and lo below hi"
            )
        })
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let name = INFO.name;
        let cells = self.bins[0].saturating_mul(self.bins[1]);
        if cells > MAX_CELLS {
            return Err(err!(TooLarge, "{name}: {cells} bins in all; the maximum is {MAX_CELLS}; sort and count runs"));
        }
        let rules = [self.rule(0)?, self.rule(1)?];
        let (variant, decision) = choose(name, &self.variant, VARIANTS, profile, || match cells {
            ..=MAX_PRIVATE => ("privatized", "the counts fit workgroup memory".into()),
            _ => ("global", "the counts do not fit workgroup memory".into()),
        })?;
        let private = variant.name == "privatized";
        if private && cells > MAX_PRIVATE {
            return Err(err!(
                Unsupported,
                "{name}: `privatized` takes up to {MAX_PRIVATE} bins in all, not {cells}; use `global`"
            ));
        }
        let mut program = Program::new(name, decision);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands = vec![operand("x", dtype, self.n, Access::Read), operand("y", dtype, self.n, Access::Read)];
        program.operands.extend(self.counted.then(|| operand("length", DType::U32, 1, Access::Read)));
        let last = program.operands.len();
        program.operands.push(operand("counts", DType::U32, cells, Access::Write));
        profile.check_bindings(name, &program.operands, "count parts and add the counts")?;
        program.cost = Cost::of(self.n as f64, &program.operands);
        let n = index_u32(name, "n", self.n)?;
        let [x, y, counts] = [0, 1, last].map(|i| Binding::operand(i, &program.operands));
        let length = self.counted.then(|| Binding::operand(2, &program.operands));
        program.append(fill(cells, [0; 2], profile)?, &[counts.resource]);
        if n == 0 {
            return Ok(program);
        }
        let edges: Vec<u32> = rules.iter().flat_map(|rule| &rule.table).copied().collect();
        let edges = program.constant(bytemuck::cast_slice(&edges).to_vec());
        let axis = |i: usize, first: usize| [rules[i].least, rules[i].span, first as u32, rules[i].table.len() as u32];
        // Enough to fill a card, and few counts to add up beside the points.
        let workgroups = u64::from(n).div_ceil(4096).min(if profile.quirks.few_cores { 64 } else { 1056 });
        let params = Histogram2dParams {
            x_axis: axis(0, 0),
            y_axis: axis(1, rules[0].table.len()),
            n,
            bins_y: self.bins[1] as u32,
            cells: cells as u32,
            workgroups: workgroups as u32,
        };
        let rounds = u64::from(n).div_ceil(256 * workgroups) * (1 + 2 * 21) + 2 * (MAX_PRIVATE as u64 / 256);
        if !profile.runs_rounds(rounds) {
            return Err(err!(
                TooLarge,
                "{name}: {n} points may take {rounds} rounds of loops; {} ends them after {}; count parts and add the \
                 counts",
                profile.name,
                profile.max_rounds()
            ));
        }
        let spec = limited(Spec::new().flag("PRIVATE", private), self.counted, 5);
        let kernel = program.kernel(Kernel::of_file("primitives/histogram_2d", spec));
        let bindings = [x, y, edges, counts].into_iter().chain(length).collect();
        program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Histogram2d, T {
        fn record(x: T, y: T, counts: u32);
        /// Takes the number of points from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Histogram2d: f32);

pub(super) const INFO: Operation = Operation {
    name: "histogram-2d",
    about: "how many points fall into each bin of two axes",
    inputs: &[Input::new("x", "(n)"), Input::new("y", "(n)")],
    outputs: &[("counts", "u32 (bx, by)")],
    types: &[DType::F32],
    options: &[BINS, LO, HI, LENGTH],
    domains: &[("x", Domain::Any), ("y", Domain::Any)],
    make: Some(make),
    variants: Histogram2d::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100], options: &[("lo", "-1,-1"), ("hi", "1,1")] },
    ..Operation::UNDECLARED
};

const BINS: Setting = Setting::text("bins", "B|BX,BY", "64,64");
const LO: Setting = Setting::text("lo", "LO|X,Y", "");
const HI: Setting = Setting::text("hi", "HI|X,Y", "");

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, [n]) = asked.array("x")?;
    asked.check_type(&x)?;
    let y = asked.of("y", &[n], DType::F32)?;
    let settings = asked.settings();
    let bins = settings.numbers("bins", "B|BX,BY")?;
    let lo = settings.numbers("lo", "LO|X,Y");
    let hi = settings.numbers("hi", "HI|X,Y");
    let op = Histogram2d::new(n, bins, lo?, hi?).variant(asked.variant());
    asked.set("bx", &bins[..1]);
    asked.set("by", &bins[1..]);
    let length = asked.length(1, vec![n])?.0;
    let op = op.when(length.is_some(), Histogram2d::counted);
    let counts = Role::Result(bins.to_vec());
    let operands = [Role::Given(x), Role::Given(y)].into_iter().chain(length).chain([counts]).collect();
    Ok(OpCall::new::<f32>(op, operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Histogram2d::new(10_001, [64, 64], [0.0, -1.0], [1.0, 1.0]).variant(variant);
    Ok(vec![op.lower_as(DType::F32, profile)?, op.counted().lower_as(DType::F32, profile)?])
}
