use super::{NthElement, RadixSort};
use crate::program::prelude::*;

/// Finds quantiles: `output[j] = (1 - f) x[i] + f x[i + 1]` of the sorted input `x`, where `i + f = (n - 1) q[j]`, as
/// `numpy.quantile` interpolates.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, output) = (gpu.upload(&[4.0f32, 1.0, 3.0, 2.0])?, gpu.alloc::<f32>(2)?);
/// let plan = Quantile::new(4, [0.5, 1.0]).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [2.5, 4.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` has `n` elements of f32, at least 1, `output` one for each quantile, of which there are 1 to 64. They must
/// be different wgpu buffers. With [`counted`](Self::counted) an operand `length` of one u32 holds the number of
/// elements.
///
/// # Precision and determinism
/// The neighbours are exact, in the order of [`RadixSort`]: NaN comes last, and counts as the largest
/// number. Interpolation takes three roundings in f32; a quantile that is an element is exact. The same device gives
/// the same bits in every run.
///
/// # Cost
/// `radix`: that of an [`NthElement`] for each element that is needed, one or two a quantile. `sort`: that of a
/// [`RadixSort`] once, with 4 bytes of scratch an element beside its own.
///
/// # Variants
/// `radix` and `sort`; `auto` (the default) takes `sort` up to 65,536 elements and with a length from the
/// device, and else `radix`.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): no elements; no quantiles, or more than 64; a quantile
///   that is not from 0 to 1; an unknown variant.
/// - [`Unsupported`](ErrorKind::Unsupported): `radix` by name with a length from the device.
/// - [`TooLarge`](ErrorKind::TooLarge): an input above the largest buffer, for `sort` the largest binding.
///
/// # Algorithm
/// [`NthElement`], then `shaders/primitives/quantile.wgsl`; [`RadixSort`], then `quantile_sort.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantile {
    n: usize,
    quantiles: Vec<f64>,
    counted: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("radix", "finds the digits of each element by counts"),
    Variant::portable("sort", "sorts once: for many quantiles, and for lengths on the device"),
];

/// Maximum of quantiles: each is a few dispatches.
const MAX_QUANTILES: usize = 64;

kernel_params! { struct QuantileParams { place: u32, share: f32 } }
kernel_params! { struct QuantileSortParams { n: u32, quantiles: u32 } }

impl Quantile {
    /// Finds these quantiles, from 0 to 1, of `n` elements.
    pub fn new(n: usize, quantiles: impl Into<Vec<f64>>) -> Self {
        Self { n, quantiles: quantiles.into(), counted: false, variant: "auto".into() }
    }

    counted!(counted, "elements", "Elements behind it are ignored. Quantiles of no elements are NaN.");
    variants!(variant);

    /// For each quantile of `n` elements the rank of the element below it, and its distance from there.
    pub(crate) fn ranks(&self, n: usize) -> impl Iterator<Item = (usize, f32)> {
        self.quantiles.iter().map(move |q| {
            let place = n.saturating_sub(1) as f64 * q;
            (place as usize, place.fract() as f32)
        })
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (name, n) = (INFO.name, self.n);
        let (variant, decision) = choose(name, &self.variant, VARIANTS, profile, || match self.counted {
            true => ("sort", "the ranks lie on the device".into()),
            // us of `sort` and `radix` of 50,000: 44, 73 (H100, Vulkan, driver 580.159.04), 2166, 1962 (Mesa 22.3).
            false if n <= 1 << 16 => ("sort", "few dispatches".into()),
            false => ("radix", "reads the input a few times".into()),
        })?;
        let mut program = Program::new(name, decision);
        if self.counted && variant.name == "radix" {
            return Err(err!(Unsupported, "{name}: the variant `radix` takes no length from the device; use `sort`"));
        }
        if n == 0 {
            return Err(err!(InvalidArgument, "{name}: quantiles of 0 elements are not defined; pass one at least"));
        }
        if self.quantiles.is_empty() || self.quantiles.len() > MAX_QUANTILES {
            return Err(err!(
                InvalidArgument,
                "{name}: {} quantiles; there must be 1 to {MAX_QUANTILES}; sort once for more",
                self.quantiles.len()
            ));
        }
        if let Some(q) = self.quantiles.iter().find(|q| !(0.0..=1.0).contains(*q)) {
            return Err(err!(InvalidArgument, "{name}: the quantile {q:?}; it must be from 0 to 1"));
        }
        let operand = |name, len, access| Operand { name, dtype, len, access };
        program.operands = vec![operand("input", n, Access::Read)];
        let length = Operand { dtype: DType::U32, ..operand("length", 1, Access::Read) };
        program.operands.extend(self.counted.then_some(length));
        program.operands.push(operand("output", self.quantiles.len(), Access::Write));
        profile.check_buffers(name, &program.operands, "count by a histogram in parts")?;
        program.cost = Cost::of(3.0 * n as f64 * self.quantiles.len() as f64, &program.operands);
        if variant.name == "sort" {
            self.sort(&mut program, profile)?;
            return Ok(program);
        }
        let kernel = program.kernel(Kernel::of_file("primitives/quantile", Spec::new()));
        let [below, above] = [0, 1].map(|_| program.scratch(4));
        for (j, (rank, share)) in self.ranks(n).enumerate() {
            let neighbours = [(rank, below), (rank + 1, above)];
            for (rank, to) in neighbours.into_iter().take(if share > 0.0 { 2 } else { 1 }) {
                let nth = Op::<f32>::lower(&NthElement::new(n, rank), profile).map_err(|e| e.context(name))?;
                program.append(nth, &[Resource::Operand(0), to.resource]);
            }
            let output = Binding::operand(1, &program.operands);
            let second = if share > 0.0 { above } else { below };
            let params = QuantileParams { place: j as u32, share };
            program.dispatch(kernel, &params, vec![below, second, output], Grid::fold(1));
        }
        Ok(program)
    }

