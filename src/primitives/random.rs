use crate::program::prelude::*;

/// The distribution of random numbers, and their type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Words of 32 random bits, u32.
    Bits,
    /// Uniform in (0, 1], f32: `2^-32 x + 2^-33` for a random word x, as `curand_uniform`.
    Uniform,
    /// Uniform between `low` and `high`, f32: `low + (high - low) u`.
    Between {
        /// The lower end.
        low: f32,
        /// The upper end.
        high: f32,
    },
    /// Normal, f32: `mean + deviation z`.
    Normal {
        /// The mean.
        mean: f32,
        /// The standard deviation.
        deviation: f32,
    },
    /// Log-normal, f32: `exp(mean + deviation z)`. Mean and deviation are those of the logarithm.
    LogNormal {
        /// The mean of the logarithm.
        mean: f32,
        /// The standard deviation of the logarithm.
        deviation: f32,
    },
    /// Exponential, f32: `-mean log(u)`.
    Exponential {
        /// The mean, 1 / rate.
        mean: f32,
    },
    /// 1 with probability `p`, else 0, u32. `p` is rounded to a multiple of 2^-32.
    Bernoulli {
        /// The probability of 1.
        p: f64,
    },
    /// Integers from `low` to `high - 1`, all equally likely, u32 or i32.
    Integers {
        /// The smallest integer.
        low: i64,
        /// The integer after the largest one.
        high: i64,
    },
    /// Counts of independent events, u32: `k` has the probability `mean^k exp(-mean) / k!`, with an error of at most
    /// 2^-32.
    Poisson {
        /// The mean, at most 2^20.
        mean: f64,
    },
}

/// Makes random numbers: `output[i] = f(x[offset + i])`, where `x` is a Philox 4x32-10 stream and `f` gives the
/// [`Distribution`].
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (dice, x) = (gpu.alloc::<u32>(1000)?, gpu.alloc::<f32>(1000)?);
/// let throw = Random::new(Distribution::Integers { low: 1, high: 7 }, 1000).seed(5).plan::<u32>(&gpu)?;
/// let uniform = Random::new(Distribution::Uniform, 1000).seed(5).stream(1).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// throw.record(&mut rec, &dice)?;
/// uniform.record(&mut rec, &x)?;
/// rec.submit()?;
/// assert!(dice.read()?.iter().all(|eyes| (1..=6).contains(eyes)));
/// assert!(x.read()?.iter().all(|x| 0.0 < *x && *x <= 1.0));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Streams
/// A seed has 2^64 streams of 2^66 words each, all independent. The same seed, stream and position give the same word
/// on every device, whatever `n` is. Use another seed or stream for each set of numbers that must be independent, or an
/// [`offset`](Self::offset) behind the words that were used. Positions are those of cuRAND's `curand_init(seed,
/// subsequence, offset)` with `curandStatePhilox4_32_10_t`, where `stream` is the subsequence.
///
/// A kernel of your own makes numbers where it needs them: `#import op/philox` (guide
/// [`own_kernel`](crate::guides::own_kernel)).
///
/// # Shapes
/// `output` has `n` elements, of the type of the distribution; `n` may be 0.
///
/// # Precision and determinism
/// `Bits` equals cuRAND's stream in every bit, `Uniform` equals `curand_uniform`. `Bernoulli`, `Integers` and `Poisson`
/// are the same on every device. `Normal` takes two words for two numbers, as `curand_normal` does: `r sin(a), r
/// cos(a)` with `r = sqrt(-2 log(u))`. Its error is at most 2^-20 `r`, cuRAND's about 2^-19 `r`, so the two agree
/// within the sum, and their bits differ. `LogNormal` is the exponential function of such a number. `Exponential` has a
/// relative error of at most 2^-20. `mean`, `deviation` and the ends of `Between` add one or two roundings. The last
/// three may differ between drivers in the last bits; the same device gives the same bits in every run.
///
/// `Integers` draws again where a word would favour some integers (Lemire): another draw enciphers the block of words
/// once more. After 64 draws the last counts; the bias is below 2^-64.
///
/// # Cost
/// About 75 integer operations a number, and as many again where `offset` is not a multiple of 4. Each number is
/// written once. One dispatch for each chunk that a binding holds, and one for a rest of less than 256 bytes. No
/// scratch; `Poisson` has a table of at most 16 sqrt(mean) + 40 words.
///
/// # Variants
/// `philox`: four numbers a thread.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): a type that the distribution does not have.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): ends that are not in order or not of the type, a
///   probability outside of [0, 1], a deviation or mean below 0 or not finite, a Poisson mean above 2^20, an unknown
///   variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an output above the largest buffer.
///
/// # Algorithm
/// J. K. Salmon et al., *Parallel random numbers: as easy as 1, 2, 3* (2011); G. E. P. Box and M. E. Muller (1958); D.
/// Lemire, *Fast random integer generation in an interval* (2019); Poisson by inversion of a table.
/// `shaders/op/philox.wgsl` and `shaders/primitives/random.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Random {
    distribution: Distribution,
    n: usize,
    seed: u64,
    stream: u64,
    offset: u64,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("philox", "a thread makes four numbers and stores 16 bytes")];

