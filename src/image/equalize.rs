use super::layout::{self, INPUT, LAYOUT, TYPES};
use super::{Image, Layout};
use crate::primitives::{Histogram, Scan, Sum};
use crate::program::prelude::*;

/// Equalises the histogram of each channel: spreads its values so that value ranges of equal width hold about equal
/// numbers of pixels.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[50u8, 51, 52, 53])?, gpu.alloc::<u8>(4)?);
/// let equalize = Equalize::new([2, 2]).plan::<u8>(&gpu)?;
/// let mut rec = gpu.recorder();
/// equalize.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [0, 85, 170, 255]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Formula
/// u8, as OpenCV's `equalizeHist`: if `c(v)` pixels of the channel have at most the value `v`, and `m` have the
/// smallest value present, `v` becomes `255 (c(v) - m) / (pixels - m)`, rounded half up (OpenCV rounds a product in
/// f32, and may differ by 1 near a half); a channel of one value stays unchanged. f32 and f16, as scikit-image's
/// `equalize_hist`: `c` is counted in 256 bins over [`range`](Self::range) (0 to 1), and `x` becomes `c / c(hi)`,
/// interpolated between the middles of the two nearest bins, in 0 ... 1. Elements outside the range are not counted,
/// and become the value at its nearer end; NaN stays NaN.
///
/// # Shapes
/// `input` and `output` are the [`Image`]; any extent may be 0. Each channel is equalised by itself, as in Pillow;
/// with 2 and 4 channels the last is opacity and stays unchanged. The two must be different wgpu buffers.
///
/// # Precision and determinism
/// u8: exact; every variant and device gives the same bytes. f32 and f16: counts are exact, the interpolation is
/// computed in f32, and f16 is rounded once; the same device gives the same bits.
///
/// # Cost
/// 2 operations an element. The image is read twice and written once; with several channels, a copy of each is
/// counted. Dispatches: for each channel, those of a [`Histogram`] and a [`Scan`] of 256 bins and one for the table
/// (and one for the copy), and one for the image. Scratch: the copy of a channel, that of the histogram and the
/// scan, 3 KiB a channel. Nothing leaves the device.
///
/// # Variants
/// `naive` (reads tables from memory) and `shared` (from workgroup memory). `auto` (the default) takes `shared`, on
/// processors `naive`.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): pixels with more than 4 channels or none, a range that
///   is empty or not finite, or an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an image above the largest binding or buffer.
/// - [`Unsupported`](ErrorKind::Unsupported): elements of another type than u8, f16 and f32.
///
/// # Algorithm
/// E. L. Hall, *Almost uniform distributions for computer image enhancement*, 1974.
/// `shaders/image/equalize_split.wgsl` extracts a channel, `primitives` count and scan it, `equalize_table.wgsl`
/// makes its table, `equalize_apply.wgsl` maps the elements of all channels.
#[derive(Debug, Clone, PartialEq)]
pub struct Equalize {
    pub(crate) image: Image,
    pub(crate) range: (f64, f64),
    variant: String,
}

kernel_params! { struct SplitParams { pixels: u32, first: u32, step: u32 } }
kernel_params! { struct TableParams { first: u32 } }
kernel_params! { struct ApplyParams { len: u32, channels: u32, plane: u32, lo: f32, hi: f32 } }

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "reads the tables from memory"),
    Variant::portable("shared", "reads the tables from workgroup memory"),
];

pub(crate) const BINS: usize = 256;
const WORKGROUP_SIZE: usize = 256;
/// Words or floats of a thread.
const RUNS: usize = 8;

impl Equalize {
    /// Equalises an image.
    pub fn new(image: impl Into<Image>) -> Self {
        Self { image: image.into(), range: (0.0, 1.0), variant: "auto".into() }
    }

    /// Sets the range of f32 and f16 values that are counted. The default is 0 to 1.
    #[must_use]
    pub fn range(mut self, lo: f64, hi: f64) -> Self {
        self.range = (lo, hi);
        self
    }

    variants!(variant);

    /// Returns the number of channels to equalise.
    pub(crate) fn colours(&self) -> usize {
        match self.image.channels {
            c @ (2 | 4) => c - 1,
            c => c,
        }
    }

    pub(crate) fn histogram(&self, dtype: DType) -> Histogram {
        let all = Histogram::new(self.image.h * self.image.w, BINS);
        if dtype == DType::U8 { all } else { all.range(self.range.0, self.range.1) }
    }

    pub(crate) fn strides(&self) -> [usize; 2] {
        let planar = self.image.layout == Layout::Planar;
        if planar { [1, self.image.h * self.image.w] } else { [self.image.channels, 1] }
    }

