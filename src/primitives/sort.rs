mod lowering;
mod narrow;
mod policy;

use self::lowering::SortLowering;
use super::split_parts::PartKeys;
use super::values::Values;
use crate::elementwise::{MAPPED, MapFn, asked_map};
use crate::program;
use crate::program::prelude::*;
use std::ops::Range;

/// Sorts keys, stably: `keys_out[i]` is the `i`-th of `keys` in order. Values move with their keys.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (keys, values) = (gpu.upload(&[3.0f32, -1.0, 2.0])?, gpu.upload(&[10u32, 11, 12])?);
/// let (keys_out, values_out) = (gpu.alloc::<f32>(3)?, gpu.alloc::<u32>(3)?);
/// let sort = RadixSort::new(3).with_values().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// sort.with_values(&values, &values_out).record(&mut rec, &keys, &keys_out)?;
/// rec.submit()?;
/// assert_eq!(keys_out.read()?, [-1.0, 2.0, 3.0]);
/// assert_eq!(values_out.read()?, [11, 12, 10]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `keys` and `keys_out` have `n` elements; [`with_values`](RadixSort::with_values) adds `values` and `values_out`
/// of `n` u32 each, [`with_wide_values`](RadixSort::with_wide_values) of `n` rows of some u32. Values of another type
/// move as a [`bitcast`](crate::Buffer::bitcast) to u32. Inputs keep their
/// contents and must be other wgpu buffers than the outputs; [`in_place`](RadixSort::in_place) takes one read-write
/// operand for both. The length may be anything from 0 to the largest buffer. With
/// [`counted`](RadixSort::counted) an operand `length` of one u32 holds the number of keys
/// to sort, at most `n`; the output behind them may hold anything.
///
/// # Types and order
/// Keys of u8, i8, f16, u32, i32, f32 and u64; ascending, or [`descending`](RadixSort::descending). Equal keys keep
/// their order either way. Floats have the total order -inf ... -0, +0 ... +inf. Every NaN comes last, ascending and
/// descending,
/// and NaNs keep their order and their bits. [`keys_as`](RadixSort::keys_as) takes i16, u16, i64 and f64, too.
/// [`bits`](RadixSort::bits) sorts by some bits of the key only, which
/// takes fewer passes.
///
/// # Precision and determinism
/// Keys and values are moved, never computed with. The same input gives the same bits on every device.
///
/// # Cost
/// One pass for each 8 bits. `onesweep` reads the keys once to count digits, then reads and writes keys and values
/// once a pass: 3 dispatches, and one more a pass. `counting` reads keys twice a pass: 3 dispatches a pass.
/// Scratch: one copy of keys and values (none for a single pass that is not in place), and 2 KiB a tile or 1 KiB a
/// block. Keys of 8 and 16 bits are widened to words, sorted in one pass or two, and packed: 8 bytes of scratch a key
/// more. Wide values are gathered once, by the sorted positions: values of two words and more move through memory once
/// instead of once a pass, and 4 bytes of scratch a key hold the positions.
///
/// # Variants
/// `counting` and `onesweep`; `auto` (the default) takes `onesweep` on devices with subgroups, except on
/// processors.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): keys of another type, or that the function of
///   [`mapped`](Self::mapped) does not take, a variant that the device cannot run, or
///   values of several words in place.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): bits that keys do not have, values of no word, or an
///   unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer or, for `onesweep`, the largest
///   binding.
///
/// # Algorithm
/// Radix sort, least significant digit first. `onesweep`: A. Adinets and D. Merrill, *Onesweep* (2022), with
/// look-back that needs no forward progress, after T. Smith, R. Levien and J. Owens, *Decoupled Fallback* (2025);
/// `shaders/primitives/sort_onesweep.wgsl`. `counting`: `shaders/primitives/sort_scatter.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadixSort {
    n: usize,
    descending: bool,
    bits: Option<Range<u32>>,
    function: Option<MapFn>,
    keys_as: Option<KeyBits>,
    /// Keys are the parts that elements belong to.
    keys: Option<PartKeys>,
    variant: String,
    tile: Option<(u32, u32)>,
    leave_out: u32,
    form: SortForm,
}

/// The number that the bits of a key are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyBits {
    /// An integer without sign.
    Unsigned,
    /// An integer in two's complement.
    Signed,
    /// A float of IEEE 754, of 16 bits or more.
    Float,
}

pub(super) const VARIANTS: &[Variant] = &[
    Variant::portable("counting", "each pass counts digits, scans the counts and scatters"),
    Variant::subgroups("onesweep", "counts all digits at once; a pass reads and writes once, by decoupled look-back"),
];