/// The largest mean of a Poisson distribution.
const MAX_MEAN: f64 = 1048576.0;

/// Elements of 256 bytes: offsets of bindings are multiples of them.
const CUT: u64 = 64;

kernel_params! {
    #[derive(Default)]
    struct RandomParams {
        seed: [u32; 2], stream: [u32; 2], first: [u32; 2], n: u32, shift: u32, low: u32, range: u32,
        threshold: u32, base: f32, scale: f32, pad: u32,
    }
}

pub(crate) fn low_high(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

impl Random {
    /// Makes `n` numbers of a distribution, with seed, stream and offset 0.
    pub fn new(distribution: Distribution, n: usize) -> Self {
        Self { distribution, n, seed: 0, stream: 0, offset: 0, variant: "auto".into() }
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets which of the seed's streams the numbers come from.
    #[must_use]
    pub fn stream(mut self, stream: u64) -> Self {
        self.stream = stream;
        self
    }

    /// Skips this many words of the stream.
    #[must_use]
    pub fn offset(mut self, words: u64) -> Self {
        self.offset = words;
        self
    }

    variants!(variant);

    /// Returns the distribution.
    pub fn distribution(&self) -> Distribution {
        self.distribution
    }

    pub(crate) fn len(&self) -> usize {
        self.n
    }

    pub(crate) fn key(&self) -> u64 {
        self.seed
    }

    pub(crate) fn place(&self) -> (u64, u64) {
        (self.stream, self.offset)
    }

    /// Checks the distribution and returns the kernel's flag, its parameters and a table.
    fn kind(&self, dtype: DType) -> Result<(&'static str, RandomParams, Vec<u32>)> {
        use Distribution::{Bernoulli, Between, Bits, Exponential, Integers, LogNormal, Normal, Poisson, Uniform};
        let wrong = |what: String| Err(err!(InvalidArgument, "random: {what}"));
        let types: &[DType] = match self.distribution {
            Uniform | Between { .. } | Normal { .. } | LogNormal { .. } | Exponential { .. } => &[DType::F32],
            Bits | Bernoulli { .. } | Poisson { .. } => &[DType::U32],
            Integers { .. } => &[DType::U32, DType::I32],
        };
        if !types.contains(&dtype) {
            let names: Vec<_> = types.iter().map(|t| t.name()).collect();
            let what = self.distribution;
            return Err(err!(Unsupported, "random: {what:?} has no elements of {dtype}; use {}", names.join(" or ")));
        }
        let params = RandomParams::default();
        let plain = |flag, params| Ok((flag, params, Vec::new()));
        match self.distribution {
            Bits => plain("BITS", params),
            Uniform => plain("UNIFORM", params),
            Between { low, high } => {
                let scale = high - low;
                if !(low < high && scale.is_finite()) {
                    return wrong(format!("low {low} and high {high}; low must be below high, and high - low finite"));
                }
                plain("BETWEEN", RandomParams { base: low, scale, ..params })
            }
            Normal { mean, deviation } | LogNormal { mean, deviation }
                if mean.is_finite() && (0.0..f32::INFINITY).contains(&deviation) =>
            {
                plain("NORMAL", RandomParams { base: mean, scale: deviation, ..params })
            }
            Normal { mean, deviation } | LogNormal { mean, deviation } => {
                wrong(format!("mean {mean} and deviation {deviation}; both must be finite, the deviation at least 0"))
            }
            Exponential { mean } if (0.0..f32::INFINITY).contains(&mean) => {
                plain("EXPONENTIAL", RandomParams { scale: mean, ..params })
            }
            Exponential { mean } => wrong(format!("mean {mean}; it must be finite and at least 0")),
            Bernoulli { p } if (0.0..=1.0).contains(&p) => {
                let words = (p * 4294967296.0).round() as u64;
                match u32::try_from(words) {
                    Ok(threshold) => plain("BERNOULLI", RandomParams { threshold, ..params }),
                    // The only integer from 1 to 1.
                    Err(_) => plain("INTEGERS", RandomParams { low: 1, range: 1, ..params }),
                }
            }
            Bernoulli { p } => wrong(format!("p {p}; it must be from 0 to 1")),
            Integers { low, high } => {
                let (least, most) = if dtype == DType::I32 {
                    (i64::from(i32::MIN), i64::from(i32::MAX))
                } else {
                    (0, i64::from(u32::MAX))
                };
                if low >= high || low < least || high > most + 1 {
                    return wrong(format!(
                        "low {low} and high {high}; low must be below high, and {dtype} holds {least} to {most}"
                    ));
                }
                // 0 stands for 2^32.
                let range = (high - low) as u32;
                let threshold = range.wrapping_neg().checked_rem(range).unwrap_or(0);
                plain("INTEGERS", RandomParams { low: low as u32, range, threshold, ..params })
            }
            Poisson { mean } if (0.0..=MAX_MEAN).contains(&mean) => {
                let (low, table) = poisson_table(mean);
                Ok(("POISSON", RandomParams { low, range: table.len() as u32, ..params }, table))
            }
            Poisson { mean } => {
                wrong(format!("mean {mean}; it must be from 0 to {MAX_MEAN}; above it use a normal distribution"))
            }
        }
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (flag, params, table) = self.kind(dtype)?;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        program.operands = vec![Operand { name: "output", dtype, len: self.n, access: Access::Write }];
        profile.check_buffers(INFO.name, &program.operands, "make fewer at a time, with an offset")?;
        program.cost = Cost::of(75.0 * self.n as f64, &program.operands);
        let table = (flag == "POISSON").then(|| {
            // A binding holds a word at the least.
            let table = if table.is_empty() { vec![0] } else { table };
            program.constant(bytemuck::cast_slice(&table).to_vec())
        });
        let shift = (self.offset % 4) as u32;
        let spec = Spec::new().flag(flag, true).flag("SHIFTED", shift > 0).flag("INT64", profile.features.int64);
        let spec = if matches!(self.distribution, Distribution::LogNormal { .. }) {
            spec.flag("LOGARITHMS", true)
        } else {
            spec
        };
        let mut part = |first: u64, count: u64, vectors: bool| {
            let kernel = Kernel::of_file("primitives/random", spec.clone().flag("VECTORS", vectors));
            let kernel = program.kernel(kernel);
            let params = RandomParams {
                seed: low_high(self.seed),
                stream: low_high(self.stream),
                first: low_high(self.offset / 4 + first / 4),
                n: count as u32,
                shift,
                ..params
            };
            let output = BoundChunk { first, count }.of(Resource::Operand(0), 4);
            let bindings = [output].into_iter().chain(table).collect();
            program.dispatch(kernel, &params, bindings, Grid::fold(count.div_ceil(1024)));
        };
        for chunk in profile.aligned_chunks(self.n as u64, 4) {
            let body = chunk.count / CUT * CUT;
            for (first, count, vectors) in [(0, body, true), (body, chunk.count - body, false)] {
                if count > 0 {
                    part(chunk.first + first, count, vectors);
                }
            }
        }
        Ok(program)
    }
}

/// The smallest count of a Poisson distribution that some word gives, and for it and the counts above it 2^32 times the
/// probability of at most that count, rounded down. Counts beyond the table have a probability below 2^-32.
pub(crate) fn poisson_table(mean: f64) -> (u32, Vec<u32>) {
    // Beyond 8 deviations, and a constant for small means, less than 2^-40 is left.
    let (mode, reach) = (mean.floor(), (8.0 * mean.sqrt()).ceil() + 20.0);
    let (first, last) = ((mode - reach).max(0.0) as u32, (mode + reach) as u32);
    // Probabilities relative to that of the mode, from it outwards.
    let mut weights = vec![1.0f64; (last - first + 1) as usize];
    let at = (mode as u32 - first) as usize;
    for k in at + 1..weights.len() {
        weights[k] = weights[k - 1] * mean / (f64::from(first) + k as f64);
    }
    for k in (0..at).rev() {
        weights[k] = weights[k + 1] * (f64::from(first) + k as f64 + 1.0) / mean;
    }
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let up_to = weights.iter().map(|weight| {
        sum += weight;
        (sum / total * 4294967296.0) as u64
    });
    let up_to: Vec<u64> = up_to.collect();
    let skipped = up_to.iter().take_while(|words| **words == 0).count();
    // From 2^32 - 1 on no word tells counts apart.
    let table = up_to[skipped..].iter().take_while(|words| **words < u64::from(u32::MAX));
    let table = table.map(|words| *words as u32).collect();
    (first + skipped as u32, table)
}

operands! {
    impl[T: Element,] Random, T {
        fn record(output: T);
    }
}

lowered_as!(Random);

pub(super) const INFO: Operation = Operation {
    name: "random",
    about: "random numbers of a distribution, by Philox 4x32-10; f32, u32, or i32 for integers with lo below 0",
    outputs: &[("output", "(n)")],
    types: &[DType::F32],
    options: &[
        Setting::number("n", ""),
        Setting::word("kind", || {
            vec!["uniform", "normal", "log-normal", "exponential", "bernoulli", "integers", "poisson", "bits"]
        }),
        Setting::number("seed", "0"),
        Setting::number("offset", "0"),
        Setting::number("stream", "0"),
        Setting::number("lo", ""),
        Setting::number("hi", ""),
        Setting::number("p", "0.5"),
        Setting::number("mean", ""),
        Setting::number("deviation", "1"),
    ],
    make: Some(make),
    variants: Random::variants,
    samples,
    example: Example { shape: &[], options: &[("n", "1000")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let mean = || settings.maybe("mean");
    let distribution = match settings.choice("kind")? {
        "normal" => {
            let mean = mean()?.unwrap_or(0.0) as f32;
            Distribution::Normal { mean, deviation: settings.number("deviation")? }
        }
        "log-normal" => {
            let mean = mean()?.unwrap_or(0.0) as f32;
            Distribution::LogNormal { mean, deviation: settings.number("deviation")? }
        }
        "exponential" => Distribution::Exponential { mean: mean()?.unwrap_or(1.0) as f32 },
        "poisson" => Distribution::Poisson { mean: mean()?.unwrap_or(1.0) },
        "bernoulli" => Distribution::Bernoulli { p: settings.number("p")? },
        "integers" => Distribution::Integers { low: settings.maybe("lo")?.unwrap_or(0), high: settings.number("hi")? },
        "bits" => Distribution::Bits,
        _ if settings.has("lo") || settings.has("hi") => Distribution::Between {
            low: settings.maybe("lo")?.unwrap_or(0.0),
            high: settings.maybe("hi")?.unwrap_or(1.0),
        },
        _ => Distribution::Uniform,
    };
    let n = settings.number("n")?;
    let op = Random::new(distribution, n).variant(asked.variant()).seed(settings.number("seed")?);
    let op = op.stream(settings.number("stream")?).offset(settings.number("offset")?);
    let operands = vec![Role::Result(vec![n])];
    Ok(match distribution {
        Distribution::Integers { low: ..0, .. } => OpCall::new::<i32>(op, operands),
        Distribution::Integers { .. } | Distribution::Bits => OpCall::new::<u32>(op, operands),
        Distribution::Bernoulli { .. } | Distribution::Poisson { .. } => OpCall::new::<u32>(op, operands),
        _ => OpCall::new::<f32>(op, operands),
    })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = |distribution, offset| Random::new(distribution, 1003).offset(offset).variant(variant);
    let floats = [
        Distribution::Uniform,
        Distribution::Between { low: -1.0, high: 1.0 },
        Distribution::Normal { mean: 0.0, deviation: 1.0 },
        Distribution::Exponential { mean: 1.0 },
        Distribution::LogNormal { mean: 0.0, deviation: 1.0 },
    ];
    let integers = [
        Distribution::Bits,
        Distribution::Bernoulli { p: 0.3 },
        Distribution::Integers { low: 1, high: 7 },
        Distribution::Poisson { mean: 3.0 },
    ];
    let mut programs = Vec::new();
    for offset in [0, 3] {
        for float in floats {
            programs.push(Op::<f32>::lower(&op(float, offset), profile)?);
        }
        for integer in integers {
            programs.push(Op::<u32>::lower(&op(integer, offset), profile)?);
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
