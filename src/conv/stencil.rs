//! What the three stencils share: checks, choice of variant, tiles and dispatches. Extents are z, y, x.

use super::lines::{self, Lines};
use super::register::Registers;
use crate::analysis::{Axis, divergence, reads_from_shared};
use crate::array::HostArray;
use crate::element::DType;
use crate::error::{Result, err};
use crate::program::facts::{Fact, Subject, fact};
use crate::program::fit::LOOP_ROUNDS;
use crate::program::{
    Access, Asked, Binding, Cost, DeviceProfile, Grid, Kernel, Operand, Program, Setting, Settings, Source,
    Variant, choose, kernel_params,
};
use crate::shader::{Fragment, Spec};
use crate::shape::{elements, round_up};

/// What a stencil reads outside of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Boundary {
    /// 0.
    #[default]
    Zero,
    /// The element at the edge.
    Clamp,
    /// The element on the other side: the input is periodic.
    Wrap,
}

impl Boundary {
    /// All of them.
    pub const ALL: [Boundary; 3] = [Self::Zero, Self::Clamp, Self::Wrap];

    /// Name, as on the command line of the `op` example.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Clamp => "clamp",
            Self::Wrap => "wrap",
        }
    }

    /// The boundary of that name.
    ///
    /// ```
    /// use tilework::conv::Boundary;
    /// assert_eq!(Boundary::from_name("wrap"), Some(Boundary::Wrap));
    /// assert_eq!(Boundary::from_name("mirror"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|b| b.name() == name)
    }

    /// The one that the option `boundary` names.
    pub(crate) fn asked(settings: &Settings) -> Result<Self> {
        Ok(Self::from_name(settings.choice("boundary")?).unwrap_or_default())
    }
}

/// A stencil of one, two or three axes; those that it has not are 1 long.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stencil {
    pub(crate) op: &'static str,
    pub(crate) axes: usize,
    pub(crate) extents: [usize; 3],
    pub(crate) filter: [usize; 3],
    pub(crate) weights: Vec<f32>,
    pub(crate) boundary: Boundary,
    pub(super) variant: String,
    /// Rows and planes of outputs of an invocation of `register`.
    pub(super) outputs: Option<[usize; 2]>,
}

/// The builders that the three descriptors have alike.
macro_rules! stencil_builders {
    ($desc:ident, $variants:expr) => {
        impl $desc {
            /// What lies outside of the input. The default is [`Boundary::Zero`].
            #[must_use]
            pub fn boundary(mut self, boundary: Boundary) -> Self {
                self.stencil.boundary = boundary;
                self
            }

            /// Runs the variant of this name instead of `auto`.
            #[must_use]
            pub fn variant(mut self, name: &str) -> Self {
                name.clone_into(&mut self.stencil.variant);
                self
            }

            /// Outputs that an invocation of the variant `register` computes along y and along z, instead of what
            /// suits the device. Powers of 2 from 1 to 16.
            #[must_use]
            pub fn outputs(mut self, rows: usize, planes: usize) -> Self {
                self.stencil.outputs = Some([rows, planes]);
                self
            }

            /// Every way to run it.
            pub fn variants() -> &'static [crate::program::Variant] {
                $variants
            }

            pub(crate) fn stencil(&self) -> &super::stencil::Stencil {
                &self.stencil
            }
        }
    };
}
pub(super) use stencil_builders;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "each output reads its inputs and the filter from memory"),
    Variant::portable("constant", "the same, with the filter in constant memory: a uniform"),
    Variant::portable(
        "strategy1",
        "a workgroup is its tile of outputs, and some invocations load the halo too",
    ),
    Variant::portable(
        "strategy2",
        "a workgroup is its tile of inputs, and those of the halo compute nothing",
    ),
    Variant::portable("strategy3", "the tile in workgroup memory, its halo left to the caches"),
    Variant::portable("register", "several outputs an invocation, sums in registers, loads of four"),
    Variant::portable(
        "separable",
        "a filter that is a product of lines, as sums along one axis after the other",
    ),
];
/// Those of one axis, which has nothing to separate.
pub(super) const VARIANTS_OF_LINES: &[Variant] = VARIANTS.split_at(VARIANTS.len() - 1).0;

