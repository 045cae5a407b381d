use super::random::low_high;
use super::{Argsort, Distribution, Gather, RadixSort, Random};
use crate::program::prelude::*;

/// Permutes elements at random: `output[i] = input[order[i]]`, where `order` sorts `n` words of the Philox stream of
/// the seed.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1u32, 2, 3, 4])?, gpu.alloc::<u32>(4)?);
/// let plan = Shuffle::new(4).seed(7).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// let mut found = y.read()?;
/// found.sort();
/// assert_eq!(found, [1, 2, 3, 4]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` and `output` have `n` elements, which may be 0. They must be different wgpu buffers. With
/// [`counted`](Self::counted) an operand `length` of one u32 holds the number of elements: the first words put them in
/// order.
///
/// # Types
/// f32, f16, i32, u32, u8, i8.
///
/// # Precision and determinism
/// Elements are moved, never computed with. The same seed gives the same permutation on every device. The words are
/// those of [`Random`] with [`Distribution::Bits`], stream and offset 0. Equal words keep their order:
/// there are about n^2 / 2^33 such pairs, 128 at n = 2^20. Otherwise every order is equally likely, as far as the
/// stream is random, but 2^64 seeds give at most 2^64 orders.
///
/// # Cost
/// That of [`RadixSort`] with values, and 4 bytes written an element; for elements of another size than 4 bytes, that
/// of [`Argsort`] and [`Gather`]. Scratch: 8 bytes an element, and what the sort needs.
///
/// # Variants
/// `sort`: sorts random words.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above what the sort takes.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// A sort by random keys: `shaders/primitives/shuffle_words.wgsl` and the kernels of [`RadixSort`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shuffle {
    n: usize,
    seed: u64,
    counted: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("sort", "sorts random words, stably")];

kernel_params! { struct ShuffleParams { seed: [u32; 2], n: u32, pad: u32 } }

impl Shuffle {
    /// Permutes `n` elements, with seed 0.
    pub fn new(n: usize) -> Self {
        Self { n, seed: 0, counted: false, variant: "auto".into() }
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    counted!(counted, "elements", "There may be anything behind it in the output.");
    variants!(variant);

    pub(crate) fn words(&self) -> Random {
        Random::new(Distribution::Bits, self.n).seed(self.seed)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let n = self.n;
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name, access| Operand { name, dtype, len: n, access };
        program.operands = vec![operand("input", Access::Read)];
        let length = Operand { dtype: DType::U32, len: 1, ..operand("length", Access::Read) };
        program.operands.extend(self.counted.then_some(length));
        program.operands.push(operand("output", Access::Write));
        profile.check_buffers(INFO.name, &program.operands, "permute parts, then pick from them")?;
        program.cost = Cost::of(0.0, &program.operands);
        let bytes = 4 * u64::from(index_u32(INFO.name, "n", n)?);
        if n == 0 {
            return Ok(program);
        }
        let what = format_args!("random words for {n} elements");
        profile.check_scratch(INFO.name, what, bytes, "permute parts, then pick from them")?;
        let [words, order] = [(); 2].map(|()| program.scratch(bytes));
        let spec = Spec::new().flag("INT64", profile.features.int64);
        let kernel = program.kernel(Kernel::of_file("primitives/shuffle_words", spec));
        let params = ShuffleParams { seed: low_high(self.seed), n: n as u32, pad: 0 };
        program.dispatch(kernel, &params, vec![words], Grid::fold((n as u64).div_ceil(1024)));
        let [input, output] = [0, program.operands.len() - 1].map(Resource::Operand);
        let length = self.counted.then_some(Resource::Operand(1));
        let [by, order] = [words.resource, order.resource];
        let with_length = |from: &[Resource], to: &[Resource]| -> Vec<_> {
            from.iter().copied().chain(length).chain(to.iter().copied()).collect()
        };
        if dtype.size() == 4 {
            let sort = RadixSort::new(n).with_values().when(self.counted, RadixSort::counted);
            program.append(Op::<u32>::lower(&sort, profile)?, &with_length(&[by, input], &[order, output]));
        } else {
            let sort = Argsort::new(n).when(self.counted, Argsort::counted);
            program.append(Op::<u32>::lower(&sort, profile)?, &with_length(&[by], &[order]));
            let rows = Gather::new([n, 1], n).when(self.counted, Gather::counted).lower_as(dtype, profile)?;
            program.append(rows, &with_length(&[input, order], &[output]));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Shuffle, T {
        fn record(input: T, output: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Shuffle: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "shuffle",
    about: "the elements in a random order",
    inputs: &[Input::new("input", "(n)")],
    outputs: &[("output", "(n)")],
    types: &HostData::TYPES,
    options: &[Setting::number("seed", "0"), LENGTH],
    domains: &[("input", Domain::Bits)],
    make: Some(make),
    variants: Shuffle::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, [n]) = asked.array("input")?;
    asked.check_type(&input)?;
    let op = Shuffle::new(n).seed(asked.settings().number("seed")?).variant(asked.variant());
    let (length, output) = asked.length(1, vec![n])?;
    let op = op.when(length.is_some(), Shuffle::counted);
    let dtype = input.dtype();
    let operands = [Role::Given(input)].into_iter().chain(length).chain([output]).collect();
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Shuffle::new(1001).variant(variant);
    let counted = [DType::F32, DType::F16].map(|dtype| op.clone().counted().lower_as(dtype, profile));
    let all = [DType::F32, DType::F16, DType::I8].map(|dtype| op.lower_as(dtype, profile));
    all.into_iter().chain(counted).collect()
}