    /// Sorts the elements, and finds all quantiles in one dispatch.
    fn sort(&self, program: &mut Program, profile: &DeviceProfile) -> Result<()> {
        let name = INFO.name;
        profile.check_bindings(name, &program.operands, "count by a histogram in parts")?;
        let (n, quantiles) = (index_u32(name, "n", self.n)?, self.quantiles.len());
        let sort = RadixSort::new(self.n).when(self.counted, RadixSort::counted);
        let sort = Op::<f32>::lower(&sort, profile).map_err(|e| e.context(name))?;
        let sorted = program.scratch(4 * u64::from(n));
        let inputs = (0..program.operands.len() - 1).map(Resource::Operand);
        program.append(sort, &inputs.chain([sorted.resource]).collect::<Vec<_>>());
        let table: Vec<u32> = self.quantiles.iter().flat_map(|q| split(*q)).collect();
        let table = program.constant(bytemuck::cast_slice(&table).to_vec());
        let output = Binding::operand(program.operands.len() - 1, &program.operands);
        let length = self.counted.then(|| Binding::operand(1, &program.operands));
        let spec = limited(Spec::new(), self.counted, 4);
        let kernel = program.kernel(Kernel::of_file("primitives/quantile_sort", spec));
        let params = QuantileSortParams { n, quantiles: quantiles as u32 };
        let bindings = [sorted, table, output].into_iter().chain(length).collect();
        program.dispatch(kernel, &params, bindings, Grid::fold(1));
        Ok(())
    }
}

/// A quantile as the kernel of `sort` takes it: its 53 bits, the high ones first, by how many places they stand too far
/// left, and the number in f32.
fn split(q: f64) -> [u32; 4] {
    let bits = q.abs().to_bits();
    let exponent = (bits >> 52) as u32;
    let mantissa = (bits & ((1 << 52) - 1)) | u64::from(exponent > 0) << 52;
    [(mantissa >> 32) as u32, mantissa as u32, 1075 - exponent.max(1), (q as f32).to_bits()]
}

operands! {
    impl[T: Element,] Quantile, T {
        fn record(input: T, output: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Quantile: f32);

pub(super) const INFO: Operation = Operation {
    name: "quantile",
    about: "quantiles, between neighbours of the sorted input as NumPy interpolates",
    inputs: &[Input::new("input", "(n)")],
    outputs: &[("output", "(k)")],
    types: &[DType::F32],
    options: &[QUANTILES, LENGTH],
    domains: &[("input", Domain::Finite)],
    make: Some(make),
    variants: Quantile::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

const QUANTILES: Setting = Setting::text("q", "Q,Q,...", "0.5");

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    asked.check_type(&input)?;
    let text = asked.settings().word(QUANTILES.name).unwrap_or(QUANTILES.default);
    let wrong = |_| err!(InvalidArgument, "quantile: --q {text}: it must be numbers from 0 to 1, with commas between");
    let quantiles = text.split(',').map(|q| q.trim().parse::<f64>().map_err(wrong));
    let quantiles = quantiles.collect::<Result<Vec<_>>>()?;
    asked.set("k", &[quantiles.len()]);
    let (length, output) = (asked.length(1, vec![n])?.0, Role::Result(vec![quantiles.len()]));
    let op = Quantile::new(n, quantiles).when(length.is_some(), Quantile::counted).variant(asked.variant());
    let operands = [Role::Given(input)].into_iter().chain(length).chain([output]).collect();
    Ok(OpCall::new::<f32>(op, operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Quantile::new(10_001, [0.0, 0.33]).variant(variant);
    let mut programs = vec![Op::<f32>::lower(&op, profile)?];
    if variant != "radix" {
        programs.push(Op::<f32>::lower(&op.counted(), profile)?);
    }
    Ok(programs)
}
