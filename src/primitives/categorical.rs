use super::random::low_high;
use crate::program::prelude::*;

/// Draws categories by their weights: `output[i] = k` with probability `weights[k] / sum(weights)`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let output = gpu.alloc::<u32>(1000)?;
/// let plan = Categorical::new(&[1.0, 0.0, 3.0], 1000).seed(5).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &output)?;
/// rec.submit()?;
/// let drawn = output.read()?;
/// assert!(!drawn.contains(&1));
/// assert!((200..300).contains(&drawn.iter().filter(|k| **k == 0).count()));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Streams
/// Those of [`Random`](crate::Random). Number `i` takes words `2 i` and `2 i + 1` behind the offset.
///
/// # Shapes
/// `output` has `n` elements of u32; `n` may be 0.
///
/// # Precision and determinism
/// The same on every device. The host makes the table in f64; each category's probability differs from its share by at
/// most (number of categories) 2^-32. A weight of 0 is never drawn.
///
/// # Cost
/// About 80 integer operations a number, and 8 bytes read from the table. The plan keeps the table: 8 bytes a category.
/// Other weights make a new plan without a compilation.
///
/// # Variants
/// `alias`: two numbers a thread.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): no weights; a weight that is negative or not finite; a sum
///   that is 0 or not finite; an offset that is no multiple of 4; an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): more than 2^24 weights, an output above the largest binding.
///
/// # Algorithm
/// Alias tables: A. J. Walker (1977), M. D. Vose (1991); `shaders/primitives/categorical.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Categorical {
    weights: Vec<f64>,
    n: usize,
    place: [u64; 3],
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("alias", "a thread makes two numbers from a block of words")];

const MAX_CATEGORIES: usize = 1 << 24;

kernel_params! {
    struct CategoricalParams { seed: [u32; 2], stream: [u32; 2], first: [u32; 2], n: u32, categories: u32 }
}

impl Categorical {
    /// Draws `n` categories, one for each weight, with seed, stream and offset 0.
    pub fn new(weights: &[f64], n: usize) -> Self {
        Self { weights: weights.to_vec(), n, place: [0; 3], variant: "auto".into() }
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.place[0] = seed;
        self
    }

    /// Sets which of the seed's streams the words come from.
    #[must_use]
    pub fn stream(mut self, stream: u64) -> Self {
        self.place[1] = stream;
        self
    }

    /// Skips this many words of the stream, a multiple of 4.
    #[must_use]
    pub fn offset(mut self, words: u64) -> Self {
        self.place[2] = words;
        self
    }

    variants!(variant);

    /// The weights, the number of numbers, and the place in the random words.
    pub(crate) fn parts(&self) -> (&[f64], usize, [u64; 3]) {
        (&self.weights, self.n, self.place)
    }

    fn check(&self) -> Result<()> {
        let (weights, offset) = (&self.weights, self.place[2]);
        if weights.is_empty() {
            return Err(err!(InvalidArgument, "categorical: no weights; there must be one to draw"));
        }
        if weights.len() > MAX_CATEGORIES {
            return Err(err!(
                TooLarge,
                "categorical: {} weights; the maximum is {MAX_CATEGORIES}; draw groups, then members",
                weights.len()
            ));
        }
        if let Some(at) = weights.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
            return Err(err!(
                InvalidArgument,
                "categorical: weight {at} is {}; weights must be finite and at least 0",
                weights[at]
            ));
        }
        let sum: f64 = weights.iter().sum();
        if !(sum > 0.0 && sum.is_finite()) {
            return Err(err!(
                InvalidArgument,
                "categorical: the weights sum to {sum}; the sum must be finite and above 0"
            ));
        }
        if !offset.is_multiple_of(4) {
            return Err(err!(InvalidArgument, "categorical: an offset of {offset} words; it must be a multiple of 4"));
        }
        Ok(())
    }
}

/// For each category the share of its column, in 2^-32, that is its own, and the category that the rest belongs to. The
/// share of a column that is all its own is 0, and the rest its own.
pub(crate) fn alias_table(weights: &[f64]) -> Vec<[u32; 2]> {
    let sum: f64 = weights.iter().sum();
    // A column is 1 high.
    let mut heights: Vec<f64> = weights.iter().map(|w| w / sum * weights.len() as f64).collect();
    let mut table: Vec<[u32; 2]> = (0..weights.len() as u32).map(|k| [0, k]).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..weights.len()).partition(|k| heights[*k] < 1.0);
    while let (Some(low), Some(&high)) = (small.pop(), large.last()) {
        table[low] = [(heights[low] * 4294967296.0) as u32, high as u32];
        heights[high] -= 1.0 - heights[low];
        if heights[high] < 1.0 {
            large.pop();
            small.push(high);
        }
    }
    // What is left is 1 but for rounding. A category that is never drawn must not stay.
    let drawn = weights.iter().position(|w| *w > 0.0).unwrap_or(0) as u32;
    for (k, entry) in table.iter_mut().enumerate() {
        if weights[k] == 0.0 && entry[1] == k as u32 {
            *entry = [0, drawn];
        }
    }
    table
}

operands! {
    impl[] Categorical, u32 {
        fn record(output: u32);
    }
}

impl Op<u32> for Categorical {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        self.check()?;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let (weights, n, [seed, stream, offset]) = self.parts();
        program.operands = vec![Operand { name: "output", dtype: DType::U32, len: n, access: Access::Write }];
        profile.check_bindings(INFO.name, &program.operands, "make fewer at a time, with an offset")?;
        program.cost = Cost::of(80.0 * n as f64, &program.operands);
        let count = index_u32(INFO.name, "n", n)?;
        if n == 0 {
            return Ok(program);
        }
        let params = CategoricalParams {
            seed: low_high(seed),
            stream: low_high(stream),
            first: low_high(offset / 4),
            n: count,
            categories: weights.len() as u32,
        };
        let columns = program.constant(bytemuck::cast_slice(&alias_table(weights)).to_vec());
        let spec = Spec::new().flag("INT64", profile.features.int64);
        let kernel = program.kernel(Kernel::of_file("primitives/categorical", spec));
        let bindings = vec![Binding::operand(0, &program.operands), columns];
        program.dispatch(kernel, &params, bindings, Grid::fold(u64::from(count).div_ceil(512)));
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "categorical",
    about: "random categories by their weights, by Philox 4x32-10; without weights, categories of equal weight",
    outputs: &[("output", "u32 (n)")],
    types: &[DType::U32],
    options: &[
        Setting::number("n", ""),
        Setting::array("weights", "(k)"),
        Setting::number("categories", "6"),
        Setting::number("seed", "0"),
        Setting::number("offset", "0"),
        Setting::number("stream", "0"),
    ],
    make: Some(make),
    variants: Categorical::variants,
    samples,
    example: Example { shape: &[], options: &[("n", "1000")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let weights = match settings.array("weights") {
        Some(weights) => weights.data().to_f64(),
        None => {
            let categories: usize = settings.number("categories")?;
            vec![1.0; categories.min(MAX_CATEGORIES + 1)]
        }
    };
    let n = settings.number("n")?;
    let op = Categorical::new(&weights, n).variant(asked.variant()).seed(settings.number("seed")?);
    let op = op.stream(settings.number("stream")?).offset(settings.number("offset")?);
    Ok(OpCall::new::<u32>(op, vec![Role::Result(vec![n])]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    Ok(vec![Categorical::new(&[1.0, 2.0, 3.0], 1003).variant(variant).lower(profile)?])
}

#[cfg(test)]
mod tests;
