use super::Image;
use super::layout::{self, INPUT, LAYOUT, TYPES};
use crate::conv::{LinesParams, source, target};
use crate::dense::predict::Rates;
use crate::program::prelude::*;

/// The gradient to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Gradient {
    /// `sqrt(gx^2 + gy^2)`.
    #[default]
    Magnitude,
    /// `gx`, to the right; its magnitude for u8.
    X,
    /// `gy`, downwards; its magnitude for u8.
    Y,
}

impl Gradient {
    /// All values.
    pub const ALL: [Gradient; 3] = [Self::Magnitude, Self::X, Self::Y];

    /// Returns the name, as on the command line of the `op` example.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Magnitude => "magnitude",
            Self::X => "x",
            Self::Y => "y",
        }
    }

    /// Returns the gradient of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|g| g.name() == name)
    }
}

/// Computes the gradient of each channel: `output[y, x] = sqrt(gx^2 + gy^2)`, where `gx` is the sum of the window
/// of 3 x 3 pixels around `(y, x)` times `-1 0 1, -2 0 2, -1 0 1` (row by row), and `gy` the same transposed.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[0u8, 0, 10, 0, 0, 10, 0, 0, 10])?, gpu.alloc::<u8>(9)?);
/// let edges = Sobel::new([3, 3]).plan::<u8>(&gpu)?;
/// let mut rec = gpu.recorder();
/// edges.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [0, 40, 40, 0, 40, 40, 0, 40, 40]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` and `output` are the [`Image`]; any extent may be 0. The two must be different wgpu buffers.
///
/// # Boundary
/// The nearest pixel is repeated outside the image, as in SciPy's and scikit-image's default (for this window
/// `reflect` and `nearest` are the same) and OpenCV with `BORDER_REPLICATE`. `gx` and `gy` are those of SciPy and
/// OpenCV; scikit-image divides them by 4 and the magnitude by a further `sqrt(2)`.
///
/// # Types, precision and determinism
/// u8: exact, rounded to the nearest whole number and saturated to 255; [`Gradient::X`] and `Y` lose their sign.
/// Every variant and device gives the same bytes. f32 and f16 (rounded once, at the end): sums in f32, and a root that
/// WGSL lets err by a few units in the last place; magnitudes above 1.8e19 are infinite, below 1e-19 they may be 0. The
/// same device gives the same bits. Pixels on the axis are no terms of a gradient, even if they are NaN.
///
/// # Cost
/// 14 operations an element; with `rows` each element is read about three times from the cache, once from memory.
/// One dispatch, no scratch.
///
/// # Variants
/// `naive` and `rows`; `auto` (the default) takes the one that is predicted to be faster.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): pixels with more than 4 channels or none, or an
///   unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an image above the largest binding or buffer.
/// - [`Unsupported`](ErrorKind::Unsupported): elements of another type than u8, f16 and f32.
///
/// # Algorithm
/// I. Sobel and G. Feldman, 1968. Both windows are products of lines and share the sums along x:
/// `shaders/image/sobel_rows.wgsl`; `sobel_naive.wgsl` computes all sums for each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sobel {
    pub(crate) image: Image,
    pub(crate) gradient: Gradient,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "each group of four reads the three rows around it"),
    Variant::portable("rows", "walks down columns of groups, and reads each row once"),
];

const WORKGROUP_SIZE: usize = 256;

/// Rows that a thread of `rows` walks down.
const ROWS: usize = 8;

/// Seconds that a thread waits for a row that is read element by element: one of three, or one after another.
const ROW_WAIT: f64 = 3.3e-6;
const ROWS_WAIT: f64 = 2.0e-6;

/// Rows of fewer elements share cache lines.
const SHORT: usize = 64;

impl Sobel {
    /// Filters an image.
    pub fn new(image: impl Into<Image>) -> Self {
        Self { image: image.into(), gradient: Gradient::Magnitude, variant: "auto".into() }
    }

    /// Selects the gradient. The default is [`Gradient::Magnitude`].
    #[must_use]
    pub fn gradient(mut self, gradient: Gradient) -> Self {
        self.gradient = gradient;
        self
    }

    variants!(variant);

