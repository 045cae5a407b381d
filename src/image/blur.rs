//! Box blur.

use super::Image;
use super::layout::{self, INPUT, LAYOUT, TYPES};
use crate::analysis::Axis;
use crate::conv::{Boundary, FilterLines, LinesForm, LinesParams};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::fit::runs_everywhere;
use crate::program::{
    Asked, Binding, Comparison, Cost, DeviceProfile, Form, Grid, Kernel, Op, Operation, Program, Setting,
    Variant, choose, operands,
};
use crate::shader::{Fragment, Spec};

/// What a sum of pixels is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Divide {
    /// The number of pixels of the window that lie inside the image; of u8 rounded half up.
    #[default]
    Inside,
    /// The number of pixels of the whole window, as if 0 lay outside; of u8 truncated: the teaching kernel.
    Window,
}

impl Divide {
    /// All of them.
    pub const ALL: [Divide; 2] = [Self::Inside, Self::Window];

    /// Name, as on the command line of the `op` example.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Window => "window",
        }
    }

    /// The rule of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.name() == name)
    }
}

/// `output[y, x]` = the mean of `input` over the window of `2 radius + 1` pixels a side around `(y, x)`, each channel by
/// itself.
///
/// # Shapes
/// `input` and `output` are the [`Image`]; any extent may be 0, and the window may be larger than the image. The two
/// must be different wgpu buffers.
///
/// # Types, precision and determinism
/// u8 in integers, divided as [`divide`](Self::divide) says: every variant and device gives the same bytes. f32: sums of
/// f32 in an order that depends on the variant, by the same number of pixels; the same device gives the same bits.
/// Pillow's `BoxBlur` and OpenCV's `blur` repeat the edge instead of leaving out what lies outside.
/// NaN and infinities go the way of f32 arithmetic: they reach what they are a term of, and nothing else.
///
/// # Cost
/// `(2 radius + 1)^2` additions an element with `naive` and `tiled`, `4 radius + 2` with `fused` and `register`, about 5 of
/// bytes with `separable`. One dispatch; `separable` two, and 4 bytes an element of scratch.
///
/// # Variants
/// `naive`; `tiled` (radius up to 16 of one channel and 16 KiB of workgroup memory); `separable`; `fused` (both lines of
/// the window in one kernel, by tiles; radius up to 10 or, with 48 KiB, 32); `register` (the same in registers; rows of a
/// multiple of 4 elements, radius up to 7, on processors 2). `auto` (the default) takes `register`, where it does not
/// fit `fused` up to radius 8, then `separable`; on processors `fused` never; `naive` where the sums along rows are
/// above the largest binding.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): pixels of other than 1 to 4 channels, an unknown variant;
/// [`TooLarge`](crate::ErrorKind::TooLarge): an image above the largest binding or buffer, or a radius above 1448, whose
/// sums do not fit 32 bits; [`Unsupported`](crate::ErrorKind::Unsupported): elements of another type than u8 and f32, or
/// a variant that this image or radius does not fit.
///
/// # Algorithm
/// `shaders/image/blur_naive.wgsl`: the definition. `blur_tiled.wgsl`: a tile and its halo in workgroup memory.
/// `blur_rows.wgsl` and `blur_columns.wgsl`: sums along rows, then of those along columns, each from the one before; of
/// floats, whose sums would drift, `shaders/conv/lines_x.wgsl` and `lines_yz.wgsl`. `fused`: `lines_tiled.wgsl`;
/// `register`: `lines_register.wgsl`.
///
/// # Example
/// ```
/// use tilework::image::{Blur, Divide, Image};
/// use tilework::program::{DeviceProfile, Op};
///
/// let blur = Blur::new([1080, 1920], 10).divide(Divide::Window);
/// let program = Op::<u8>::lower(&blur, &DeviceProfile::h100())?;
/// assert_eq!((program.variant(), program.dispatches.len()), ("separable", 2));
/// let colours = Blur::new(Image::rgb([1080, 1920]).planar(), 2);
/// assert_eq!(Op::<f32>::lower(&colours, &DeviceProfile::h100())?.variant(), "register");
/// # Ok::<(), tilework::Error>(())
/// ```
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
    Variant::portable("separable", "sums along rows, then along columns; of bytes each from the one before"),
    Variant::portable("fused", "both by tiles in one dispatch, sums along rows in workgroup memory"),
    Variant::portable("register", "both in one dispatch, sums in registers"),
];

