use super::Image;
use super::layout::{self, INPUT, LAYOUT, TYPES};
use crate::conv::{Boundary, FilterLines, LinesForm};
use crate::program::prelude::*;

/// Blurs an image by a Gaussian: `output[y, x] = sum over j, i of input[y + j, x + i] g(j) g(i)`, each channel by
/// itself, where `g(i)` is `exp(-i^2 / (2 sigma^2))`, scaled to the sum 1, and `|i|, |j| <= radius`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[0.0f32, 1.0, 0.0])?, gpu.alloc::<f32>(3)?);
/// let soft = Gaussian::new([1, 3], 1.0).radius(1).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// soft.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert!((y.read()?[1] - 0.4519).abs() < 1e-4);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` and `output` are the [`Image`]; any extent may be 0, and the window may be larger than the image. The
/// two must be different wgpu buffers.
///
/// # Radius and boundary
/// The radius is `floor(4 sigma + 0.5)` or [`radius`](Self::radius). The nearest pixel is repeated outside the
/// image, unless [`boundary`](Self::boundary) says otherwise. The defaults are those of `gaussian` of scikit-image,
/// of `gaussian_filter` of SciPy with `mode="nearest"`, and of `GaussianBlur` of OpenCV with `BORDER_REPLICATE` and
/// this radius.
///
/// # Types, precision and determinism
/// f32, f16 and u8. Weights are rounded to f32, and products summed in f32, along x and then along y, without rounding
/// to u8 between (`naive`: by rows). u8 and f16 are rounded at the end, to nearest, ties to even. The same device gives
/// the same bits, for each variant. NaN and infinities propagate as in f32 arithmetic, to the results they are a term
/// of.
///
/// # Cost
/// `8 radius + 4` operations an element. One dispatch, no scratch; `passes` takes two, and 4 bytes of scratch an
/// element.
///
/// # Variants
/// `naive`, `passes`, `fused` (radius up to 10, or 32 with 48 KiB of workgroup memory) and `register` (rows of a
/// multiple of 4 elements, radius up to 7, or 2 on software drivers). `auto` (the default) takes the last of these that
/// fits; on software drivers `passes` before `fused`, and `naive` if the sums are above the largest binding.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a sigma that is not above 0 and finite, pixels with
///   more than 4 channels or none, or an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an image above the largest binding or buffer, or a radius above
///   1022.
/// - [`Unsupported`](ErrorKind::Unsupported): elements of another type than u8, f16 and f32, or a variant that
///   does not fit the image.
///
/// # Algorithm
/// The weights of the plane are products of those of two lines. `shaders/image/gaussian_naive.wgsl`: the
/// definition. `shaders/conv/lines_x.wgsl`, `lines_yz.wgsl`: a dispatch an axis; `lines_tiled.wgsl`: both in one,
/// by tiles; `lines_register.wgsl`: both in registers.
#[derive(Debug, Clone, PartialEq)]
pub struct Gaussian {
    pub(crate) image: Image,
    pub(crate) sigma: f64,
    pub(crate) radius: Option<usize>,
    pub(crate) boundary: Boundary,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "each element reads its whole window from memory"),
    Variant::portable("passes", "sums along rows, then along columns, a dispatch each"),
    Variant::portable("fused", "rows and columns by tiles in one dispatch, sums along rows in workgroup memory"),
    Variant::portable("register", "rows and columns in one dispatch, sums in registers"),
];

/// The largest radius: twice its weights fit a uniform.
const MAX_RADIUS: usize = 1022;
/// The largest radius for which every driver runs the loops over a window to their end.
const MAX_EVERYWHERE: usize = 120;
const _: () = assert!(runs_everywhere((2 * MAX_EVERYWHERE + 2).pow(2)));

impl Gaussian {
    /// Blurs an image by a standard deviation in pixels.
    pub fn new(image: impl Into<Image>, sigma: f64) -> Self {
        Self { image: image.into(), sigma, radius: None, boundary: Boundary::Clamp, variant: "auto".into() }
    }

    /// Sets the radius of the window in pixels. The default is `floor(4 sigma + 0.5)`.
    #[must_use]
    pub fn radius(mut self, radius: usize) -> Self {
        self.radius = Some(radius);
        self
    }

    /// Sets the pixels outside the image. The default is [`Boundary::Clamp`].
    #[must_use]
    pub fn boundary(mut self, boundary: Boundary) -> Self {
        self.boundary = boundary;
        self
    }

    variants!(variant);

    pub(crate) fn reach(&self) -> usize {
        self.radius.unwrap_or((4.0 * self.sigma + 0.5) as usize)
    }

    pub(crate) fn weights(&self) -> Vec<f64> {
        let radius = self.reach() as i32;
        let raw: Vec<f64> = (-radius..=radius).map(|i| (-0.5 * (f64::from(i) / self.sigma).powi(2)).exp()).collect();
        let total: f64 = raw.iter().sum();
        raw.into_iter().map(|w| w / total).collect()
    }

