use super::Image;
use super::gaussian::boundaries;
use super::layout::{self, INPUT, LAYOUT, TYPES};
use crate::conv::{Boundary, LinesParams, source, target};
use crate::program::prelude::*;

/// Takes the median of each neighbourhood: `output[y, x] = median of input[y + j, x + i]` over `|i|, |j| <= size /
/// 2`, the middle value of the sorted window of `size` x `size` pixels, each channel by itself. `size` is odd.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1u8, 1, 1, 1, 200, 1, 1, 1, 1])?, gpu.alloc::<u8>(9)?);
/// let clean = Median::new([3, 3], 3).plan::<u8>(&gpu)?;
/// let mut rec = gpu.recorder();
/// clean.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [1; 9]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` and `output` are the [`Image`]; any extent may be 0, and the window may be larger than the image. The
/// two must be different wgpu buffers.
///
/// # Boundary
/// The nearest pixel is repeated outside the image, unless [`boundary`](Self::boundary) says otherwise. The default
/// is that of `median_filter` of SciPy with `mode="nearest"`, and of `medianBlur` of OpenCV.
///
/// # Types, precision and determinism
/// u8, f16 and f32. Values are selected, not computed: every variant and device gives the same bits, for subnormal
/// numbers too. Floats are sorted as -inf ... -0, +0 ... +inf, NaN: -0 lies below +0, and every NaN above all numbers.
/// If the median is NaN, the output is a NaN of undefined sign and payload.
///
/// # Cost
/// `naive` and `tiled`: `2 bits size^2` operations an element, where `bits` is 8 for u8 and 32 for floats. `network`:
/// 24 minima and maxima an element for size 3, 140 for size 5, slightly more if channels are interleaved. One
/// dispatch, no scratch.
///
/// # Variants
/// `naive`; `tiled` (with 16 KiB of workgroup memory, one channel or planes: sizes up to 33); `network` (sizes 3
/// and 5). `auto` (the default) takes `network` if the size is 3 or 5, else `tiled` if the tile fits workgroup
/// memory, else `naive`.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an even size, pixels with more than 4 channels or
///   none, or an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an image above the largest binding or buffer, or a size above 89
///   (u8) or 43 (floats), for which some drivers end loops too early.
/// - [`Unsupported`](ErrorKind::Unsupported): elements of another type than u8, f16 and f32, or a variant that
///   does not fit the size or the device.
///
/// # Algorithm
/// J. W. Tukey, *Exploratory Data Analysis*, 1977. `shaders/image/median_naive.wgsl` and `median_tiled.wgsl` search
/// the median bit by bit: `median_search.wgsl`. `median_network.wgsl` sorts columns that windows share, then rows,
/// and drops elements that cannot be the median: A. Adams, *Fast Median Filters using Separable Sorting Networks*,
/// 2021.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Median {
    pub(crate) image: Image,
    pub(crate) size: usize,
    pub(crate) boundary: Boundary,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "a binary search for each element, which reads its window from memory"),
    Variant::portable("tiled", "the same, with a tile and its surroundings in workgroup memory"),
    Variant::portable("network", "sizes 3 and 5: sorts columns that windows share, in registers"),
];

const WORKGROUP_SIZE: usize = 256;
const TILE: usize = 32;

/// Returns the largest size for which every driver runs the search to its end: `bits (size + 1)^2` rounds, and those
/// that load a tile.
const fn max_size(dtype: DType) -> usize {
    if matches!(dtype, DType::U8) { 89 } else { 43 }
}
const _: () = assert!(runs_everywhere(8 * (max_size(DType::U8) + 1).pow(2) + 512));
const _: () = assert!(runs_everywhere(32 * (max_size(DType::F32) + 1).pow(2) + 512));

impl Median {
    /// Filters an image by windows of `size` x `size` pixels.
    pub fn new(image: impl Into<Image>, size: usize) -> Self {
        Self { image: image.into(), size, boundary: Boundary::Clamp, variant: "auto".into() }
    }

    /// Sets the pixels outside the image. The default is [`Boundary::Clamp`].
    #[must_use]
    pub fn boundary(mut self, boundary: Boundary) -> Self {
        self.boundary = boundary;
        self
    }

    variants!(variant);

    /// Returns the pixels from the centre of the window to its edge.
    fn radius(&self) -> usize {
        self.size / 2
    }

    /// Returns the groups of four columns that a thread of `network` sorts.
    fn groups(&self) -> usize {
        ((self.size - 1) * self.image.step() + 4).div_ceil(4)
    }

    fn tile_bytes(&self) -> usize {
        let halo = 2 * self.radius() * self.image.step();
        4 * (TILE + halo).next_multiple_of(4) * (TILE + 2 * self.radius())
    }

    fn check(&self, name: &str, dtype: DType) -> Result<()> {
        let (size, max) = (self.size, max_size(dtype));
        if size.is_multiple_of(2) {
            return Err(err!(
                InvalidArgument,
                "{name}: the size is even; give an odd size, so that the window has a centre"
            ));
        }
        if size > max {
            return Err(err!(
                TooLarge,
                "{name}: the maximum size for {dtype} is {max}; use a smaller window on a smaller image"
            ));
        }
        Ok(())
    }

    /// Returns the requirement of the variant that the size or device does not meet, if any.
    fn missing(&self, variant: &str, profile: &DeviceProfile) -> Option<String> {
        let (needed, there) = (self.tile_bytes(), profile.limits.max_workgroup_bytes);
        match variant {
            "network" if ![3, 5].contains(&self.size) => Some("a size of 3 or 5".into()),
            "tiled" if needed > there as usize => {
                Some(format!("{needed} bytes of workgroup memory for a tile (there are {there})"))
            }
            _ => None,
        }
    }

