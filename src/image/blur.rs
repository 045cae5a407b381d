use super::Image;
use super::layout::{self, INPUT, LAYOUT, TYPES};
use crate::analysis::Axis;
use crate::conv::{Boundary, FilterLines, LinesForm, LinesParams, source, target};
use crate::dense::predict::Rates;
use crate::program::prelude::*;

/// The divisor of the sum of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Divide {
    /// The number of pixels of the window inside the image; u8 results are rounded half up.
    #[default]
    Inside,
    /// The number of pixels of the whole window, with 0 outside the image; u8 results are truncated, as in the teaching
    /// kernel.
    Window,
}

impl Divide {
    /// All values.
    pub const ALL: [Divide; 2] = [Self::Inside, Self::Window];

    /// Returns the name, as on the command line of the `op` example.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Window => "window",
        }
    }

    /// Returns the divisor of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.name() == name)
    }
}

/// Averages each neighbourhood: `output[y, x]` is the mean of `input` over the window of `2 radius + 1` pixels a
/// side around `(y, x)`, each channel by itself.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[9u8, 0, 0, 0, 9, 0, 0, 0, 9])?, gpu.alloc::<u8>(9)?);
/// let blur = Blur::new([3, 3], 1).plan::<u8>(&gpu)?;
/// let mut rec = gpu.recorder();
/// blur.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [5, 3, 2, 3, 3, 3, 2, 3, 5]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` and `output` are the [`Image`]; any extent may be 0, and the window may be larger than the image. The
/// two must be different wgpu buffers.
///
/// # Types, precision and determinism
/// u8 in integers, divided as [`divide`](Self::divide) says: every variant and device gives the same bytes. f32
/// and f16: sums in f32, in an order that depends on the variant, divided by the same number of pixels; f16 is
/// rounded once, to nearest, ties to even. The same device gives the same bits. Pillow's `BoxBlur` and OpenCV's `blur`
/// repeat the edge instead of leaving out pixels outside the image. NaN and infinities propagate as in f32 arithmetic,
/// to the results they are a term of.
///
/// # Cost
/// `(2 radius + 1)^2` additions an element with `naive` and `tiled`, `4 radius + 2` with `fused` and `register`,
/// about 5 with `separable` on bytes. One dispatch; `separable` takes two, and 4 bytes of scratch an element.
///
/// # Variants
/// `naive`; `tiled` (radius up to 16 of one channel, in 16 KiB of workgroup memory); `separable`; `fused` (sums
/// along rows and columns in one kernel, by tiles; radius up to 10 or, with 48 KiB, 32); `register` (the same in
/// registers; rows of a multiple of 4 elements, radius up to 7, or 2 on software drivers). `auto` (the default) takes
/// `register` if it fits, then `fused` up to radius 8 (never on software drivers), then `separable`, and `naive` if the
/// sums along rows are above the largest binding.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): pixels with more than 4 channels or none, or an
///   unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an image above the largest binding or buffer, or a radius above
///   1448, whose sums do not fit 32 bits.
/// - [`Unsupported`](ErrorKind::Unsupported): elements of another type than u8, f16 and f32, or a variant that
///   does not fit this image or radius.
///
/// # Algorithm
/// `shaders/image/blur_naive.wgsl`: the definition. `blur_tiled.wgsl`: a tile and its halo in workgroup memory.
/// `blur_rows.wgsl` and `blur_columns.wgsl`: running sums along rows, then along columns; floats, whose running
/// sums would drift, use `shaders/conv/lines_x.wgsl` and `lines_yz.wgsl`. `fused`: `lines_tiled.wgsl`; `register`:
/// `lines_register.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blur {
    pub(crate) image: Image,
    pub(crate) radius: usize,
    pub(crate) divide: Divide,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "each element reads its whole window from memory"),
    Variant::portable("tiled", "a tile and its halo in workgroup memory"),
    Variant::portable("separable", "sums along rows, then along columns; running sums for bytes"),
    Variant::portable("fused", "rows and columns by tiles in one dispatch, sums along rows in workgroup memory"),
    Variant::portable("register", "rows and columns in one dispatch, sums in registers"),
];

