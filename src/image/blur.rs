//! Box blur.

use super::check_size;
use crate::analysis::Axis;
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::{
    Access, Binding, Cost, DeviceProfile, Grid, In, Kernel, Op, OpInfo, Operand, Out, Program, Variant,
    choose, kernel_params,
};
use crate::shader::Spec;
use crate::shape::elements;

/// What a sum of pixels is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Divide {
    /// The number of pixels of the window that lie inside the image; rounded half up.
    #[default]
    Inside,
    /// The number of pixels of the whole window, as if 0 lay outside; truncated: the teaching kernel.
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

/// `output[y, x]` = the mean of `input` over the window of `2 radius + 1` pixels a side around `(y, x)`.
///
/// # Shapes
/// `input` and `output` are `h` x `w` of u8, row-major without gaps; any extent may be 0, and the window may be larger
/// than the image. The two must be different wgpu buffers.
///
/// # Precision and determinism
/// In integers, divided as [`divide`](Self::divide) says: every variant and device gives the same bytes.
///
/// # Cost
/// `(2 radius + 1)^2` additions a pixel, about 5 with `separable`. One dispatch; `separable` two, and 4 bytes a pixel of
/// scratch.
///
/// # Variants
/// `naive`, `tiled` (radius up to 16, on a device with 16 KiB of workgroup memory) and `separable`. `auto` (the default)
/// takes `tiled` up to radius 4, `separable` above and on processors, but `naive` where the row sums are above the
/// largest binding.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge): an image above the largest binding or buffer, or a radius above 1448, whose
/// sums do not fit 32 bits; [`Unsupported`](crate::ErrorKind::Unsupported): elements of another type than u8, or a
/// variant that this radius does not fit; [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/image/blur_naive.wgsl`: the definition. `blur_tiled.wgsl`: a tile and its halo in workgroup memory.
/// `blur_rows.wgsl` and `blur_columns.wgsl`: sums along rows, then of those along columns, each from the one before.
///
/// # Example
/// ```
/// use tilework::image::{Blur, Divide};
/// use tilework::program::{DeviceProfile, Op};
///
/// let blur = Blur::new(1080, 1920, 10).divide(Divide::Window);
/// let program = Op::<u8>::lower(&blur, &DeviceProfile::h100())?;
/// assert_eq!((program.variant, program.dispatches.len()), ("separable", 2));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blur {
    pub(crate) h: usize,
    pub(crate) w: usize,
    pub(crate) radius: usize,
    pub(crate) divide: Divide,
    variant: String,
}

kernel_params! {
    /// Of every kernel of the blur.
    struct Params { w: u32, h: u32, groups: u32, radius: u32, tiles_x: u32, work: u32 }
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "each pixel reads its whole window from memory"),
    Variant::portable("tiled", "a tile and its halo in workgroup memory"),
    Variant::portable("separable", "sums along rows, then along columns, each from the one before"),
];

const WORKGROUP_SIZE: usize = 256;
/// Side of a tile of `tiled`.
const TILE: usize = 32;
/// Rows that an invocation of `separable` walks down.
const ROWS: usize = 16;
/// The largest radius whose doubled sum fits 32 bits: `511 (2 r + 1)^2 < 2^32`.
const MOST_RADIUS: usize = 1448;
/// The largest radius of four windows on a software driver: Mesa's silently ends an invocation's loops after 65535 turns.
const MOST_ON_CPU: usize = 60;

