//! Quantiles.

use super::NthElement;
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::{
    Access, Asked, Binding, Comparison, Cost, DeviceProfile, Domain, Example, Grid, Input, Kernel, Op,
    OpCall, Operand, Operation, Program, Resource, Role, Setting, Variant, kernel_params, lowered_as,
    operands,
};
use crate::shader::Spec;

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
/// be different wgpu buffers.
///
/// # Precision and determinism
/// The neighbours are exact, in the order of [`RadixSort`](crate::RadixSort): NaN comes last, and counts as the largest
/// number. Interpolation takes three roundings in f32; a quantile that is an element is exact. The same device gives
/// the same bits in every run.
///
/// # Cost
/// That of an [`NthElement`] for each element that is needed: one or two a quantile.
///
/// # Variants
/// `radix`: as [`NthElement`].
///
/// # Errors
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): no elements; no quantiles, or more than 64; a quantile
///   that is not from 0 to 1; an unknown variant.
/// - [`TooLarge`](crate::ErrorKind::TooLarge): an input above the largest buffer.
///
/// # Algorithm
/// [`NthElement`], then `shaders/primitives/quantile.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantile {
    n: usize,
    quantiles: Vec<f64>,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("radix", "finds the digits of each element by counts")];

/// Maximum of quantiles: each is a few dispatches.
const MAX_QUANTILES: usize = 64;

kernel_params! { struct QuantileParams { place: u32, share: f32 } }

impl Quantile {
    /// Finds these quantiles, from 0 to 1, of `n` elements.
    pub fn new(n: usize, quantiles: impl Into<Vec<f64>>) -> Self {
        Self { n, quantiles: quantiles.into(), variant: "auto".into() }
    }

    crate::program::variants!(variant);

    /// For each quantile the rank of the element below it, and its distance from there.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = (usize, f32)> {
        self.quantiles.iter().map(|q| {
            let place = (self.n.saturating_sub(1)) as f64 * q;
            (place as usize, place.fract() as f32)
        })
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (name, n) = (INFO.name, self.n);
        let mut program = Program::of_only_variant(name, &self.variant, VARIANTS, profile)?;
        if n == 0 {
            return Err(err!(
                InvalidArgument,
                "{name}: quantiles of 0 elements are not defined; pass one at least"
            ));
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
        program.operands =
            vec![operand("input", n, Access::Read), operand("output", self.quantiles.len(), Access::Write)];
        profile.check_buffers(name, &program.operands, "count by a histogram in parts")?;
        let kernel = program.kernel(Kernel::of_file("primitives/quantile", Spec::new()));
        let [below, above] = [0, 1].map(|_| program.scratch(4));
        for (j, (rank, share)) in self.ranks().enumerate() {
            let neighbours = [(rank, below), (rank + 1, above)];
            for (rank, to) in neighbours.into_iter().take(if share > 0.0 { 2 } else { 1 }) {
                let nth =
                    Op::<f32>::lower(&NthElement::new(n, rank), profile).map_err(|e| e.context(name))?;
                program.append(nth, &[Resource::Operand(0), to.resource]);
            }
            let output = Binding::operand(1, &program.operands);
            let second = if share > 0.0 { above } else { below };
            let params = QuantileParams { place: j as u32, share };
            program.dispatch(kernel, &params, vec![below, second, output], Grid::fold(1));
        }
        program.cost = Cost::of(3.0 * n as f64 * self.quantiles.len() as f64, &program.operands);
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Quantile, T {
        fn record(input: T, output: T);
    }
}

lowered_as!(Quantile: f32);

pub(super) const INFO: Operation = Operation {
    name: "quantile",
    about: "quantiles, between neighbours of the sorted input as NumPy interpolates",
    inputs: &[Input::new("input", "(n)")],
    outputs: &[("output", "(k)")],
    types: &[DType::F32],
    options: &[QUANTILES],
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
    let wrong = |_| {
        err!(InvalidArgument, "quantile: --q {text}: it must be numbers from 0 to 1, with commas between")
    };
    let quantiles = text.split(',').map(|q| q.trim().parse::<f64>().map_err(wrong));
    let quantiles = quantiles.collect::<Result<Vec<_>>>()?;
    asked.set("k", &[quantiles.len()]);
    let operands = vec![Role::Given(input), Role::Result(vec![quantiles.len()])];
    Ok(OpCall::new::<f32>(Quantile::new(n, quantiles).variant(asked.variant()), operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    Ok(vec![Op::<f32>::lower(&Quantile::new(10_001, [0.0, 0.33]).variant(variant), profile)?])
}
