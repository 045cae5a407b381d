use crate::program::prelude::*;

/// The order of channels in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Layout {
    /// Channels side by side: `h` x `w` x channels, as in decoders and NumPy.
    #[default]
    Interleaved,
    /// A plane for each channel: channels x `h` x `w`, as in neural networks.
    Planar,
}

impl Layout {
    /// All values.
    pub const ALL: [Layout; 2] = [Self::Interleaved, Self::Planar];

    /// Returns the name, as on the command line of the `op` example.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interleaved => "interleaved",
            Self::Planar => "planar",
        }
    }

    /// Returns the layout of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|l| l.name() == name)
    }
}

/// Extents and layout of an image: rows of pixels without gaps, with 1 to 4 channels.
///
/// ```
/// use tilework::image::{Image, Layout};
///
/// assert_eq!(Image::from([480, 640]), Image::new([480, 640], 1));
/// assert_eq!(Image::from([480, 640, 3]), Image::rgb([480, 640]));
/// assert_eq!(Image::rgb([480, 640]).planar().layout, Layout::Planar);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Image {
    /// Rows.
    pub h: usize,
    /// Pixels in a row.
    pub w: usize,
    /// Elements of a pixel.
    pub channels: usize,
    /// The order of channels in memory.
    pub layout: Layout,
}

impl Image {
    /// Creates an image of `h` rows of `w` pixels of `channels` interleaved channels.
    pub const fn new([h, w]: [usize; 2], channels: usize) -> Self {
        Self { h, w, channels, layout: Layout::Interleaved }
    }

    /// Creates an image of one channel.
    pub const fn grey([h, w]: [usize; 2]) -> Self {
        Self::new([h, w], 1)
    }

    /// Creates an image of red, green and blue.
    pub const fn rgb([h, w]: [usize; 2]) -> Self {
        Self::new([h, w], 3)
    }

    /// Creates an image of red, green, blue and opacity.
    pub const fn rgba([h, w]: [usize; 2]) -> Self {
        Self::new([h, w], 4)
    }

    /// Stores each channel as a plane.
    #[must_use]
    pub const fn planar(self) -> Self {
        Self { layout: Layout::Planar, ..self }
    }

    /// Returns planes, rows, and elements in a row; interleaved channels are elements of the row.
    pub(crate) fn extents(&self) -> [usize; 3] {
        if self.is_planar() {
            [self.channels, self.h, self.w]
        } else {
            // If there are no rows, a row may have any length.
            [1, self.h, self.w.saturating_mul(self.channels)]
        }
    }

    /// Returns the stride of pixels, in elements.
    pub(crate) fn step(&self) -> usize {
        if self.is_planar() { 1 } else { self.channels }
    }

    /// Returns true for planar images of several channels; with one channel both layouts are the same.
    fn is_planar(&self) -> bool {
        self.layout == Layout::Planar
    }

    /// Describes the image in error texts.
    pub(crate) fn name(&self) -> String {
        let layout = if self.is_planar() { ", planar" } else { "" };
        match self.channels {
            1 => format!("{} x {}", self.h, self.w),
            c => format!("{} x {} x {c}{layout}", self.h, self.w),
        }
    }

    /// Checks the image and returns input and output of the op `name`, whose output has `channels` channels.
    pub(super) fn operands(
        &self, name: &str, dtype: DType, channels: usize, profile: &DeviceProfile,
    ) -> Result<Vec<Operand>> {
        if !TYPES.contains(&dtype) {
            return Err(err!(Unsupported, "{name}: elements of {dtype}; convert the image to u8, f16 or f32"));
        }
        if !(1..=4).contains(&self.channels) {
            return Err(err!(
                InvalidArgument,
                "{name}: pixels of {} channels; an image has 1 to 4; process planes as separate images",
                self.channels
            ));
        }
        let len = elements(name, "input", &[self.h, self.w, self.channels])?;
        let input = Operand { name: "input", dtype, len, access: Access::Read };
        let output = Operand { name: "output", len: len / self.channels * channels, access: Access::Write, ..input };
        let operands = vec![input, output];
        profile.check_bindings(name, &operands[..1], "process chunks of rows, a call each")?;
        profile.check_count(name, &operands[0], MAX_ELEMENTS, "process chunks of rows, a call each")?;
        Ok(operands)
    }
}

pub(super) const INPUT: Input = Input::new("input", "(h, w) or (h, w, c); (c, h, w) with layout planar");

pub(super) const TYPES: &[DType] = &[DType::U8, DType::F32, DType::F16];

pub(super) const LAYOUT: Setting = Setting::word("layout", || Layout::ALL.map(Layout::name).to_vec());

/// Reads the input and the option `layout`.
pub(super) fn asked(asked: &mut Asked<'_>) -> Result<(HostArray, Image)> {
    let input = asked.any(INPUT.name)?;
    let planar = asked.settings().choice("layout")? == Layout::Planar.name();
    let image = match input.shape()[..] {
        [h, w] => Image::grey([h, w]),
        [channels, h, w] if planar => Image::new([h, w], channels).planar(),
        [h, w, channels] => Image::new([h, w], channels),
        _ => {
            return Err(err!(
                Shape,
                "{}: {} is {input}; an image has 2 dimensions, or 3 with channels; reshape it",
                asked.name(),
                INPUT.name
            ));
        }
    };
    Ok((input, image))
}

/// Returns the op on an image, with an output of this shape.
pub(super) fn built(
    asked: &Asked<'_>, op: impl Op<f32> + Op<f16> + Op<u8> + 'static, input: HostArray, output: Vec<usize>,
) -> Result<OpCall> {
    let dtype = input.dtype();
    let operands = vec![Role::Given(input), Role::Result(output)];
    by_type!(asked, dtype, [f32, f16, u8], T => Ok(OpCall::new::<T>(op, operands)))
}

impl From<[usize; 2]> for Image {
    fn from([h, w]: [usize; 2]) -> Self {
        Self::grey([h, w])
    }
}

/// Creates an image of interleaved channels from the shape of a NumPy array.
impl From<[usize; 3]> for Image {
    fn from([h, w, channels]: [usize; 3]) -> Self {
        Self::new([h, w], channels)
    }
}

/// Maximum of elements that 31-bit coordinates address, with a margin beyond both ends.
const MAX_ELEMENTS: usize = (1 << 31) - (1 << 17);
