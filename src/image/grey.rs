use super::layout::{self, INPUT, LAYOUT, TYPES};
use super::{Image, Layout};
use crate::program::prelude::*;

/// The weights of red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum GreyWeights {
    /// `(299 R + 587 G + 114 B + 500) / 1000`, for u8 in integers: ITU-R BT.601, rounded half up. OpenCV and
    /// Pillow round the weights first, and may differ by 1; scikit-image weighs by BT.709.
    #[default]
    Luma,
    /// `3 R / 10 + 6 G / 10 + B / 10`; for u8 each term is truncated.
    Source,
}

impl GreyWeights {
    /// All values.
    pub const ALL: [GreyWeights; 2] = [Self::Luma, Self::Source];

    /// Returns the name, as on the command line of the `op` example.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Luma => "luma",
            Self::Source => "source",
        }
    }

    /// Returns the weights of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|w| w.name() == name)
    }
}

/// Computes the brightness of each pixel: `output[p] = r R + g G + b B` of its first three channels; a fourth is
/// ignored.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (rgb, grey) = (gpu.upload(&[255u8, 0, 0, 255, 255, 255])?, gpu.alloc::<u8>(2)?);
/// let plan = Grey::new(Image::rgb([1, 2])).plan::<u8>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &rgb, &grey)?;
/// rec.submit()?;
/// assert_eq!(grey.read()?, [76, 255]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` is the [`Image`] of 3 or 4 channels, `output` is `h` x `w`; any extent may be 0. The two must be
/// different wgpu buffers.
///
/// # Types, precision and determinism
/// u8 in integers, by [`weights`](Self::weights): every variant and device gives the same bytes. f32 and
/// f16 by the same weights, in f32; f16 is rounded once. The same device gives the same bits. NaN and infinities
/// propagate as in f32 arithmetic.
///
/// # Cost
/// 5 operations a pixel. One dispatch, no scratch.
///
/// # Variants
/// `naive` reads byte by byte, `packed` words of four pixels; `auto` (the default) takes `packed`.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): pixels without 3 or 4 channels, or an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an image above the largest binding or buffer.
/// - [`Unsupported`](ErrorKind::Unsupported): elements of another type than u8, f16 and f32.
///
/// # Algorithm
/// `shaders/image/grey_naive.wgsl`, byte by byte; `grey_packed.wgsl`, three words to one; `grey_floats.wgsl`, one
/// or four words a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grey {
    pub(crate) image: Image,
    pub(crate) weights: GreyWeights,
    variant: String,
}

kernel_params! { struct GreyParams { pixels: u32, words: u32, step: u32, colour: u32 } }

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "reads each colour of each pixel by itself"),
    Variant::portable("packed", "turns the words of four pixels into one; four words of floats a thread"),
];

const WORKGROUP_SIZE: usize = 256;
/// Words of floats of a thread of `packed`.
const ITEMS: usize = 4;

impl Grey {
    /// Converts an image of 3 or 4 channels.
    pub fn new(image: impl Into<Image>) -> Self {
        Self { image: image.into(), weights: GreyWeights::Luma, variant: "auto".into() }
    }

    /// Sets the weights of red, green and blue. The default is [`GreyWeights::Luma`].
    #[must_use]
    pub fn weights(mut self, weights: GreyWeights) -> Self {
        self.weights = weights;
        self
    }

    variants!(variant);
}

operands! {
    impl[T: Element,] Grey, T {
        fn record(input: T, output: T);
    }
}

impl<T: Element> Op<T> for Grey {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let (dtype, image) = (T::DTYPE, &self.image);
        let name = format!("grey of {}", image.name());
        let operands = image.operands(&name, dtype, 1, profile)?;
        if image.channels < 3 {
            return Err(err!(
                InvalidArgument,
                "{name}: pixels of {} channels; red, green and blue need an image of 3 or 4 channels",
                image.channels
            ));
        }
        let (variant, decision) =
            choose("grey", &self.variant, VARIANTS, profile, || ("packed", "reads every word once".to_owned()))?;
        let mut program = Program::new("grey", decision);
        let (len, pixels) = (operands[0].len, operands[1].len);
        let bytes = (3 * pixels + pixels) * dtype.size();
        program.cost = Cost { flop: 5.0 * pixels as f64, bytes: bytes as f64 };
        program.operands = operands;
        if pixels > 0 {
            let planar = image.layout == Layout::Planar;
            let spec = Spec::new().flag("SOURCE", self.weights == GreyWeights::Source);
            let (kernel, each) = match (dtype, variant.name) {
                (DType::F32 | DType::F16, name) => {
                    let (items, halves) = (if name == "naive" { 1 } else { ITEMS }, dtype == DType::F16);
                    let spec = spec.constant("ITEMS", items as u32).flag("HALVES", halves);
                    (Kernel::of_file("image/grey_floats", spec), items * if halves { 2 } else { 1 })
                }
                (_, "naive") => (Kernel::of_file("image/grey_naive", spec), 4),
                _ => {
                    let spec = spec.flag("PLANAR", planar);
                    let spec = if planar { spec } else { spec.flag("ALPHA", image.channels == 4) };
                    (Kernel::of_file("image/grey_packed", spec), 4)
                }
            };
            let kernel = program.kernel(kernel);
            let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
            let params = GreyParams {
                pixels: pixels as u32,
                words: len.div_ceil(4) as u32,
                step: image.step() as u32,
                colour: if planar { pixels as u32 } else { 1 },
            };
            let groups = pixels.div_ceil(each).div_ceil(WORKGROUP_SIZE);
            program.dispatch(kernel, &params, bindings, Grid::fold(groups as u64));
        }
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "grey",
    about: "the brightness of RGB pixels",
    inputs: &[Input::new(INPUT.name, "(h, w, c), c = 3 or 4; (c, h, w) with layout planar")],
    outputs: &[("output", "(h, w)")],
    types: TYPES,
    options: &[Setting::word("weights", || GreyWeights::ALL.map(GreyWeights::name).to_vec()), LAYOUT],
    make: Some(make),
    variants: Grey::variants,
    samples,
    comparison: Some(Comparison::RoundedBytes),
    example: Example { shape: &[8, 8, 3], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, image) = layout::asked(asked)?;
    let weights = GreyWeights::from_name(asked.settings().choice("weights")?).unwrap_or_default();
    let op = Grey::new(image).weights(weights).variant(asked.variant());
    layout::built(asked, op, input, vec![image.h, image.w])
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for image in [Image::rgb([9, 11]), Image::rgba([9, 11]), Image::rgb([9, 11]).planar()] {
        for weights in GreyWeights::ALL {
            let grey = Grey::new(image).weights(weights).variant(variant);
            programs.push(Op::<u8>::lower(&grey, profile)?);
            programs.push(Op::<f32>::lower(&grey, profile)?);
            programs.push(Op::<f16>::lower(&grey, profile)?);
        }
    }
    Ok(programs)
}