impl RadixSort {
    /// Sorts `n` keys.
    pub fn new(n: usize) -> Self {
        Self {
            n,
            descending: false,
            bits: None,
            function: None,
            keys_as: None,
            keys: None,
            variant: "auto".into(),
            tile: None,
            leave_out: 0,
            form: SortForm::default(),
        }
    }

    /// Moves a u32 value with each key: operands `values` and `values_out`, which plans take by `with_values`.
    #[must_use]
    pub fn with_values(mut self) -> Self {
        (self.form.values, self.form.width) = (true, 1);
        self
    }

    /// Moves a value of `words` u32 with each key: operands `values` and `values_out` of `n * words` elements, which
    /// plans take by `with_values`. The keys are sorted with their positions, by which values of two words and more are
    /// then gathered.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (keys, values) = (gpu.upload(&[3u32, 1])?, gpu.upload(&[[1.0f32, 2.0], [3.0, 4.0]].concat())?);
    /// let (keys_out, values_out) = (gpu.alloc::<u32>(2)?, gpu.alloc::<f32>(4)?);
    /// let sort = RadixSort::new(2).with_wide_values(2).plan::<u32>(&gpu)?;
    /// let mut rec = gpu.recorder();
    /// let (moved, moved_out) = (values.bitcast::<u32>()?, values_out.bitcast::<u32>()?);
    /// sort.with_values(&moved, &moved_out).record(&mut rec, &keys, &keys_out)?;
    /// rec.submit()?;
    /// assert_eq!(values_out.read()?, [3.0, 4.0, 1.0, 2.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[must_use]
    pub fn with_wide_values(mut self, words: usize) -> Self {
        (self.form.values, self.form.width) = (true, words);
        self
    }

    /// Sorts the keys in place: plans are recorded by `record_in_place`, and take values by `with_values_in_place`.
    #[must_use]
    pub fn in_place(mut self) -> Self {
        self.form.in_place = true;
        self
    }

    counted!(form.counted, "keys", "Keys behind it stay where they are in place; elsewhere, there may be anything.");

    #[cfg(feature = "stream")]
    pub(crate) const NAME: &'static str = INFO.name;

    /// Sorts the largest first. The default is the smallest first.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }

    /// Sorts by these bits only, counted from the least significant. The default is all bits. The bits of a signed or
    /// floating key are those of its position in the order of the type, counted from 0.
    ///
    /// ```
    /// use tilework::RadixSort;
    /// use tilework::program::{DeviceProfile, Op};
    /// let sort = RadixSort::new(1000).bits(4..12).variant("counting"); // by (key >> 4) & 0xff
    /// assert_eq!(Op::<u32>::lower(&sort, &DeviceProfile::h100())?.dispatches.len(), 3);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[must_use]
    pub fn bits(mut self, bits: Range<u32>) -> Self {
        self.bits = Some(bits);
        self
    }

    /// Sorts `function` of the keys, computed as the first pass reads them: `keys_out` are the results in order. Plans
    /// in place overwrite the keys with them. A function of your own is [`MapFn::custom`](crate::MapFn::custom). Keys
    /// are f32, f16, i32 or u32, as the function takes.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// // Distances from 3, and what they belong to.
    /// let (x, who) = (gpu.upload(&[1u32, 9, 4])?, gpu.upload(&[0u32, 1, 2])?);
    /// let distance = MapFn::custom("fn map(x: T) -> T { return max(x, 3u) - min(x, 3u); }");
    /// let (near, order) = (gpu.alloc::<u32>(3)?, gpu.alloc::<u32>(3)?);
    /// let plan = RadixSort::new(3).mapped(distance).with_values().plan::<u32>(&gpu)?;
    /// let mut rec = gpu.recorder();
    /// plan.with_values(&who, &order).record(&mut rec, &x, &near)?;
    /// rec.submit()?;
    /// assert_eq!((near.read()?, order.read()?), (vec![1, 2, 6], vec![2, 0, 1]));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[must_use]
    pub fn mapped(mut self, function: MapFn) -> Self {
        self.function = Some(function);
        self
    }

    /// Sorts keys by the number that their bits are: integers of 16 bits in buffers of f16, i64 and f64 in u64, as
    /// `RadixSort::new(n).keys_as(KeyBits::Float).plan::<u64>(&gpu)` sorts what `f64::to_bits` gives.
    #[must_use]
    pub fn keys_as(mut self, bits: KeyBits) -> Self {
        self.keys_as = Some(bits);
        self
    }