    fn dispatch<T: Element>(&self, profile: &DeviceProfile, program: &mut Program) -> Result<()> {
        let (dtype, pixels) = (T::DTYPE, self.image.h * self.image.w);
        let (bytes, halves) = (dtype == DType::U8, dtype == DType::F16);
        let in_word = 4 / dtype.size();
        let (colours, [step, plane]) = (self.colours(), self.strides());
        let [input, output] = [0, 1].map(|i| Binding::operand(i, &program.operands));
        let tables = program.scratch((4 * BINS * colours) as u64);
        let alone = if self.image.channels > 1 {
            program.scratch((pixels * T::DTYPE.size()).next_multiple_of(4) as u64)
        } else {
            input
        };
        let [counts, sums] = [0, 1].map(|_| program.scratch(4 * BINS as u64));
        for colour in 0..colours {
            if self.image.channels > 1 {
                let spec = Spec::new().flag("BYTES", bytes).flag("HALVES", halves);
                let kernel = program.kernel(Kernel::of_file("image/equalize_split", spec));
                let params = SplitParams { pixels: pixels as u32, first: (colour * plane) as u32, step: step as u32 };
                let grid = Grid::fold(pixels.div_ceil(in_word).div_ceil(WORKGROUP_SIZE) as u64);
                program.dispatch(kernel, &params, vec![input, alone], grid);
            }
            let counted = Op::<T>::lower(&self.histogram(T::DTYPE), profile)?;
            program.append(counted, &[alone.resource, counts.resource]);
            let scanned = Op::<u32>::lower(&Scan::new(Sum, BINS), profile)?;
            program.append(scanned, &[counts.resource, sums.resource]);
            let spec = Spec::new().flag("BYTES", bytes);
            let kernel = program.kernel(Kernel::of_file("image/equalize_table", spec));
            let params = TableParams { first: (colour * BINS) as u32 };
            let bindings = if bytes { vec![sums, tables, counts] } else { vec![sums, tables] };
            program.dispatch(kernel, &params, bindings, Grid::fold(1));
        }
        let spec = Spec::new()
            .flag("BYTES", bytes)
            .flag("HALVES", halves)
            .alias("Entry", if bytes { "u32" } else { "f32" })
            .alias("Word", if bytes || halves { "u32" } else { "f32" })
            .flag("SHARED", program.variant() == "shared")
            .constant("TABLES", colours as u32)
            .constant("RUNS", RUNS as u32);
        let kernel = program.kernel(Kernel::of_file("image/equalize_apply", spec));
        let len = pixels * self.image.channels;
        let params = ApplyParams {
            len: len as u32,
            channels: self.image.channels as u32,
            plane: plane as u32,
            lo: self.range.0 as f32,
            hi: self.range.1 as f32,
        };
        let work = len.div_ceil(in_word).div_ceil(WORKGROUP_SIZE * RUNS);
        program.dispatch(kernel, &params, vec![input, tables, output], Grid::fold(work as u64));
        Ok(())
    }
}

operands! {
    impl[T: Element,] Equalize, T {
        fn record(input: T, output: T);
    }
}

impl<T: Element> Op<T> for Equalize {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let (dtype, image) = (T::DTYPE, &self.image);
        let name = format!("equalize of {}", image.name());
        let operands = image.operands(&name, dtype, image.channels, profile)?;
        let (lo, hi) = self.range;
        if dtype != DType::U8 && !((lo as f32) < hi as f32 && lo.is_finite() && hi.is_finite()) {
            return Err(err!(
                InvalidArgument,
                "{name}: the range is {lo:?} to {hi:?}; both ends must be finite and lo below hi"
            ));
        }
        let (_, decision) = choose("equalize", &self.variant, VARIANTS, profile, || {
            if profile.quirks.serial_workgroups {
                ("naive", "the caches of a processor hold the tables, and barriers are costly".to_owned())
            } else {
                ("shared", "lanes read different entries, which workgroup memory serves at once".to_owned())
            }
        })?;
        let mut program = Program::new("equalize", decision);
        let len = operands[0].len;
        let bytes = operands[0].bytes() as f64;
        program.cost = Cost { flop: 2.0 * len as f64, bytes: 2.0 * bytes };
        // The result depends on all elements, so the image is read twice.
        program.traffic = Some(3.0 * bytes);
        program.operands = operands;
        if len > 0 {
            self.dispatch::<T>(profile, &mut program)?;
        }
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "equalize",
    about: "spreads the values of each channel over their whole range",
    inputs: &[INPUT],
    outputs: &[("output", "as input")],
    types: TYPES,
    options: &[Setting::number("lo", "0"), Setting::number("hi", "1"), LAYOUT],
    domains: &[("input", Domain::Bits)],
    make: Some(make),
    variants: Equalize::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, image) = layout::asked(asked)?;
    let settings = asked.settings();
    let (lo, hi) = (settings.number("lo")?, settings.number("hi")?);
    let op = Equalize::new(image).range(lo, hi).variant(asked.variant());
    let output = input.shape().to_vec();
    layout::built(asked, op, input, output)
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for channels in [1, 3, 4] {
        let equalize = Equalize::new([50, 41, channels]).variant(variant);
        programs.push(Op::<u8>::lower(&equalize, profile)?);
        programs.push(Op::<f32>::lower(&equalize, profile)?);
        programs.push(Op::<f16>::lower(&equalize, profile)?);
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