const WORKGROUP_SIZE: usize = 256;
const TILE: usize = 32;
/// Rows that a thread of `separable` walks down.
const ROWS: usize = 16;
/// The largest radius whose doubled sum fits 32 bits: `511 (2 r + 1)^2 < 2^32`.
const MAX_RADIUS: usize = 1448;
/// The largest radius whose sums of bytes are exact in f32: `255 (2 r + 1)^2 < 2^24`.
const MAX_EXACT: usize = 127;
/// The largest radius for which every driver runs the loops over four windows to their end.
const MAX_EVERYWHERE: usize = 60;
const _: () = assert!(runs_everywhere(4 * (2 * MAX_EVERYWHERE + 2).pow(2)));

impl Blur {
    /// Blurs an image by windows of `2 radius + 1` pixels a side.
    pub fn new(image: impl Into<Image>, radius: usize) -> Self {
        Self { image: image.into(), radius, divide: Divide::Inside, variant: "auto".into() }
    }

    /// Sets the divisor of sums. The default is [`Divide::Inside`].
    #[must_use]
    pub fn divide(mut self, divide: Divide) -> Self {
        self.divide = divide;
        self
    }

    variants!(variant);

    /// Returns the sums of windows as products of lines of ones.
    fn lines(&self, dtype: DType) -> FilterLines {
        let line = vec![1.0; 2 * self.radius + 1];
        FilterLines {
            extents: self.image.extents(),
            step: self.image.step(),
            lines: [vec![1.0], line.clone(), line],
            boundary: Boundary::Zero,
            finish: self.mean(Spec::new(), dtype).slot("finish", Fragment::Library("image/blur_finish")),
        }
    }

    /// Adds to `spec` the conversion of sums to means.
    fn mean(&self, spec: Spec, dtype: DType) -> Spec {
        let bytes = dtype == DType::U8;
        spec.flag("WINDOW", self.divide == Divide::Window)
            .flag("BYTES", bytes)
            .alias("Total", if bytes { "vec4<u32>" } else { "vec4<f32>" })
            .constant("STEP", self.image.step() as u32)
    }

    /// Returns the bytes of the row sums of `separable`.
    fn scratch(&self) -> u64 {
        let [d, h, w] = self.image.extents();
        16 * (w.div_ceil(4) * h * d) as u64
    }

    fn policy(&self, dtype: DType, profile: &DeviceProfile) -> (&'static str, String) {
        let (radius, serial) = (self.radius, profile.quirks.serial_workgroups);
        let fits = |variant: &&str| self.missing(variant, dtype, profile).is_none();
        if !serial {
            // 38 shapes on an H100 (Vulkan, driver 580.159.04), radius 1 to 8: the choice is the fastest of all.
            let rates = Rates::of(profile);
            let seconds = |variant: &str| self.seconds(variant, dtype, &rates);
            let all = ["register", "tiled", "fused", "separable"].into_iter().filter(fits);
            let best = all.min_by(|a, b| seconds(a).total_cmp(&seconds(b)));
            return match best {
                Some(variant) => (variant, format!("predicted {:.1} us", seconds(variant) * 1e6)),
                None => ("naive", "no other variant fits the radius and the largest binding".to_owned()),
            };
        }
        if fits(&"register") {
            ("register", format!("radius {radius}: short enough to unroll every sum"))
        } else if fits(&"separable") {
            ("separable", format!("radius {radius}: few operations an element at any radius"))
        } else if fits(&"fused") {
            ("fused", "the row sums of the image are above the largest binding".to_owned())
        } else {
            ("naive", "no other variant fits the radius and the largest binding".to_owned())
        }
    }