    variants!(variant);

    /// Sets the threads of a workgroup and the keys of a thread, for tuning and for tests with many small tiles.
    /// The default is that of the device's policy.
    #[doc(hidden)]
    #[must_use]
    pub fn tile(mut self, workgroup_size: u32, items_per_thread: u32) -> Self {
        self.tile = Some((workgroup_size, items_per_thread));
        self
    }

    super::lookback::leave_out_posts!(leave_out);

    /// Sorts by the parts that elements belong to.
    pub(super) fn keyed(mut self, keys: PartKeys) -> Self {
        self.keys = Some(keys);
        self
    }

    pub(super) fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        if let (Some(bits), Some(_)) = (self.keys_as, &self.function) {
            return Err(err!(
                InvalidArgument,
                "{}: a function of keys that are {bits:?}; map them before",
                self.form.op()
            ));
        }
        if narrow::is_narrow(dtype) {
            return self.lower_narrow(dtype, profile);
        }
        SortLowering::new(self, self.form, dtype, profile)?.run()
    }

    /// Lowers the sort with the positions of the keys as values and `indices` as the only output.
    pub(super) fn positions(mut self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        (self.form.values, self.form.positions, self.form.width) = (true, true, 1);
        self.lower_as(dtype, profile)
    }
}

operands! {
    impl[T: Element,] RadixSort, T {
        fn record(keys: T, keys_out: T);
        fn record_in_place(keys: T);
        /// Takes values that move with the keys.
        optional with_values(values: u32, values_out: u32);
        /// Takes values that move with keys sorted in place.
        optional with_values_in_place(values: u32);
        /// Takes the number of keys from the device.
        optional with_length(length: u32);
    }
}

program::lowered_as!(RadixSort);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SortForm {
    values: bool,
    /// Words of a value.
    width: usize,
    in_place: bool,
    counted: bool,
    /// Values are the positions of the keys, and the only output.
    positions: bool,
}

impl SortForm {
    fn op(self) -> &'static str {
        if self.positions { super::argsort::INFO.name } else { INFO.name }
    }
}

/// Rejects bits that keys of this type do not have.
fn check_bits(op: &str, dtype: DType, bits: &Range<u32>) -> Result<()> {
    let width = 8 * dtype.size() as u32;
    if bits.start <= bits.end && bits.end <= width {
        return Ok(());
    }
    Err(err!(
        InvalidArgument,
        "{op}: bits {} to {} of keys of {dtype}; begin must not be above end, nor end above {width}, the bits of a key",
        bits.start,
        bits.end
    ))
}

/// As [`key_spec`], for keys whose bits are numbers of another kind.
fn bits_spec(dtype: DType, bits: KeyBits, descending: bool) -> Result<Spec> {
    match (dtype.size(), bits) {
        (4, KeyBits::Unsigned) => key_spec(DType::U32, descending),
        (4, KeyBits::Signed) => key_spec(DType::I32, descending),
        (4, KeyBits::Float) => key_spec(DType::F32, descending),
        (8, KeyBits::Unsigned) => key_spec(dtype, descending),
        (8, KeyBits::Signed) => {
            let flip = if descending { u32::MAX >> 1 } else { 1 << 31 };
            Ok(key_spec(dtype, descending)?.constant("FLIP_HIGH", flip).constant("PAD_HIGH", !flip))
        }
        (8, KeyBits::Float) => Ok(key_spec(dtype, descending)?.constant("PAD", u32::MAX >> 1).flag("FLOAT", true)),
        _ => Err(err!(Unsupported, "sort: keys of {dtype} that are {bits:?}")),
    }
}

/// Returns the spec by which `sort_key.wgsl` converts a key to an unsigned number.
pub(super) fn key_spec(dtype: DType, descending: bool) -> Result<Spec> {
    let all = if descending { u32::MAX } else { 0 };
    // A padding key has the largest number; for floats it is a NaN.
    let spec = |flip: u32, pad: u32| Spec::new().constant("FLIP", flip).constant("PAD", pad);
    Ok(match dtype {
        DType::U32 => spec(all, !all),
        DType::I32 => spec(all ^ (1 << 31), !all ^ (1 << 31)),
        DType::F32 => spec(all, 0x7fff_ffff).flag("FLOAT", true),
        DType::U64 => spec(all, !all).flag("WIDE", true),
        _ => {
            return Err(err!(Unsupported, "sort: keys of {dtype} have no kernel; convert them to f32"));
        }
    })
}