impl Blur {
    /// Of an image of `h` x `w` pixels.
    pub fn new(h: usize, w: usize, radius: usize) -> Self {
        Self { h, w, radius, divide: Divide::Inside, variant: "auto".into() }
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

    fn policy(&self, profile: &DeviceProfile) -> (&'static str, String) {
        let (radius, cpu) = (self.radius, profile.is_cpu());
        if radius <= 4 && !cpu {
            ("tiled", format!("radius {radius}: a window has few pixels, and each is loaded about once"))
        } else if self.scratch() > profile.limits.max_storage_binding && !(cpu && radius > MOST_ON_CPU) {
            ("naive", "the row sums of the image are above the largest binding".to_owned())
        } else {
            ("separable", format!("radius {radius}: each sum follows from the one before"))
        }
    }

    /// Bytes of the row sums of `separable`.
    fn scratch(&self) -> u64 {
        16 * self.w.div_ceil(4) as u64 * self.h as u64
    }

    /// Refuses what the variant cannot do here.
    fn check_variant(&self, name: &str, variant: &str, profile: &DeviceProfile) -> Result<()> {
        let radius = self.radius;
        let (needed, there) = (4 * (TILE + 2 * radius).pow(2), profile.limits.max_workgroup_bytes as usize);
        let binding = profile.limits.max_storage_binding;
        let what = match variant {
            "tiled" if needed > there => {
                format!("{needed} bytes of workgroup memory for a tile and its halo (there are {there})")
            }
            "separable" if self.scratch() > binding => {
                format!("{} bytes of scratch in one binding (at most {binding})", self.scratch())
            }
            "naive" | "tiled" if profile.is_cpu() && radius > MOST_ON_CPU => {
                format!("loops of more than 65535 turns for radius {radius}, which a software driver ends")
            }
            _ => return Ok(()),
        };
        Err(err!(
            Unsupported,
            "{name}: the variant `{variant}` needs {what}, which {} does not have; take another, or work on bands of rows",
            profile.name
        ))
    }

    fn dispatch(&self, program: &mut Program) {
        let (groups, whole) = (self.w.div_ceil(4), self.w.is_multiple_of(4));
        let operands: Vec<_> = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        let spec = Spec::new().flag("WINDOW", self.divide == Divide::Window).flag("VECTORS", whole);
        let params = Params {
            w: self.w as u32,
            h: self.h as u32,
            groups: groups as u32,
            radius: self.radius as u32,
            tiles_x: 0,
            work: (groups * self.h) as u32,
        };
        let each = |work: usize| Grid::fold(work.div_ceil(WORKGROUP_SIZE) as u64);
        match program.variant {
            "naive" => {
                let kernel = program.kernel(Kernel::library("image/blur_naive", "blur_naive", spec));
                program.dispatch(kernel, &params, operands, each(groups * self.h));
            }
            "tiled" => {
                let spec = spec.constant("TILE", TILE as u32).constant("RADIUS", self.radius as u32);
                let axis = Axis::inside(TILE as u64, 2 * self.radius as u64 + 1);
                let reuse = Axis::reuse(&[axis; 2]);
                program.why = format!("{}; tile of {TILE} x {TILE}: reuse {reuse:.2}", program.why);
                let (tiles_x, tiles_y) = (self.w.div_ceil(TILE), self.h.div_ceil(TILE));
                let params = Params { tiles_x: tiles_x as u32, work: (tiles_x * tiles_y) as u32, ..params };
                let kernel = program.kernel(Kernel::library("image/blur_tiled", "blur_tiled", spec));
                program.dispatch(kernel, &params, operands, Grid::fold((tiles_x * tiles_y) as u64));
            }
            _ => {
                let sums = program.scratch(self.scratch());
                let rows = program.kernel(Kernel::library("image/blur_rows", "blur_rows", Spec::new()));
                program.dispatch(rows, &params, vec![operands[0], sums], each(groups * self.h));
                let work = groups * self.h.div_ceil(ROWS);
                let spec = spec.constant("ROWS", ROWS as u32);
                let columns = program.kernel(Kernel::library("image/blur_columns", "blur_columns", spec));
                let params = Params { work: work as u32, ..params };
                program.dispatch(columns, &params, vec![sums, operands[1]], each(work));
            }
        }
    }
}

impl<T: Element> Op<T> for Blur {
    type Operands = (In<T>, Out<T>);

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let dtype = T::DTYPE;
        let name = format!("blur of {} x {} by radius {}", self.h, self.w, self.radius);
        if dtype != DType::U8 {
            return Err(err!(Unsupported, "{name}: elements of {dtype}; it takes u8"));
        }
        let len = elements(&name, "input", &[self.h, self.w])?;
        let operands = vec![
            Operand { name: "input", dtype, len, access: Access::Read },
            Operand { name: "output", dtype, len, access: Access::Write },
        ];
        check_size(&name, &operands[0], profile)?;
        if self.radius > MOST_RADIUS {
            return Err(err!(
                TooLarge,
                "{name}: the radius is above {MOST_RADIUS}, beyond which sums do not fit 32 bits; blur twice"
            ));
        }
        let (variant, why) = choose("blur", &self.variant, VARIANTS, profile, || self.policy(profile))?;
        self.check_variant(&name, variant.name, profile)?;
        let mut program = Program::new("blur", variant.name, why);
        let window = (2.0 * self.radius as f64 + 1.0).powi(2);
        program.cost = Cost {
            flop: len as f64 * if variant.name == "separable" { 5.0 } else { window },
            bytes: 2.0 * len as f64,
        };
        program.operands = operands;
        if len > 0 {
            self.dispatch(&mut program);
        }
        Ok(program)
    }
}

pub(super) const INFO: OpInfo = OpInfo {
    name: "blur",
    about: "the mean of each pixel's surroundings",
    inputs: "x u8 (h,w)",
    keys: "radius 1, divide inside/window (inside)",
    variants: Blur::variants,
    samples,
};

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let forms = Divide::ALL.into_iter().flat_map(|d| [40, 41].map(|w| Blur::new(50, w, 2).divide(d)));
    forms.map(|blur| Op::<u8>::lower(&blur.variant(variant), profile)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_follows_device_and_radius() {
        let (h100, mesa) = (DeviceProfile::h100(), DeviceProfile::mesa());
        let chosen =
            |h, r, p: &DeviceProfile| Op::<u8>::lower(&Blur::new(h, 8000, r), p).map(|p| p.variant).ok();
        assert_eq!(chosen(1000, 4, &h100), Some("tiled"));
        assert_eq!(chosen(1000, 5, &h100), Some("separable"));
        assert_eq!(chosen(1000, 1, &mesa), Some("separable"));
        // Row sums of 256 MB.
        assert_eq!(chosen(8000, 1, &mesa), Some("naive"));
        assert_eq!(chosen(8000, 61, &mesa), None);
    }
}