    /// Chooses a variant and says why.
    fn policy(&self, profile: &DeviceProfile) -> (&'static str, String) {
        let [d, h, w] = self.image.extents();
        // u8 of 11 x 41, us of `naive` and `rows`: 88, 99 (Mesa 22.3), 158, 215 (SwiftShader).
        let serial = profile.quirks.serial_workgroups;
        if serial && d * h * w < 1 << 11 && !w.is_multiple_of(4) {
            return ("naive", "too few elements to walk".to_owned());
        }
        if w.is_multiple_of(4) || serial {
            return ("rows", "reads every row once and keeps its sums".to_owned());
        }
        // Rows that are no multiple of four are read element by element. 26 shapes by chance on an H100 (Vulkan, driver
        // 580.159.04): the choice takes 1.008 of the faster one's time on average, at most 1.19.
        let pass = |bytes: f64| Rates::of(profile).pass((d * h * w) as f64 * bytes);
        let short = if w < SHORT { 36.0 } else { 18.6 };
        let naive = 3.0 * ROW_WAIT + pass(short);
        // Threads beside each other are ROWS rows apart where a row has few of them.
        let rows = (ROWS + 2) as f64 * ROWS_WAIT + pass(14.4 + 330.0 / w.max(1) as f64);
        let [rows_us, naive_us] = [rows, naive].map(|s| s * 1e6);
        if rows < naive {
            ("rows", format!("predicted {rows_us:.1} us, {naive_us:.1} us with each row read three times"))
        } else {
            ("naive", format!("predicted {naive_us:.1} us, {rows_us:.1} us with each row read once"))
        }
    }

    fn dispatch(&self, dtype: DType, program: &mut Program) {
        let extents @ [d, h, w] = self.image.extents();
        let whole = w.is_multiple_of(4);
        let rows = program.variant() == "rows";
        let mut spec = source(target(Spec::new(), dtype, whole), dtype)
            .flag("BYTES", dtype == DType::U8)
            .flag("ALONG_X", self.gradient == Gradient::X)
            .flag("ALONG_Y", self.gradient == Gradient::Y)
            .constant("STEP", self.image.step() as u32);
        if rows && whole {
            spec = spec.slot("row", Fragment::Library("image/sobel_group"));
            if dtype == DType::F32 {
                spec = spec.flag("GROUPS", true);
            }
        }
        let (kernel, blocks) = if rows {
            let spec = spec.constant("ROWS", ROWS as u32);
            (Kernel::of_file("image/sobel_rows", spec), h.div_ceil(ROWS))
        } else {
            (Kernel::of_file("image/sobel_naive", spec), h)
        };
        let work = w.div_ceil(4) * blocks * d;
        let params = LinesParams { tiles: work as u32, radius_x: 1, ..LinesParams::of(extents, self.image.step()) };
        let kernel = program.kernel(kernel);
        let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        program.dispatch(kernel, &params, bindings, Grid::fold(work.div_ceil(WORKGROUP_SIZE) as u64));
    }
}

operands! {
    impl[T: Element,] Sobel, T {
        fn record(input: T, output: T);
    }
}

impl<T: Element> Op<T> for Sobel {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let (dtype, image) = (T::DTYPE, &self.image);
        let operands = image.operands(&format!("sobel of {}", image.name()), dtype, image.channels, profile)?;
        let (_, decision) = choose("sobel", &self.variant, VARIANTS, profile, || self.policy(profile))?;
        let mut program = Program::new("sobel", decision);
        let len = operands[0].len;
        program.cost = Cost::of(14.0 * len as f64, &operands);
        program.operands = operands;
        if len > 0 {
            self.dispatch(dtype, &mut program);
        }
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "sobel",
    about: "how fast brightness changes around each pixel",
    inputs: &[INPUT],
    outputs: &[("output", "as input")],
    types: TYPES,
    options: &[Setting::word("gradient", || Gradient::ALL.map(Gradient::name).to_vec()), LAYOUT],
    make: Some(make),
    variants: Sobel::variants,
    samples,
    comparison: Some(Comparison::RoundedBytes),
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, image) = layout::asked(asked)?;
    let gradient = Gradient::from_name(asked.settings().choice("gradient")?).unwrap_or_default();
    let op = Sobel::new(image).gradient(gradient).variant(asked.variant());
    let output = input.shape().to_vec();
    layout::built(asked, op, input, output)
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut forms: Vec<_> = Gradient::ALL.map(|g| ([50, 40, 1], g)).to_vec();
    let others = [[50, 41, 1], [50, 40, 2], [50, 40, 3], [50, 41, 3], [50, 40, 4]];
    forms.extend(others.map(|image| (image, Gradient::Magnitude)));
    let mut programs = Vec::new();
    for (image, gradient) in forms {
        let sobel = Sobel::new(image).gradient(gradient).variant(variant);
        programs.push(Op::<u8>::lower(&sobel, profile)?);
        programs.push(Op::<f32>::lower(&sobel, profile)?);
        programs.push(Op::<f16>::lower(&sobel, profile)?);
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