/// The options of the three, by name.
pub(super) const OPTIONS: &[Setting] = &[
    Setting::word("boundary", || Boundary::ALL.map(Boundary::name).to_vec()),
    Setting::text("outputs", OUTPUTS, ""),
];
const OUTPUTS: &str = "ROWS,PLANES";

/// The stencil of `N` axes that is asked for by names, and its input. Its filter is read here.
pub(super) fn asked<const N: usize>(asked: &mut Asked<'_>) -> Result<(HostArray, Stencil)> {
    let (input, extents) = asked.array::<N>("input")?;
    let (filter, shape) = asked.free_of::<N>("filter", [5; N], DType::F32)?;
    let settings = asked.settings();
    let in_space = |extents: [usize; N]| {
        let mut all = [1; 3];
        all[3 - N..].copy_from_slice(&extents);
        all
    };
    let weights = filter.data().to_f32();
    let mut stencil = Stencil::new(asked.name(), N, in_space(extents), in_space(shape), &weights);
    stencil.boundary = Boundary::asked(settings)?;
    asked.variant().clone_into(&mut stencil.variant);
    if settings.has("outputs") {
        stencil.outputs = Some(settings.numbers("outputs", OUTPUTS)?);
    }
    Ok((input, stencil))
}

/// Fields that every kernel has, before the weights.
macro_rules! params {
    ($($(#[$meta:meta])* $name:ident $([$vectors:expr])?;)*) => {$(
        kernel_params! {
            $(#[$meta])*
            struct $name {
                w: u32, h: u32, d: u32, groups: u32, tiles_x: u32, tiles_y: u32, tiles: u32, rows: u32,
                $(weights: [[f32; 4]; $vectors],)?
            }
        }
    )*};
}
params! {
    /// Without weights: they are in a storage buffer.
    Params;
    Params64[16];
    Params512[128];
    Params4096[1024];
    ParamsMost[4094];
}

/// Weights of the largest uniform: WebGPU's 64 KiB less the other parameters.
const MOST_CONSTANT: usize = 4 * 4094;

/// Elements that coordinates of 31 bits address, also beyond the ends.
const MOST: usize = (1 << 31) - (1 << 17);

/// Terms of an output that every driver adds up, whatever else an invocation does.
const MOST_EVERYWHERE: usize = 40_000;
const _: () = assert!(3 * MOST_EVERYWHERE / 2 < LOOP_ROUNDS as usize);

/// Multiply-adds in the text of a kernel, so that drivers compile it in a second.
const MOST_TERMS: usize = 256;

/// Weights up to which a processor's driver compiles them in a tenth of a second.
const MOST_TERMS_ON_CPU: usize = 64;

const WORKGROUP_SIZE: usize = 256;

impl Stencil {
    pub(super) fn new(
        op: &'static str,
        axes: usize,
        extents: [usize; 3],
        filter: [usize; 3],
        weights: &[f32],
    ) -> Self {
        let (boundary, variant) = (Boundary::Zero, "auto".to_owned());
        Self { op, axes, extents, filter, weights: weights.to_vec(), boundary, variant, outputs: None }
    }

    /// The shape, for texts.
    fn name(&self) -> String {
        format!("{} of {} under {}", self.op, self.shape(self.extents), self.shape(self.filter))
    }

    fn shape(&self, extents: [usize; 3]) -> String {
        extents[3 - self.axes..].iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
    }

    fn taps(&self) -> usize {
        self.weights.len()
    }

    pub(super) fn lower(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let name = self.name();
        if dtype != DType::F32 && !(dtype == DType::U8 && self.axes == 2) {
            let also = if self.axes == 2 { " and u8" } else { "" };
            return Err(err!(
                Unsupported,
                "{name}: elements of {dtype}; it takes f32{also}; convert the input"
            ));
        }
        self.check_filter(&name, dtype)?;
        let len = elements(&name, "input", &self.extents)?;
        let operands = vec![
            Operand { name: "input", dtype, len, access: Access::Read },
            Operand { name: "output", dtype, len, access: Access::Write },
        ];
        check_size(&name, &operands[0], profile)?;
        if len > 0 {
            self.check_extents(&name, dtype, profile)?;
        }
        let variants = if self.axes == 1 { VARIANTS_OF_LINES } else { VARIANTS };
        let (_, decision) =
            choose(self.op, &self.variant, variants, profile, || self.policy(dtype, profile))?;
        let mut program = Program::new(self.op, decision);
        let work = 2.0 * self.taps() as f64 * len as f64;
        program.cost = Cost { flop: work, bytes: operands.iter().map(|o| o.bytes() as f64).sum() };
        program.operands = operands;
        if len > 0 {
            Lowering { stencil: self, name, dtype, profile, program }.dispatch()
        } else {
            Ok(program)
        }
    }

    fn check_filter(&self, name: &str, dtype: DType) -> Result<()> {
        if elements(name, "the filter", &self.filter)? != self.taps() {
            return Err(err!(
                Shape,
                "{name}: {} weights are given; a filter of {} has one for each place",
                self.taps(),
                self.shape(self.filter)
            ));
        }
        if self.filter.iter().any(|n| n % 2 == 0) {
            return Err(err!(
                InvalidArgument,
                "{name}: the filter has an even extent, and so no middle; every extent must be odd: pad it with zeros"
            ));
        }
        if let Some(at) = self.weights.iter().position(|w| !w.is_finite()) {
            return Err(err!(
                InvalidArgument,
                "{name}: weight {at} is {}; weights must be finite",
                self.weights[at]
            ));
        }
        let total: f64 = self.weights.iter().map(|w| f64::from(w.abs())).sum();
        if dtype == DType::U8 && total > 1e30 {
            return Err(err!(
                InvalidArgument,
                "{name}: the weights add up to {total:.1e}; 1e30 is the most for elements of u8: scale them down"
            ));
        }
        if let Some([rows, planes]) = self.outputs
            && (![rows, planes].iter().all(|n| n.is_power_of_two() && *n <= 16)
                || self.axes < 3 && planes > 1)
        {
            return Err(err!(
                InvalidArgument,
                "{name}: {rows} x {planes} outputs an invocation; rows and planes must be powers of 2 up to 16, and \
                 planes 1 but in three dimensions"
            ));
        }
        Ok(())
    }

    fn check_extents(&self, name: &str, dtype: DType, profile: &DeviceProfile) -> Result<()> {
        if self.filter.iter().zip(self.extents).any(|(f, n)| *f > n) {
            return Err(err!(
                InvalidArgument,
                "{name}: the filter is larger than the input; crop the filter, or pad the input as the boundary says"
            ));
        }
        let group = if dtype == DType::U8 { 4 } else { 1 };
        let limited = profile.ends_loops();
        if limited && self.taps() * group > MOST_EVERYWHERE && self.variant != "separable" {
            return Err(err!(
                TooLarge,
                "{name}: {} weights are above {}, the most on {}, whose driver ends long loops; filter in passes",
                self.taps(),
                MOST_EVERYWHERE / group,
                profile.name
            ));
        }
        Ok(())
    }

    /// Which variant, and why.
    fn policy(&self, dtype: DType, profile: &DeviceProfile) -> (&'static str, String) {
        let (taps, constant) = (self.taps(), self.taps() <= MOST_CONSTANT);
        let most_terms = if profile.is_cpu() { MOST_TERMS_ON_CPU } else { MOST_TERMS };
        let fits = halo_bytes(self.tile(dtype), self.filter) <= profile.limits.max_workgroup_bytes as usize;
        if taps <= most_terms {
            ("register", format!("{taps} weights are few enough to write every product out"))
        } else if profile.is_cpu() && constant {
            ("constant", "on a processor the caches hold what tiles would, and barriers are dear".to_owned())
        } else if fits && !profile.is_cpu() {
            ("strategy1", format!("{taps} weights; a tile with its halo fits workgroup memory"))
        } else if constant {
            ("constant", "a tile with its halo is above workgroup memory".to_owned())
        } else {
            ("naive", format!("{taps} weights are too many for every faster variant"))
        }
    }

    /// Outputs of a workgroup in `strategy1` and `strategy3`.
    fn tile(&self, dtype: DType) -> [usize; 3] {
        match (self.axes, dtype) {
            (1, _) => [1, 1, 256],
            (2, DType::U8) => [1, 32, 32],
            (2, _) => [1, 16, 16],
            _ => [4, 8, 8],
        }
    }

    /// Outputs of a workgroup in `strategy2`: the most whose inputs are at most `invocations`.
    fn inner_tile(&self, dtype: DType, invocations: usize) -> Option<[usize; 3]> {
        let halo = self.filter.map(|f| f - 1);
        let sides = |axis: usize| 1..=if axis + self.axes < 3 { 1 } else { invocations };
        let mut best: Option<[usize; 3]> = None;
        for z in sides(0).take_while(|z| z + halo[0] <= invocations) {
            for y in sides(1).take_while(|y| (z + halo[0]) * (y + halo[1]) <= invocations) {
                let wide = invocations / ((z + halo[0]) * (y + halo[1]));
                let x = wide.saturating_sub(halo[2]);
                let x = if dtype == DType::U8 { x / 4 * 4 } else { x };
                let most = best.map_or(0, |b| b.iter().product());
                if z * y * x > most {
                    best = Some([z, y, x]);
                }
            }
        }
        best
    }

    fn axes_of(&self, tile: [usize; 3]) -> Vec<Axis> {
        (3 - self.axes..3).map(|i| Axis::inside(tile[i] as u64, self.filter[i] as u64)).collect()
    }
}

/// Bytes of a tile with its halo.
fn halo_bytes(tile: [usize; 3], filter: [usize; 3]) -> usize {
    tile.iter().zip(filter).map(|(t, f)| t + f - 1).product::<usize>().saturating_mul(4)
}

/// Whether the device can hold and bind the operand, and a kernel index it.
fn check_size(name: &str, operand: &Operand, profile: &DeviceProfile) -> Result<()> {
    let bytes = round_up(operand.bytes(), 4);
    let limits = &profile.limits;
    let limit = limits.max_buffer_size.min(limits.max_storage_binding);
    if bytes > limit {
        let what = if limit == limits.max_buffer_size { "buffer" } else { "storage binding" };
        return Err(err!(
            TooLarge,
            "{name}: {} elements of {}, {bytes} bytes, are above the {limit} bytes of the largest {what} of {}; \
             work on blocks that overlap by the filter, a call each",
            operand.len,
            operand.dtype,
            profile.name
        ));
    }
    if operand.len > MOST {
        return Err(err!(
            TooLarge,
            "{name}: {} elements are above {MOST}, the most that a kernel can address; work on blocks that overlap by \
             the filter, a call each",
            operand.len
        ));
    }
    Ok(())
}

struct Lowering<'a> {
    stencil: &'a Stencil,
    name: String,
    dtype: DType,
    profile: &'a DeviceProfile,
    program: Program,
}

impl Lowering<'_> {
    fn bytes(&self) -> bool {
        self.dtype == DType::U8
    }

    /// Whether the weights go to the uniform.
    fn uniform(&self) -> bool {
        self.program.variant() != "naive" && self.stencil.taps() <= MOST_CONSTANT
    }

    fn unsupported(&self, needs: &str) -> crate::Error {
        err!(
            Unsupported,
            "{}: the variant `{}` needs {needs}, which {} does not have; use `auto`",
            self.name,
            self.program.variant(),
            self.profile.name
        )
    }

    fn dispatch(mut self) -> Result<Program> {
        let stencil = self.stencil;
        let limits = &self.profile.limits;
        let whole_groups = stencil.extents[2].is_multiple_of(4);
        match self.program.variant() {
            "naive" | "constant" => {
                let taps = stencil.taps();
                if self.program.variant() == "constant" && taps > MOST_CONSTANT {
                    return Err(self.unsupported(&format!(
                        "{} bytes of uniform for {taps} weights (at most {})",
                        4 * taps,
                        4 * MOST_CONSTANT
                    )));
                }
                self.note("every output reads its inputs itself", 1.0);
                self.traffic(taps as f64);
                let spec = self.spec(None, whole_groups && self.bytes()).flag("BYTES", self.bytes());
                self.launch(Kernel::library("conv/stencil_naive", "stencil_naive", spec), None, false);
            }
            "strategy1" | "strategy3" => {
                let tile = stencil.tile(self.dtype);
                let cells = tile.iter().product::<usize>() as f64;
                let axes = stencil.axes_of(tile);
                let first = self.program.variant() == "strategy1";
                let (bytes, there) = (halo_bytes(tile, stencil.filter), limits.max_workgroup_bytes as usize);
                if first && bytes > there {
                    return Err(self.unsupported(&format!(
                        "{bytes} bytes of workgroup memory for a tile with its halo (there are {there})"
                    )));
                }
                let what = stencil.shape(tile);
                if first {
                    self.note(&format!("tile of {what} outputs and its halo"), Axis::reuse(&axes));
                    self.traffic((bytes / 4) as f64 / cells);
                } else {
                    let shared = reads_in_tile(&axes) as f64;
                    let reads = axes.iter().map(Axis::reads).product::<u64>() as f64;
                    // What is not in the tile is loaded anew for each use.
                    let loads = cells + reads - shared;
                    self.note(&format!("tile of {what}, {shared} of {reads} reads in it"), reads / loads);
                    self.traffic(loads / cells);
                }
                let spec = self.spec(Some(tile), whole_groups && self.bytes()).flag("BYTES", self.bytes());
                let kernel = if first {
                    Kernel::library("conv/stencil_strategy1", "stencil_strategy1", spec)
                } else {
                    Kernel::library("conv/stencil_strategy3", "stencil_strategy3", spec)
                };
                self.launch(kernel, Some(tile), false);
            }
            "strategy2" => {
                let most = (limits.max_invocations as usize).min(limits.max_workgroup_bytes as usize / 4);
                let Some(tile) = stencil.inner_tile(self.dtype, most) else {
                    let least = halo_bytes([1, 1, if self.bytes() { 4 } else { 1 }], stencil.filter) / 4;
                    return Err(self.unsupported(&format!(
                        "{least} invocations in a workgroup for one output and its halo (there are {most})"
                    )));
                };
                let what = format!("tile of {} outputs, an invocation for each input", stencil.shape(tile));
                self.note(&what, Axis::reuse(&stencil.axes_of(tile)));
                let cells = tile.iter().product::<usize>() as f64;
                self.traffic((halo_bytes(tile, stencil.filter) / 4) as f64 / cells);
                let spec = self.spec(Some(tile), whole_groups && self.bytes()).flag("BYTES", self.bytes());
                let kernel = Kernel::library("conv/stencil_strategy2", "stencil_strategy2", spec);
                self.launch(kernel, Some(tile), false);
            }
            "separable" => self.separable()?,
            _ => self.register(whole_groups)?,
        }
        Ok(self.program)
    }

    fn separable(&mut self) -> Result<()> {
        let stencil = self.stencil;
        let lines = lines::factors(stencil.filter, &stencil.weights).map_err(|(place, off)| {
            err!(
                Unsupported,
                "{}: the variant `separable` needs a filter that is a product of lines; weight {place} is {off:.1e} off \
                 that of the lines through the largest weight, above {:.1e} of it; use `auto`",
                self.name,
                lines::TOLERANCE
            )
        })?;
        let lines = Lines {
            extents: stencil.extents,
            step: 1,
            lines,
            boundary: stencil.boundary,
            finish: Spec::new(),
        };
        let Some((form, why)) = lines.best(self.dtype, self.profile) else {
            return Err(self.unsupported("a uniform that holds the longest line, and scratch for its sums"));
        };
        self.program.decision.because(format_args!("{why}"));
        self.program.cost.flop = lines.flop() * self.program.operands[1].len as f64;
        lines.dispatch(form, self.profile, &mut self.program);
        Ok(())
    }

    fn register(&mut self, whole_groups: bool) -> Result<()> {
        let stencil = self.stencil;
        let mut registers = Registers {
            filter: stencil.filter,
            boundary: stencil.boundary,
            bytes: self.bytes(),
            vectors: whole_groups,
            rows: 1,
            planes: 1,
            lines: None,
        };
        let asked = stencil.outputs.is_some();
        [registers.rows, registers.planes] = stencil.outputs.unwrap_or(match stencil.axes {
            1 => [1, 1],
            2 if self.profile.is_cpu() => [4, 1],
            // H100, 8192 x 8192: 3 x 3 2875 GB/s (8: 2825), 5 x 5 2813 (8: 2700); 7 x 7 by 8 2409 (4: 2341).
            2 if stencil.taps() <= 25 => [4, 1],
            2 => [8, 1],
            _ if self.profile.is_cpu() => [1, 2],
            // H100, 512^3, 3 x 3 x 3: 2518 GB/s; 2 x 2 2414, 2 x 4 2231, 4 x 4 1222.
            _ => [4, 2],
        });
        while !asked && registers.terms() > MOST_TERMS && registers.planes * registers.rows > 1 {
            if registers.planes > 1 {
                registers.planes /= 2;
            } else {
                registers.rows /= 2;
            }
        }
        // Outputs that were asked for may take longer to compile.
        if registers.terms() > if asked { 16 * MOST_TERMS } else { MOST_TERMS } {
            return Err(err!(
                Unsupported,
                "{}: the variant `register` writes out {} products; at most {MOST_TERMS} weights suit it; use `auto`",
                self.name,
                registers.terms()
            ));
        }
        let wide = registers.wide();
        let across = stencil.extents[2].div_ceil(wide).next_power_of_two();
        let lanes = match stencil.axes {
            1 => [1, 1, WORKGROUP_SIZE],
            2 => [1, WORKGROUP_SIZE / across.min(32), across.min(32)],
            _ => [2, WORKGROUP_SIZE / 2 / across.min(32), across.min(32)],
        };
        let own = [registers.planes, registers.rows, wide];
        let tile = [0, 1, 2].map(|i| lanes[i] * own[i]);
        let what = format!("{} outputs an invocation, sums in registers", stencil.shape(own));
        self.note(&what, Axis::reuse(&stencil.axes_of(own)));
        let cells = own.iter().product::<usize>() as f64;
        self.traffic((halo_bytes(own, stencil.filter) / 4) as f64 / cells);
        let spec = self
            .spec(Some(tile), whole_groups)
            .constant("LANES_X", lanes[2] as u32)
            .constant("LANES_Y", lanes[1] as u32)
            .constant("LANES_Z", lanes[0] as u32);
        let source = Source::generated(&registers, "conv/register", || registers.text());
        let kernel = Kernel { source, spec, entry: "stencil_register", trusted: true };
        self.launch(kernel, Some(tile), whole_groups && !self.bytes());
        Ok(())
    }

    /// Says how it is tiled, and how often it reads what it has loaded.
    fn note(&mut self, what: &str, reuse: f64) {
        self.program.decision.because(format_args!("{what}: reuse {reuse:.2}"));
    }

    /// Each output asks memory for so many inputs.
    fn traffic(&mut self, inputs: f64) {
        let [input, output] = [0, 1].map(|i| self.program.operands[i].bytes() as f64);
        self.program.traffic = Some(input * inputs + output);
    }

    fn spec(&self, tile: Option<[usize; 3]>, vectors: bool) -> Spec {
        let stencil = self.stencil;
        let [z, y, x] = stencil.filter.map(|f| f as u32);
        let element = if self.bytes() { "conv/stencil_bytes" } else { "conv/stencil_floats" };
        let mut spec = Spec::new()
            .constant("FILTER_X", x)
            .constant("FILTER_Y", y)
            .constant("FILTER_Z", z)
            .flag("ZERO", stencil.boundary == Boundary::Zero)
            .flag("WRAP", stencil.boundary == Boundary::Wrap)
            .flag("UNIFORM", self.uniform())
            .flag("VECTORS", vectors)
            .slot("element", Fragment::Library(element));
        if self.uniform() {
            spec = spec.constant("WEIGHT_VECTORS", weight_vectors(stencil.taps()) as u32);
        }
        let Some([z, y, x]) = tile.map(|t| t.map(|n| n as u32)) else { return spec };
        let fragment = ["conv/conv1d_tile", "conv/conv2d_tile", "conv/conv3d_tile"][stencil.axes - 1];
        spec.slot("tile", Fragment::Library(fragment))
            .constant("TILE_X", x)
            .constant("TILE_Y", y)
            .constant("TILE_Z", z)
    }

    /// Dispatches the kernel, over tiles or over groups of outputs.
    fn launch(&mut self, kernel: Kernel, tile: Option<[usize; 3]>, vectors: bool) {
        let [d, h, w] = self.stencil.extents;
        let group = if self.bytes() || vectors { 4 } else { 1 };
        let groups = w.div_ceil(group);
        let (tiles, workgroups) = match tile {
            Some([z, y, x]) => {
                ([w.div_ceil(x), h.div_ceil(y)], w.div_ceil(x) * h.div_ceil(y) * d.div_ceil(z))
            }
            None => ([0, 0], (groups * h * d).div_ceil(WORKGROUP_SIZE)),
        };
        let params = Params {
            w: w as u32,
            h: h as u32,
            d: d as u32,
            groups: groups as u32,
            tiles_x: tiles[0] as u32,
            tiles_y: tiles[1] as u32,
            tiles: workgroups as u32,
            rows: (h * d) as u32,
        };
        let kernel = self.program.kernel(kernel);
        let mut bindings: Vec<_> = (0..2).map(|i| Binding::operand(i, &self.program.operands)).collect();
        let (grid, weights) = (Grid::fold(workgroups as u64), &self.stencil.weights);
        if !self.uniform() {
            bindings.push(self.program.constant(bytemuck::cast_slice(weights).to_vec()));
            self.program.dispatch(kernel, &params, bindings, grid);
            return;
        }
        macro_rules! with_weights {
            ($($ty:ident[$vectors:literal]),*) => {
                match weight_vectors(weights.len()) {$(
                    $vectors => {
                        let Params { w, h, d, groups, tiles_x, tiles_y, tiles, rows } = params;
                        let mut all = [[0.0; 4]; $vectors];
                        all.as_flattened_mut()[..weights.len()].copy_from_slice(weights);
                        let params = $ty { w, h, d, groups, tiles_x, tiles_y, tiles, rows, weights: all };
                        self.program.dispatch(kernel, &params, bindings, grid);
                    }
                )* _ => {}}
            };
        }
        with_weights!(Params64[16], Params512[128], Params4096[1024], ParamsMost[4094]);
    }
}

