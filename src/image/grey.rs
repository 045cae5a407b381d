//! The brightness of RGB pixels.

use super::check_size;
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::{
    Access, Binding, Cost, DeviceProfile, Grid, In, Kernel, Op, OpInfo, Operand, Out, Program, Variant,
    choose, kernel_params,
};
use crate::shader::Spec;
use crate::shape::elements;

/// How much each colour counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum GreyWeights {
    /// `(299 R + 587 G + 114 B + 500) / 1000`, in integers: ITU-R BT.601, rounded half up.
    #[default]
    Luma,
    /// `3 R / 10 + 6 G / 10 + B / 10`, each term truncated: the teaching kernel.
    Source,
}

impl GreyWeights {
    /// All of them.
    pub const ALL: [GreyWeights; 2] = [Self::Luma, Self::Source];

    /// Name, as on the command line of the `op` example.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Luma => "luma",
            Self::Source => "source",
        }
    }

    /// The weights of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|w| w.name() == name)
    }
}

/// `output[p]` = the brightness of pixel `p`, whose red, green and blue follow each other in `input`.
///
/// # Shapes
/// `input` is `h` x `w` x 3, `output` `h` x `w`, both of u8, row-major without gaps; any extent may be 0. The two must
/// be different wgpu buffers.
///
/// # Precision and determinism
/// In integers, by [`weights`](Self::weights): every variant and device gives the same bytes.
///
/// # Cost
/// 7 operations and 4 bytes a pixel. One dispatch, no scratch.
///
/// # Variants
/// `naive` and `packed`; `auto` (the default) takes `packed`.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge): an image above the largest binding or buffer;
/// [`Unsupported`](crate::ErrorKind::Unsupported): elements of another type than u8;
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/image/grey_naive.wgsl`, byte by byte; `grey_packed.wgsl`, three words to one.
///
/// # Example
/// ```
/// use tilework::image::{Grey, GreyWeights};
/// use tilework::program::{DeviceProfile, Op};
///
/// let grey = Grey::new(1080, 1920).weights(GreyWeights::Luma);
/// let program = Op::<u8>::lower(&grey, &DeviceProfile::webgpu_defaults())?;
/// assert_eq!((program.variant, program.operands[0].len), ("packed", 1080 * 1920 * 3));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grey {
    h: usize,
    w: usize,
    pub(crate) weights: GreyWeights,
    variant: String,
}

kernel_params! { struct Params { pixels: u32, words: u32 } }

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "reads each colour of each pixel by itself"),
    Variant::portable("packed", "turns three words, four pixels, into one"),
];

impl Grey {
    /// Of an image of `h` x `w` pixels.
    pub fn new(h: usize, w: usize) -> Self {
        Self { h, w, weights: GreyWeights::Luma, variant: "auto".into() }
    }

    /// How much each colour counts. The default is [`GreyWeights::Luma`].
    #[must_use]
    pub fn weights(mut self, weights: GreyWeights) -> Self {
        self.weights = weights;
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
}

impl<T: Element> Op<T> for Grey {
    type Operands = (In<T>, Out<T>);

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let (dtype, name) = (T::DTYPE, format!("grey of {} x {}", self.h, self.w));
        if dtype != DType::U8 {
            return Err(err!(Unsupported, "{name}: elements of {dtype}; it takes u8"));
        }
        let len = elements(&name, "input", &[self.h, self.w, 3])?;
        let operands = vec![
            Operand { name: "input", dtype, len, access: Access::Read },
            Operand { name: "output", dtype, len: len / 3, access: Access::Write },
        ];
        check_size(&name, &operands[0], profile)?;
        let (variant, why) = choose("grey", &self.variant, VARIANTS, profile, || {
            ("packed", "reads every word once".to_owned())
        })?;
        let mut program = Program::new("grey", variant.name, why);
        let pixels = len / 3;
        program.cost = Cost { flop: 7.0 * pixels as f64, bytes: 4.0 * pixels as f64 };
        program.operands = operands;
        if pixels > 0 {
            let spec = Spec::new().flag("SOURCE", self.weights == GreyWeights::Source);
            let kernel = if variant.name == "naive" {
                Kernel::library("image/grey_naive", "grey_naive", spec)
            } else {
                Kernel::library("image/grey_packed", "grey_packed", spec)
            };
            let kernel = program.kernel(kernel);
            let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
            let params = Params { pixels: pixels as u32, words: len.div_ceil(4) as u32 };
            program.dispatch(kernel, &params, bindings, Grid::fold(pixels.div_ceil(4).div_ceil(256) as u64));
        }
        Ok(program)
    }
}

pub(super) const INFO: OpInfo = OpInfo {
    name: "grey",
    about: "the brightness of RGB pixels",
    inputs: "rgb u8 (h,w,3)",
    keys: "weights luma/source (luma)",
    variants: Grey::variants,
    samples,
};

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let all = GreyWeights::ALL.into_iter();
    all.map(|w| Op::<u8>::lower(&Grey::new(9, 11).weights(w).variant(variant), profile)).collect()
}