    /// Predicts the seconds of a variant: what a thread waits for, and the bytes whose time an element takes, by the
    /// side of the window.
    fn seconds(&self, variant: &str, dtype: DType, rates: &Rates) -> f64 {
        let (radius, [d, h, w]) = (self.radius as f64, self.image.extents());
        let side = 2.0 * radius + 1.0;
        let (wait, bytes) = match variant {
            "register" => (8.5e-6, 6.3 + 0.5 * side),
            "tiled" => (6.0e-6, 6.9 + 1.4 * side),
            "fused" => ((11.0 + 3.3 * radius) * 1e-6, 8.4 + 3.2 * side),
            _ if dtype == DType::U8 => (20e-6, 12.6),
            _ => (20e-6, 22.5 + 1.5 * side),
        };
        wait + rates.pass((d * h * w) as f64 * bytes)
    }

    /// Returns the requirement of the variant that the image or device does not meet, if any.
    fn missing(&self, variant: &str, dtype: DType, profile: &DeviceProfile) -> Option<String> {
        let (radius, halo) = (self.radius, self.radius * self.image.step());
        let (needed, there) =
            (4 * (TILE + 2 * halo) * (TILE + 2 * radius), profile.limits.max_workgroup_bytes as usize);
        let binding = profile.limits.max_storage_binding;
        match variant {
            "register" | "fused" if dtype == DType::U8 && radius > MAX_EXACT => {
                Some(format!("sums of bytes that f32 holds exactly, up to radius {MAX_EXACT}"))
            }
            "register" => self.lines(dtype).missing(LinesForm::Register, dtype, profile),
            "fused" => self.lines(dtype).missing(LinesForm::Tiled, dtype, profile),
            "separable" if dtype != DType::U8 => self.lines(dtype).missing(LinesForm::Passes, dtype, profile),
            "separable" if self.scratch() > binding => {
                Some(format!("{} bytes of scratch in one binding (at most {binding})", self.scratch()))
            }
            "tiled" if needed > there => {
                Some(format!("{needed} bytes of workgroup memory for a tile and its halo (there are {there})"))
            }
            "naive" | "tiled" if radius > MAX_EVERYWHERE && profile.ends_loops() => Some(format!(
                "a driver that runs more than {} loop rounds of a thread (radius {radius})",
                profile.max_rounds()
            )),
            _ => None,
        }
    }

    fn kernel(&self, file: &'static str, entry: &'static str, dtype: DType) -> Kernel {
        let whole = self.image.extents()[2].is_multiple_of(4);
        let spec = source(target(self.mean(Spec::new(), dtype), dtype, whole), dtype);
        Kernel::library(file, entry, spec)
    }

    fn dispatch(&self, dtype: DType, profile: &DeviceProfile, program: &mut Program) {
        let [d, h, w] = self.image.extents();
        let groups = w.div_ceil(4);
        let operands: Vec<_> = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        let radius = self.radius as u32;
        let params =
            LinesParams { radius_x: radius, radius_y: radius, ..LinesParams::of([d, h, w], self.image.step()) };
        let each = |work: usize| Grid::fold(work.div_ceil(WORKGROUP_SIZE) as u64);
        match program.variant() {
            "naive" => {
                let kernel = self.kernel("image/blur_naive", "blur_naive", dtype);
                let kernel = program.kernel(Kernel { spec: kernel.spec.flag("ZERO", true), ..kernel });
                let work = groups * h * d;
                program.dispatch(kernel, &LinesParams { tiles: work as u32, ..params }, operands, each(work));
            }
            "tiled" => {
                let kernel = self.kernel("image/blur_tiled", "blur_tiled", dtype);
                let spec = kernel.spec.constant("TILE", TILE as u32).constant("RADIUS", radius);
                let axis = Axis::inside(TILE as u64, 2 * self.radius as u64 + 1);
                let reuse = Axis::reuse(&[axis; 2]);
                program.decision.because(format_args!("tile of {TILE} x {TILE}: reuse {reuse:.2}"));
                let (tiles_x, tiles_y) = (w.div_ceil(TILE), h.div_ceil(TILE));
                let tiles = tiles_x * tiles_y * d;
                let params =
                    LinesParams { tiles_x: tiles_x as u32, tiles_y: tiles_y as u32, tiles: tiles as u32, ..params };
                let kernel = program.kernel(Kernel { spec, ..kernel });
                program.dispatch(kernel, &params, operands, Grid::fold(tiles as u64));
            }
            "separable" if dtype == DType::U8 => {
                let sums = program.scratch(self.scratch());
                let spec = Spec::new().flag("ZERO", true).flag("STEPPED", self.image.step() > 1);
                let rows = program.kernel(Kernel::of_file("image/blur_rows", spec));
                let work = groups * h * d;
                let of_rows = LinesParams { tiles: work as u32, ..params };
                program.dispatch(rows, &of_rows, vec![operands[0], sums], each(work));
                let spec =
                    self.mean(Spec::new(), dtype).constant("ROWS", ROWS as u32).flag("VECTORS", w.is_multiple_of(4));
                let columns = program.kernel(Kernel::of_file("image/blur_columns", spec));
                let work = groups * h.div_ceil(ROWS) * d;
                let of_columns = LinesParams { tiles: work as u32, ..params };
                program.dispatch(columns, &of_columns, vec![sums, operands[1]], each(work));
            }
            "separable" => self.lines(dtype).dispatch(LinesForm::Passes, profile, program),
            "fused" => self.lines(dtype).dispatch(LinesForm::Tiled, profile, program),
            _ => self.lines(dtype).dispatch(LinesForm::Register, profile, program),
        }
    }
}