/// Vec4s of the uniform that holds so many weights: few sizes, so that kernels are few.
fn weight_vectors(taps: usize) -> usize {
    match taps {
        0..=64 => 16,
        65..=512 => 128,
        513..=4096 => 1024,
        _ => 4094,
    }
}

/// Reads of a tile's outputs that stay in the tile. A filter beyond twice its side reaches no more of it.
fn reads_in_tile(axes: &[Axis]) -> u64 {
    let within: Vec<_> = axes.iter().map(|a| Axis::inside(a.tile, a.mask.min(2 * a.tile - 1))).collect();
    reads_from_shared(&within)
}

/// Uses of an element, and with threads over the halo too those that compute.
pub(crate) fn facts(subject: &Subject<'_>) -> Option<Vec<Fact>> {
    let spec = &subject.program.kernels.first()?.spec;
    let filter = ["FILTER_X", "FILTER_Y", "FILTER_Z"].map(|name| spec.number(name));
    let [x, y, z] = [filter[0]?, filter[1]?, filter[2]?];
    let taps = u64::from(x) * u64::from(y) * u64::from(z);
    let [input, output] = [0, 1].map(|i| subject.program.operands.get(i).map_or(0.0, |o| o.bytes() as f64));
    let loaded = (subject.program.traffic? - output) / input;
    let mut facts = vec![fact("reuse", taps as f64 / loaded, "uses of an element loaded")];
    if subject.program.variant() == "strategy2" {
        // Invocations are counted over the tile with its halo, and those of the tile compute.
        let tile = ["TILE_X", "TILE_Y", "TILE_Z"].map(|name| spec.number(name));
        let tile = [tile[0]?, tile[1]?, tile[2]?];
        let block = [tile[0] + x - 1, tile[1] + y - 1, tile[2] + z - 1];
        let inside = |[x, y, z]: [u32; 3]| u32::from(x < tile[0] && y < tile[1] && z < tile[2]);
        let d = divergence([1; 3], block, subject.subgroup, inside);
        facts.push(fact("divergent", d.divergent as f64, format!("of {} subgroups that compute", d.warps)));
        let axes: Vec<_> =
            [0, 1, 2].map(|i| Axis::inside(tile[i].into(), [x, y, z][i].into())).into_iter().collect();
        let busy = axes.iter().map(|a| a.tile).product::<u64>() as f64;
        let all = axes.iter().map(Axis::loads).product::<u64>() as f64;
        facts.push(fact("computing", 100.0 * busy / all, "% of invocations"));
    }
    Some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn image(h: usize, w: usize, fh: usize, fw: usize) -> Stencil {
        Stencil::new("conv2d", 2, [1, h, w], [1, fh, fw], &vec![1.0; fh * fw])
    }

    fn by(stencil: &Stencil, variant: &str) -> Stencil {
        Stencil { variant: variant.into(), ..stencil.clone() }
    }

    fn why(stencil: &Stencil, variant: &str) -> (String, f64) {
        let program = by(stencil, variant).lower(DType::F32, &DeviceProfile::h100()).unwrap();
        (program.decision.why.clone(), program.traffic.unwrap())
    }

    #[test]
    fn reports_state_the_reuse_of_the_formulas() {
        let stencil = image(160, 160, 9, 9);
        let bytes = 4.0 * 160.0 * 160.0;
        let (text, traffic) = why(&stencil, "strategy1");
        assert!(text.ends_with("tile of 16 x 16 outputs and its halo: reuse 36.00"), "{text}");
        assert_eq!(traffic, bytes * (1.0 + 576.0 / 256.0));
        let (text, _) = why(&image(160, 160, 9, 5), "strategy3");
        assert!(text.ends_with("tile of 16 x 16, 9176 of 11520 reads in it: reuse 4.43"), "{text}");
        assert_eq!(why(&image(160, 160, 3, 3), "strategy3").1, bytes * (1.0 + 444.0 / 256.0));
        assert_eq!(why(&image(160, 160, 3, 3), "naive").1, bytes * 10.0);
        // The line and the table say the same, also of a filter as large as the image.
        let op = Stencil { variant: "strategy3".into(), ..image(150, 140, 65, 63) };
        let program = op.lower(DType::F32, &DeviceProfile::h100()).unwrap();
        let subject = Subject { program: &program, interfaces: &[], subgroup: 32 };
        let reuse = facts(&subject).unwrap()[0].value;
        let text = &program.decision.why;
        assert!(text.ends_with(&format!("reuse {reuse:.2}")), "{reuse}: {text}");
        // 1024 invocations: 32 x 32, of which 30 x 30 compute.
        let (text, _) = why(&image(160, 160, 3, 3), "strategy2");
        assert!(text.contains("tile of 30 x 30 outputs"), "{text}");
        // A filter that reaches beyond the tile from everywhere.
        assert_eq!(reads_in_tile(&[Axis::inside(16, 101)]), 256);
    }

    #[test]
    fn the_choice_follows_device_and_filter() {
        let (h100, portable) = (DeviceProfile::h100(), DeviceProfile::webgpu_defaults());
        let chosen = |s: &Stencil, p: &DeviceProfile| s.lower(DType::F32, p).unwrap().variant();
        assert_eq!(chosen(&image(500, 500, 5, 5), &h100), "register");
        assert_eq!(chosen(&image(500, 500, 31, 31), &h100), "strategy1");
        assert_eq!(chosen(&image(500, 500, 101, 101), &portable), "constant");
        assert_eq!(chosen(&image(500, 500, 129, 129), &portable), "naive");
        assert_eq!(chosen(&image(500, 500, 5, 5), &DeviceProfile::mesa()), "register");
        assert_eq!(chosen(&image(500, 500, 9, 9), &DeviceProfile::mesa()), "constant");
    }

    #[test]
    fn what_a_device_has_not_is_refused_with_the_numbers() {
        let portable = DeviceProfile::webgpu_defaults();
        for (side, variant, number) in [
            (129, "constant", "66564 bytes of uniform"),
            (51, "strategy1", "17424 bytes"),
            (17, "strategy2", "289 invocations"),
            (17, "register", "289 products"),
        ] {
            let stencil = by(&image(500, 500, side, side), variant);
            let e = stencil.lower(DType::F32, &portable).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
            assert!(e.to_string().contains(number), "{e}");
        }
    }

    #[test]
    fn tiles_of_inputs_hold_the_most_outputs() {
        let volume = Stencil::new("conv3d", 3, [64; 3], [3; 3], &[1.0; 27]);
        assert_eq!(volume.inner_tile(DType::F32, 256), Some([4, 4, 5]));
        let line = Stencil::new("conv1d", 1, [1, 1, 999], [1, 1, 5], &[1.0; 5]);
        assert_eq!(line.inner_tile(DType::F32, 256), Some([1, 1, 252]));
        assert_eq!(image(99, 99, 5, 5).inner_tile(DType::U8, 256), Some([1, 12, 12]));
    }
}
