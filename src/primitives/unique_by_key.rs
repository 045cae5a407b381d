use super::compact::{Compaction, Keep, VARIANTS};
use super::{DTYPES, WORDS};
use crate::program::prelude::*;
use std::marker::PhantomData;

/// Copies the first key of each run of equal neighbours, and its value, to the front of the outputs, in order.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (keys, values) = (gpu.upload(&[7u32, 7, 3, 7])?, gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?);
/// let (keys_out, values_out) = (gpu.alloc::<u32>(4)?, gpu.alloc::<f32>(4)?);
/// let count = gpu.alloc::<u32>(1)?;
/// let plan = UniqueByKey::new(4).with_values::<f32>().plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &keys, &values, &keys_out, &values_out, &count)?;
/// rec.submit()?;
/// let n = count.read()?[0] as usize;
/// assert_eq!(keys_out.slice(..n)?.read()?, [7, 3, 7]);
/// assert_eq!(values_out.slice(..n)?.read()?, [1.0, 3.0, 4.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `keys`, `values` and the outputs have `n` elements each, and `count` has one `u32`, the number of runs. Elements of
/// outputs behind the runs are not written. Operands must not share a buffer. `n` may be 0. Sorted keys give each key
/// once. With [`counted`](UniqueByKey::counted) an operand `length` of one u32 holds the number of elements, at most
/// `n`.
///
/// # Types
/// Keys of f32, f16, i32 and u32; values of u32, or of f32 and i32 by [`with_values`](UniqueByKey::with_values).
///
/// # Precision and determinism
/// Keys are compared as [`Unique`](crate::Unique) compares elements. Bits are moved unchanged. Every variant gives the
/// same result in every run.
///
/// # Cost
/// As [`Unique`](crate::Unique) of the keys. Values of heads are read and written once.
///
/// # Variants
/// As [`Select`](crate::Select).
///
/// # Errors
/// As [`Unique`](crate::Unique); [`Unsupported`](ErrorKind::Unsupported) for values of another type.
///
/// # Algorithm
/// As [`Unique`](crate::Unique): `shaders/primitives/unique_by_key.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueByKey<V = u32> {
    n: usize,
    counted: bool,
    variant: String,
    values: PhantomData<V>,
}

impl UniqueByKey {
    /// Keeps one of each run among `n` keys, with values of u32.
    pub fn new(n: usize) -> Self {
        Self { n, counted: false, variant: "auto".into(), values: PhantomData }
    }

    variants!(list VARIANTS);
}

impl<V: Element> UniqueByKey<V> {
    /// Selects the type of values: u32, i32 or f32.
    #[must_use]
    pub fn with_values<W: Element>(self) -> UniqueByKey<W> {
        let Self { n, counted, variant, values: _ } = self;
        UniqueByKey { n, counted, variant, values: PhantomData }
    }

    variants!(choose variant);

    counted!(counted, "elements", "Keys and values behind it are ignored.");

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        if !WORDS.contains(&V::DTYPE) {
            let wrong = V::DTYPE;
            return Err(err!(Unsupported, "{}: values of {wrong}; convert them to f32, i32 or u32", INFO.name));
        }
        let compaction = Compaction {
            op: INFO.name,
            scatter: "primitives/unique_by_key",
            keep: &Keep::Heads,
            variant: &self.variant,
            variants: VARIANTS,
            leave_out: 0,
            n: self.n,
            counted: self.counted,
            dtype,
            outputs: &[("values", V::DTYPE), ("keys_out", dtype), ("values_out", V::DTYPE)],
        };
        let mut c = compaction.lower(profile)?;
        c.program.operands[0].name = "keys";
        let values = 1 + usize::from(self.counted);
        c.program.operands[values].access = Access::Read;
        c.program.cost.bytes += c.program.operands[values].bytes() as f64;
        let outputs = ["keys_out", "values_out", "values"].map(|name| c.operand(name));
        c.scatter(outputs.into_iter().flatten());
        Ok(c.program)
    }
}

operands! {
    impl[T: Element, V: Element,] UniqueByKey<V>, T {
        fn record(keys: T, values: V, keys_out: T, values_out: V, count: u32);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(<V: Element> UniqueByKey<V>: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "unique-by-key",
    about: "the first key of each run of equal neighbours, and its value",
    inputs: &[Input::new("keys", "(n)"), Input::new("values", "(n)")],
    outputs: &[("keys", "(count)"), ("values", "(count)")],
    types: &WORDS,
    options: &[LENGTH],
    domains: &[("keys", Domain::Runs), ("values", Domain::Bits)],
    make: Some(make),
    variants: UniqueByKey::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (keys, [n]) = asked.array("keys")?;
    let values = asked.of_own_type("values", &[n])?;
    let length = asked.length(1, vec![n])?.0;
    let op = UniqueByKey::new(n).when(length.is_some(), UniqueByKey::counted).variant(asked.variant());
    let (dtype, of_values) = (keys.dtype(), values.dtype());
    let inputs = [Role::Given(keys)].into_iter().chain(length).chain([Role::Given(values)]);
    let operands: Vec<_> = inputs.chain([Role::Counted, Role::Counted, Role::Count]).collect();
    by_type!(asked, of_values, [f32, i32, u32], V => by_type!(asked, dtype, [f32, f16, i32, u32], T => {
        Ok(OpCall::new::<T>(op.with_values::<V>(), operands))
    }))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = UniqueByKey::new(10_000).variant(variant);
    let counted = op.clone().counted();
    let both = |dtype: &DType| [op.lower_as(*dtype, profile), counted.lower_as(*dtype, profile)];
    DTYPES.iter().flat_map(both).collect()
}