pub(super) const INFO: Operation = Operation {
    name: "sort",
    about: "keys in order, stable, and values with their keys",
    inputs: &[Input::new("keys", "(n)"), Input::optional("values", "u32, i32, f32 (n, ...)")],
    outputs: &[("keys", "(n)"), ("[values]", "(n, ...)")],
    types: &HostData::TYPES,
    options: &[Setting::flag("descending"), BITS, MAPPED, Setting::flag("in-place"), LENGTH, TILE],
    domains: &[("keys", Domain::Runs), ("values", Domain::Bits)],
    make: Some(make),
    variants: RadixSort::variants,
    samples,
    comparison: Some(Comparison::Sums),
    settles: true,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

pub(super) const BITS: Setting = Setting::text("bits", "BEGIN,END", "");
const TILE: Setting = Setting::text("tile", "THREADS,KEYS", "");

fn make(asked: &mut Asked<'_>) -> Result<program::OpCall> {
    let settings = asked.settings();
    let (keys, [n]) = asked.array("keys")?;
    let mut op = RadixSort::new(n).when(settings.has("descending"), |op| op.descending()).variant(asked.variant());
    if let Some([begin, end]) = settings.given_numbers(&BITS)? {
        op = op.bits(begin..end);
    }
    if let Some(function) = asked_map(asked) {
        op = op.mapped(function);
    }
    if let Some([threads, items]) = settings.given_numbers(&TILE)? {
        op = op.tile(threads, items);
    }
    let dtype = keys.dtype();
    let values = Values::asked(asked, n, true)?;
    if let Some(values) = &values {
        op = op.with_wide_values(values.words);
    }
    let sorted = [keys].into_iter().chain(values.iter().map(|values| values.array.clone()));
    let (length, output) = asked.length(1, vec![n])?;
    op = op.when(length.is_some(), RadixSort::counted);
    let operands = if settings.has("in-place") {
        op = op.in_place();
        sorted.map(Role::Updated).chain(length).collect()
    } else {
        let outputs = Values::outputs(values.as_ref(), output);
        sorted.map(Role::Given).chain(length).chain(outputs).collect()
    };
    by_type!(asked, dtype, [f32, i32, u32, f16, u8, i8], T => {
        Ok(Values::typed(values.as_ref(), 1, program::OpCall::new::<T>(op, operands)))
    })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for descending in [false, true] {
        let keys = || RadixSort::new(10_001).when(descending, |op| op.descending()).variant(variant);
        let pairs = || keys().with_values();
        programs.push(Op::<u32>::lower(&keys(), profile)?);
        programs.push(Op::<i32>::lower(&pairs(), profile)?);
        programs.push(Op::<f32>::lower(&keys().in_place(), profile)?);
        programs.push(Op::<f32>::lower(&pairs(), profile)?);
        programs.push(Op::<u64>::lower(&keys(), profile)?);
        programs.push(Op::<u64>::lower(&pairs(), profile)?);
        programs.push(Op::<f16>::lower(&keys(), profile)?);
        programs.push(Op::<i8>::lower(&pairs().in_place(), profile)?);
        programs.push(Op::<u8>::lower(&keys().with_wide_values(3), profile)?);
        programs.push(Op::<u32>::lower(&keys().with_wide_values(4).counted(), profile)?);
    }
    let keys = || RadixSort::new(1000).variant(variant);
    programs.push(Op::<u32>::lower(&keys().counted(), profile)?);
    programs.push(Op::<f16>::lower(&keys().counted(), profile)?);
    programs.push(Op::<u32>::lower(&keys().with_values().in_place().counted(), profile)?);
    programs.push(Op::<u32>::lower(&keys().leave_out_posts(2), profile)?);
    let square = || MapFn::custom("fn map(x: T) -> T { return x * x; }");
    programs.push(Op::<u32>::lower(&keys().mapped(square()).leave_out_posts(2), profile)?);
    programs.push(Op::<f32>::lower(&keys().mapped(MapFn::Abs).with_values(), profile)?);
    programs.push(Op::<f16>::lower(&keys().mapped(MapFn::Neg), profile)?);
    // Subgroups above 32 lanes, as some GPUs have.
    let large = DeviceProfile { subgroup_sizes: (32, 64), ..profile.clone() };
    programs.push(Op::<u32>::lower(&keys(), &large)?);
    // What shards run beside sorts.
    programs.extend(super::sort_samples::samples(profile)?);
    programs.extend(super::pass_sums::samples(profile)?);
    Ok(programs)
}