const WORKGROUP_SIZE: usize = 256;
/// Side of a tile of `tiled`.
const TILE: usize = 32;
/// Rows that an invocation of `separable` walks down.
const ROWS: usize = 16;
/// The largest radius whose doubled sum fits 32 bits: `511 (2 r + 1)^2 < 2^32`.
const MAX_RADIUS: usize = 1448;
/// The largest radius whose sums of bytes are exact in f32: `255 (2 r + 1)^2 < 2^24`.
const MAX_EXACT: usize = 127;
/// The largest radius of `fused` that `auto` takes: above, sums that follow from each other are cheaper.
const MAX_FUSED: usize = 8;
/// The largest radius of four windows, one after another, whose loops every driver runs to their end.
const MAX_EVERYWHERE: usize = 60;
const _: () = assert!(runs_everywhere(4 * (2 * MAX_EVERYWHERE + 2).pow(2)));

impl Blur {
    /// Of an image, by windows of `2 radius + 1` pixels a side.
    pub fn new(image: impl Into<Image>, radius: usize) -> Self {
        Self { image: image.into(), radius, divide: Divide::Inside, variant: "auto".into() }
    }

    /// What sums are divided by. The default is [`Divide::Inside`].
    #[must_use]
    pub fn divide(mut self, divide: Divide) -> Self {
        self.divide = divide;
        self
    }