    /// Mesa's software driver, 256 x 256, u8 and f32, sizes 3 to 15: `network` is 3 to 11 times as fast as `tiled`, and
    /// `tiled` 5 to 9 times as fast as `naive`.
    fn policy(&self, profile: &DeviceProfile) -> (&'static str, String) {
        let size = self.size;
        let fits = |variant: &str| self.missing(variant, profile).is_none();
        if fits("network") {
            ("network", format!("size {size}: few enough minima and maxima to unroll them"))
        } else if fits("tiled") {
            ("tiled", format!("size {size}: a tile and its surroundings fit workgroup memory"))
        } else {
            ("naive", format!("size {size}: no tile fits workgroup memory"))
        }
    }

    fn operations(&self, variant: &str, dtype: DType) -> usize {
        match (variant, self.size) {
            ("network", 3) => 12 + 6 * self.groups(),
            ("network", _) => 104 + 18 * self.groups(),
            (_, size) => 2 * if dtype == DType::U8 { 8 } else { 32 } * size * size,
        }
    }

    fn dispatch(&self, dtype: DType, program: &mut Program) {
        let extents @ [d, h, w] = self.image.extents();
        let (step, radius) = (self.image.step(), self.radius() as u32);
        let spec = self.boundary.add_to(Spec::new(), self.size > h.min(w / step));
        let spec = source(target(spec, dtype, w.is_multiple_of(4)), dtype).flag("BYTES", dtype == DType::U8);
        let work = w.div_ceil(4) * h * d;
        let params =
            LinesParams { tiles: work as u32, radius_x: radius, radius_y: radius, ..LinesParams::of(extents, step) };
        let each = Grid::fold(work.div_ceil(WORKGROUP_SIZE) as u64);
        let (kernel, params, grid) = match program.variant() {
            "network" => {
                let network = if self.size == 3 { "image/median_of_9" } else { "image/median_of_25" };
                let spec = spec
                    .slot("network", Fragment::Library(network))
                    .constant("STEP", step as u32)
                    .constant("GROUPS", self.groups() as u32);
                (Kernel::of_file("image/median_network", spec), params, each)
            }
            "tiled" => {
                let spec = spec.constant("TILE", TILE as u32).constant("RADIUS", radius).constant("STEP", step as u32);
                let (tiles_x, tiles_y) = (w.div_ceil(TILE), h.div_ceil(TILE));
                let tiles = tiles_x * tiles_y * d;
                let params =
                    LinesParams { tiles_x: tiles_x as u32, tiles_y: tiles_y as u32, tiles: tiles as u32, ..params };
                (Kernel::of_file("image/median_tiled", spec), params, Grid::fold(tiles as u64))
            }
            _ => (Kernel::of_file("image/median_naive", spec), params, each),
        };
        let kernel = program.kernel(kernel);
        let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        program.dispatch(kernel, &params, bindings, grid);
    }
}

operands! {
    impl[T: Element,] Median, T {
        fn record(input: T, output: T);
    }
}

impl<T: Element> Op<T> for Median {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let (dtype, image) = (T::DTYPE, &self.image);
        let name = format!("median of {} by size {}", image.name(), self.size);
        let operands = image.operands(&name, dtype, image.channels, profile)?;
        self.check(&name, dtype)?;
        let (variant, decision) = choose("median", &self.variant, VARIANTS, profile, || self.policy(profile))?;
        let len = operands[0].len;
        if let Some(what) = self.missing(variant.name, profile).filter(|_| len > 0) {
            return Err(err!(
                Unsupported,
                "{name}: the variant `{}` needs {what}; use another variant on {}",
                variant.name,
                profile.name
            ));
        }
        let mut program = Program::new("median", decision);
        program.cost = Cost::of(len as f64 * self.operations(variant.name, dtype) as f64, &operands);
        program.operands = operands;
        if len > 0 {
            self.dispatch(dtype, &mut program);
        }
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "median",
    about: "the median of each pixel's surroundings",
    inputs: &[INPUT],
    outputs: &[("output", "as input")],
    types: TYPES,
    options: &[Setting::number("size", "3"), Setting::word("boundary", boundaries), LAYOUT],
    make: Some(make),
    variants: Median::variants,
    samples,
    comparison: Some(Comparison::Sums),
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (input, image) = layout::asked(asked)?;
    let settings = asked.settings();
    let op = Median {
        boundary: Boundary::asked(settings)?,
        ..Median::new(image, settings.number("size")?).variant(asked.variant())
    };
    let output = input.shape().to_vec();
    layout::built(asked, op, input, output)
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut forms: Vec<_> = Boundary::ALL.map(|b| (Image::grey([20, 24]), b)).to_vec();
    let others = [
        Image::grey([20, 25]),
        Image::new([20, 24], 2),
        Image::rgb([20, 24]),
        Image::rgb([20, 25]).planar(),
        Image::rgba([20, 24]),
    ];
    forms.extend(others.map(|image| (image, Boundary::Clamp)));
    let sizes: &[usize] = if variant == "network" { &[3, 5] } else { &[3] };
    let mut programs = Vec::new();
    for (size, (image, boundary)) in sizes.iter().flat_map(|size| forms.iter().map(move |form| (*size, *form))) {
        let median = Median::new(image, size).boundary(boundary).variant(variant);
        programs.push(Op::<u8>::lower(&median, profile)?);
        programs.push(Op::<f32>::lower(&median, profile)?);
        programs.push(Op::<f16>::lower(&median, profile)?);
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