operands! {
    impl[T: Element,] Blur, T {
        fn record(input: T, output: T);
    }
}

impl<T: Element> Op<T> for Blur {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let (dtype, image) = (T::DTYPE, &self.image);
        let name = format!("blur of {} by radius {}", image.name(), self.radius);
        let operands = image.operands(&name, dtype, image.channels, profile)?;
        if self.radius > MAX_RADIUS {
            return Err(err!(
                TooLarge,
                "{name}: the maximum radius is {MAX_RADIUS}, above which sums do not fit 32 bits; blur twice"
            ));
        }
        let (variant, decision) = choose("blur", &self.variant, VARIANTS, profile, || self.policy(dtype, profile))?;
        let len = operands[0].len;
        if let Some(what) = self.missing(variant.name, dtype, profile).filter(|_| len > 0) {
            return Err(err!(
                Unsupported,
                "{name}: the variant `{}` needs {what}; use another variant on {}, or blur chunks of rows",
                variant.name,
                profile.name
            ));
        }
        let mut program = Program::new("blur", decision);
        let side = 2.0 * self.radius as f64 + 1.0;
        let additions = match variant.name {
            "naive" | "tiled" => side * side,
            "separable" if dtype == DType::U8 => 5.0,
            _ => 2.0 * side,
        };
        program.cost = Cost::of(len as f64 * additions, &operands);
        program.operands = operands;
        if len > 0 {
            self.dispatch(dtype, profile, &mut program);
        }
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "blur",
    about: "the mean of each pixel's surroundings",
    inputs: &[INPUT],
    outputs: &[("output", "as input")],
    types: TYPES,
    options: &[
        Setting::number("radius", "1"),
        Setting::word("divide", || Divide::ALL.map(Divide::name).to_vec()),
        LAYOUT,
    ],
    make: Some(make),
    variants: Blur::variants,
    samples,
    comparison: Some(Comparison::RoundedBytes),
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, image) = layout::asked(asked)?;
    let settings = asked.settings();
    let divide = Divide::from_name(settings.choice("divide")?).unwrap_or_default();
    let op = Blur::new(image, settings.number("radius")?).divide(divide).variant(asked.variant());
    let output = input.shape().to_vec();
    layout::built(asked, op, input, output)
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut images = vec![Image::grey([50, 40]), Image::rgb([50, 40]), Image::rgb([50, 40]).planar()];
    if variant != "register" {
        images.push(Image::rgb([50, 41]));
        images.push(Image::grey([50, 41]));
    }
    let mut programs = Vec::new();
    for (image, divide) in images.into_iter().flat_map(|i| Divide::ALL.map(|d| (i, d))) {
        let blur = Blur::new(image, 2).divide(divide).variant(variant);
        programs.push(Op::<u8>::lower(&blur, profile)?);
        programs.push(Op::<f32>::lower(&blur, profile)?);
        programs.push(Op::<f16>::lower(&blur, profile)?);
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