    fn check(&self, name: &str) -> Result<()> {
        if !(self.sigma > 0.0 && self.sigma.is_finite()) {
            return Err(err!(
                InvalidArgument,
                "{name}: sigma is not above 0 and finite; give the standard deviation in pixels"
            ));
        }
        let reach = self.reach();
        if reach > MAX_RADIUS {
            return Err(err!(
                TooLarge,
                "{name}: the radius {reach} is above {MAX_RADIUS}, the maximum whose weights fit a uniform; blur a \
                 smaller image, or twice by sigma / sqrt(2)"
            ));
        }
        Ok(())
    }

    fn policy(&self, lines: &FilterLines, dtype: DType, profile: &DeviceProfile) -> (&'static str, String) {
        match lines.best(dtype, profile) {
            Some((form, why)) => (form.name(), format!("radius {}: {why}", self.reach())),
            None => ("naive", "the sums along rows are above the largest binding".into()),
        }
    }
}

operands! {
    impl[T: Element,] Gaussian, T {
        fn record(input: T, output: T);
    }
}

impl<T: Element> Op<T> for Gaussian {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let (dtype, image) = (T::DTYPE, &self.image);
        let name = format!("gaussian of {} by sigma {}", image.name(), self.sigma);
        let operands = image.operands(&name, dtype, image.channels, profile)?;
        self.check(&name)?;
        let line: Vec<f32> = self.weights().into_iter().map(|w| w as f32).collect();
        let lines = FilterLines {
            extents: image.extents(),
            step: image.step(),
            lines: [vec![1.0], line.clone(), line],
            boundary: self.boundary,
            finish: Spec::new(),
        };
        let (variant, decision) =
            choose("gaussian", &self.variant, VARIANTS, profile, || self.policy(&lines, dtype, profile))?;
        let mut program = Program::new("gaussian", decision);
        let len = operands[0].len;
        program.cost = Cost::of(lines.flop() * len as f64, &operands);
        program.operands = operands;
        let form = LinesForm::from_name(variant.name);
        let missing = match form {
            Some(form) => lines.missing(form, dtype, profile),
            None if self.reach() > MAX_EVERYWHERE && profile.ends_loops() => Some(format!(
                "a driver that runs more than {} loop rounds of a thread (radius {})",
                profile.max_rounds(),
                self.reach()
            )),
            None => None,
        };
        if let Some(what) = missing.filter(|_| len > 0) {
            return Err(err!(
                Unsupported,
                "{name}: the variant `{}` needs {what}; use another variant on {}, or blur chunks of rows",
                variant.name,
                profile.name
            ));
        }
        match form {
            _ if len == 0 => {}
            Some(form) => lines.dispatch(form, profile, &mut program),
            None => lines.by_windows("image/gaussian_naive", "gaussian_naive", &mut program),
        }
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "gaussian",
    about: "each pixel's surroundings, weighted by a bell curve",
    inputs: &[INPUT],
    outputs: &[("output", "as input")],
    types: TYPES,
    options: &[
        Setting::number("sigma", "1"),
        Setting::number("radius", ""),
        Setting::word("boundary", boundaries),
        LAYOUT,
    ],
    make: Some(make),
    variants: Gaussian::variants,
    samples,
    comparison: Some(Comparison::RoundedBytes),
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, image) = layout::asked(asked)?;
    let settings = asked.settings();
    let op = Gaussian {
        radius: settings.maybe("radius")?,
        boundary: Boundary::asked(settings)?,
        ..Gaussian::new(image, settings.number("sigma")?).variant(asked.variant())
    };
    let output = input.shape().to_vec();
    layout::built(asked, op, input, output)
}

/// Returns the names of the boundaries, the default first.
pub(super) fn boundaries() -> Vec<&'static str> {
    let mut all = Boundary::ALL;
    all.sort_by_key(|boundary| *boundary != Boundary::Clamp);
    all.map(Boundary::name).to_vec()
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut forms: Vec<_> = Boundary::ALL.map(|b| (Image::rgb([50, 40]), b)).to_vec();
    let others = [Image::grey([50, 40]), Image::new([50, 40], 2), Image::rgba([50, 40]), Image::rgb([50, 40]).planar()];
    forms.extend(others.map(|image| (image, Boundary::Clamp)));
    if variant != "register" {
        forms.push((Image::rgb([50, 41]), Boundary::Clamp));
    }
    let mut programs = Vec::new();
    for (image, boundary) in forms {
        let op = Gaussian::new(image, 0.5).boundary(boundary).variant(variant);
        programs.push(Op::<f32>::lower(&op, profile)?);
        programs.push(Op::<f16>::lower(&op, profile)?);
        programs.push(Op::<u8>::lower(&op, profile)?);
    }
    Ok(programs)
}