    /// Runs the variant of this name instead of `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.variant);
        self
    }

    /// Every way to run it.
    pub fn variants() -> &'static [Variant] {
        VARIANTS
    }

    /// The sums of the windows, as products of lines of ones.
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

    /// How sums become means.
    fn mean(&self, spec: Spec, dtype: DType) -> Spec {
        let bytes = dtype == DType::U8;
        spec.flag("WINDOW", self.divide == Divide::Window)
            .flag("BYTES", bytes)
            .alias("Total", if bytes { "vec4<u32>" } else { "vec4<f32>" })
            .constant("STEP", self.image.step() as u32)
    }

    /// Bytes of the row sums of `separable`.
    fn scratch(&self) -> u64 {
        let [d, h, w] = self.image.extents();
        16 * (w.div_ceil(4) * h * d) as u64
    }

    fn policy(&self, dtype: DType, profile: &DeviceProfile) -> (&'static str, String) {
        let (radius, serial) = (self.radius, profile.quirks.serial_workgroups);
        let fits = |variant: &str| self.missing(variant, dtype, profile).is_none();
        if fits("register") {
            ("register", format!("radius {radius}: short enough to write every sum out"))
        } else if fits("fused") && !serial && radius <= MAX_FUSED {
            (
                "fused",
                format!("radius {radius}: a tile with the rows above and below it fits workgroup memory"),
            )
        } else if fits("separable") {
            ("separable", format!("radius {radius}: few operations an element, however many pixels"))
        } else if fits("fused") {
            ("fused", "the row sums of the image are above the largest binding".to_owned())
        } else {
            ("naive", "nothing else fits the radius and the largest binding".to_owned())
        }
    }

    /// What the variant needs that is not there, if anything.
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
            "separable" if dtype == DType::F32 => {
                self.lines(dtype).missing(LinesForm::Passes, dtype, profile)
            }
            "separable" if self.scratch() > binding => {
                Some(format!("{} bytes of scratch in one binding (at most {binding})", self.scratch()))
            }
            "tiled" if needed > there => Some(format!(
                "{needed} bytes of workgroup memory for a tile and its halo (there are {there})"
            )),
            "naive" | "tiled" if radius > MAX_EVERYWHERE && profile.ends_loops() => Some(format!(
                "a driver that does not end the loops of an invocation after {} rounds (radius {radius})",
                profile.max_rounds()
            )),
            _ => None,
        }
    }

    /// A kernel of the image's own family.
    fn kernel(&self, file: &'static str, entry: &'static str, dtype: DType) -> Kernel {
        let bytes = dtype == DType::U8;
        let fragment =
            |of: &'static str, else_: &'static str| Fragment::Library(if bytes { of } else { else_ });
        let spec = self
            .mean(Spec::new(), dtype)
            .flag("VECTORS", self.image.extents()[2].is_multiple_of(4))
            .slot("source", fragment("conv/stencil_bytes_in", "conv/lines_floats_in"))
            .slot("target", fragment("conv/stencil_bytes_out", "conv/lines_floats_out"));
        Kernel::library(file, entry, spec)
    }

    fn dispatch(&self, dtype: DType, profile: &DeviceProfile, program: &mut Program) {
        let [d, h, w] = self.image.extents();
        let groups = w.div_ceil(4);
        let operands: Vec<_> = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        let radius = self.radius as u32;
        let params = LinesParams {
            radius_x: radius,
            radius_y: radius,
            ..LinesParams::of([d, h, w], self.image.step())
        };
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
                let params = LinesParams {
                    tiles_x: tiles_x as u32,
                    tiles_y: tiles_y as u32,
                    tiles: tiles as u32,
                    ..params
                };
                let kernel = program.kernel(Kernel { spec, ..kernel });
                program.dispatch(kernel, &params, operands, Grid::fold(tiles as u64));
            }
            "separable" if dtype == DType::U8 => {
                let sums = program.scratch(self.scratch());
                let spec = Spec::new().flag("ZERO", true).flag("STEPPED", self.image.step() > 1);
                let rows = program.kernel(Kernel::library("image/blur_rows", "blur_rows", spec));
                let work = groups * h * d;
                let of_rows = LinesParams { tiles: work as u32, ..params };
                program.dispatch(rows, &of_rows, vec![operands[0], sums], each(work));
                let spec = self
                    .mean(Spec::new(), dtype)
                    .constant("ROWS", ROWS as u32)
                    .flag("VECTORS", w.is_multiple_of(4));
                let columns = program.kernel(Kernel::library("image/blur_columns", "blur_columns", spec));
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
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let (dtype, image) = (T::DTYPE, &self.image);
        let name = format!("blur of {} by radius {}", image.name(), self.radius);
        let operands = image.operands(&name, dtype, image.channels, profile)?;
        if self.radius > MAX_RADIUS {
            return Err(err!(
                TooLarge,
                "{name}: the radius is above {MAX_RADIUS}, beyond which sums do not fit 32 bits; blur twice"
            ));
        }
        let (variant, decision) =
            choose("blur", &self.variant, VARIANTS, profile, || self.policy(dtype, profile))?;
        let len = operands[0].len;
        if let Some(what) = self.missing(variant.name, dtype, profile).filter(|_| len > 0) {
            return Err(err!(
                Unsupported,
                "{name}: the variant `{}` needs {what}; take another on {}, or work on bands of rows",
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
        let bytes = operands.iter().map(|o| o.bytes() as f64).sum();
        program.cost = Cost { flop: len as f64 * additions, bytes };
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

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (input, image) = layout::asked(asked)?;
    let settings = asked.settings();
    let divide = Divide::from_name(settings.choice("divide")?).unwrap_or_default();
    let op = Blur::new(image, settings.number("radius")?).divide(divide).variant(asked.variant());
    let output = input.shape().to_vec();
    layout::form(asked, op, input, output)
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
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_follows_device_and_radius() {
        let (h100, mesa) = (DeviceProfile::h100(), DeviceProfile::mesa());
        let chosen =
            |h, r, p: &DeviceProfile| Op::<u8>::lower(&Blur::new([h, 8000], r), p).map(|p| p.variant()).ok();
        assert_eq!(chosen(1000, 4, &h100), Some("register"));
        assert_eq!(chosen(1000, 8, &h100), Some("fused"));
        assert_eq!(chosen(1000, 9, &h100), Some("separable"));
        assert_eq!(chosen(1000, 1, &mesa), Some("register"));
        assert_eq!(chosen(1000, 9, &mesa), Some("separable"));
        // Row sums of 256 MB.
        assert_eq!(chosen(8000, 9, &mesa), Some("fused"));
        assert_eq!(chosen(8000, 61, &mesa), None);
    }
}
