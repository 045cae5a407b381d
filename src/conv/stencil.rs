//! The common part of the three filters: checks, choice of variant and tiles. Extents are z, y, x.

mod lowering;

use crate::analysis::Axis;
use crate::program::prelude::*;
pub(super) use lowering::element_fragments;
pub(crate) use lowering::facts;
use lowering::{StencilLowering, StencilWay};

/// The value that a filter reads outside its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Boundary {
    /// Reads 0.
    #[default]
    Zero,
    /// Reads the element at the edge.
    Clamp,
    /// Reads the element on the other side: the input is periodic.
    Wrap,
}

impl Boundary {
    /// Every boundary.
    pub const ALL: [Boundary; 3] = [Self::Zero, Self::Clamp, Self::Wrap];

    /// Returns the name, as on the command line of the `op` example.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Clamp => "clamp",
            Self::Wrap => "wrap",
        }
    }

    /// Finds the boundary of that name.
    ///
    /// ```
    /// use tilework::conv::Boundary;
    /// assert_eq!(Boundary::from_name("wrap"), Some(Boundary::Wrap));
    /// assert_eq!(Boundary::from_name("mirror"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|b| b.name() == name)
    }

    /// Adds the boundary to the spec of a kernel that folds coordinates. `far`: a filter is longer than its axis.
    pub(crate) fn add_to(self, spec: Spec, far: bool) -> Spec {
        let wrap = self == Self::Wrap;
        spec.flag("ZERO", self == Self::Zero).flag("WRAP", wrap).flag("FAR", wrap && far)
    }

    /// Reads the option `boundary`.
    pub(crate) fn asked(settings: &Settings) -> Result<Self> {
        Ok(Self::from_name(settings.choice("boundary")?).unwrap_or_default())
    }
}

/// A filter along one, two or three axes; the missing ones have extent 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stencil {
    pub(crate) op: &'static str,
    pub(crate) axes: usize,
    pub(crate) extents: [usize; 3],
    pub(crate) filter: [usize; 3],
    /// None if the filter is an operand.
    pub(crate) weights: Option<Vec<f32>>,
    pub(crate) boundary: Boundary,
    pub(super) variant: String,
    /// Rows and planes of outputs of a thread of `register`.
    pub(super) outputs: Option<[usize; 2]>,
}

/// The outputs that one thread of the variant `register` of a filter computes: powers of 2 from 1 to 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadOutputs {
    /// Outputs along y.
    pub rows: usize,
    /// Outputs along z.
    pub planes: usize,
}

/// The builder methods that the three descriptors share.
macro_rules! stencil_builders {
    ($desc:ident, $variants:expr) => {
        impl $desc {
            /// Sets what lies outside the input; [`Boundary::Zero`] by default.
            #[must_use]
            pub fn boundary(mut self, boundary: Boundary) -> Self {
                self.stencil.boundary = boundary;
                self
            }

            crate::program::variants!(choose stencil.variant);

            /// Sets the outputs that a thread of the variant `register` computes. The default suits the device.
            #[must_use]
            pub fn outputs(mut self, outputs: super::stencil::ThreadOutputs) -> Self {
                self.stencil.outputs = Some([outputs.rows, outputs.planes]);
                self
            }

            crate::program::variants!(list $variants);

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
        "a workgroup has the size of its tile of outputs, and some threads load the halo too",
    ),
    Variant::portable(
        "strategy2",
        "a workgroup has the size of its tile of inputs, and threads of the halo compute nothing",
    ),
    Variant::portable("strategy3", "the tile in workgroup memory, its halo left to the caches"),
    Variant::portable("register", "several outputs for each thread, sums in registers, vec4 loads"),
    Variant::portable("separable", "a filter that is a product of lines, as sums along one axis after the other"),
];
/// The variants for one axis, which has nothing to separate.
pub(super) const VARIANTS_OF_LINES: &[Variant] = VARIANTS.split_at(VARIANTS.len() - 1).0;

pub(super) const OPTIONS: &[Setting] = &[
    Setting::word("boundary", || Boundary::ALL.map(Boundary::name).to_vec()),
    Setting::text("outputs", OUTPUTS, ""),
    OPERAND,
];
const OUTPUTS: &str = "ROWS,PLANES";
const OPERAND: Setting = Setting::flag("filter-operand");

/// Reads the filter of `N` axes and its operands.
pub(super) fn asked<const N: usize>(asked: &mut Asked<'_>) -> Result<(DType, Vec<Role>, Stencil)> {
    let (input, extents) = asked.array::<N>("input")?;
    let (filter, shape) = asked.free_of::<N>("filter", [5; N], DType::F32)?;
    let settings = asked.settings();
    let in_space = |extents: [usize; N]| {
        let mut all = [1; 3];
        all[3 - N..].copy_from_slice(&extents);
        all
    };
    let operand = settings.has(OPERAND.name);
    let weights = (!operand).then(|| filter.data().to_f32().into_owned());
    let mut stencil = Stencil::new(asked.name(), N, in_space(extents), in_space(shape), weights);
    stencil.boundary = Boundary::asked(settings)?;
    asked.variant().clone_into(&mut stencil.variant);
    if settings.has("outputs") {
        stencil.outputs = Some(settings.numbers("outputs", OUTPUTS)?);
    }
    let (dtype, output) = (input.dtype(), Role::Result(input.shape().to_vec()));
    let filter = operand.then_some(Role::Given(filter));
    Ok((dtype, [Role::Given(input)].into_iter().chain(filter).chain([output]).collect(), stencil))
}

/// Weights of the largest uniform: WebGPU's 64 KiB less the other parameters.
const MAX_CONSTANT: usize = 4 * 4094;

/// Maximum elements: coordinates of 31 bits address them, and those beyond the ends.
const MAX_ELEMENTS: usize = (1 << 31) - (1 << 17);

/// Maximum coordinate that a filter reads, with room for those of a tile beyond the end.
const MAX_COORDINATE: usize = (1 << 31) - (1 << 16);

/// Terms of an output that every driver adds, with room for the rest of a thread's loops.
const MAX_EVERYWHERE: usize = 40_000;
const _: () = assert!(runs_everywhere(3 * MAX_EVERYWHERE / 2));

/// Multiply-adds in the text of a kernel, so that drivers compile it in a second.
const MAX_TERMS: usize = 256;

/// Weights up to which a processor's driver compiles them in a tenth of a second.
const MAX_TERMS_ON_CPU: usize = 64;

impl Stencil {
    pub(super) fn new(
        op: &'static str, axes: usize, extents: [usize; 3], filter: [usize; 3], weights: Option<Vec<f32>>,
    ) -> Self {
        let (boundary, variant) = (Boundary::Zero, "auto".to_owned());
        Self { op, axes, extents, filter, weights, boundary, variant, outputs: None }
    }

    /// The same filter with weights of the host.
    pub(crate) fn holding(&self, weights: &[f32]) -> Self {
        Self { weights: Some(weights.to_vec()), ..self.clone() }
    }

    fn name(&self) -> String {
        format!("{} of {} under {}", self.op, self.shape(self.extents), self.shape(self.filter))
    }

    fn shape(&self, extents: [usize; 3]) -> String {
        extents[3 - self.axes..].iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
    }

    pub(crate) fn taps(&self) -> usize {
        self.filter.iter().product()
    }

    /// Says if a filter is longer than its axis, which then wraps around more than once.
    fn far(&self) -> bool {
        self.filter.iter().zip(self.extents).any(|(f, n)| *f > n)
    }

    pub(super) fn lower(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let name = self.name();
        let image = self.axes == 2;
        if !(matches!(dtype, DType::F32 | DType::F16) || dtype == DType::U8 && image) {
            let types = if image { "f32, f16 and u8" } else { "f32 and f16" };
            return Err(err!(Unsupported, "{name}: elements are {dtype}, but it takes {types}; convert the input"));
        }
        self.check_filter(&name, dtype)?;
        let len = elements(&name, "input", &self.extents)?;
        let input = Operand { name: "input", dtype, len, access: Access::Read };
        let output = Operand { name: "output", access: Access::Write, ..input };
        let filter = Operand { name: "filter", dtype: DType::F32, len: self.taps(), access: Access::Read };
        let operands = match self.weights {
            Some(_) => vec![input, output],
            None => vec![input, filter, output],
        };
        let remedy = "filter blocks that overlap by the filter, in separate calls";
        profile.check_bindings(&name, &operands, remedy)?;
        profile.check_count(&name, &operands[0], MAX_ELEMENTS, remedy)?;
        if len > 0 {
            self.check_extents(&name, dtype, profile)?;
        }
        let variants = if self.axes == 1 { VARIANTS_OF_LINES } else { VARIANTS };
        let (variant, decision) = choose(self.op, &self.variant, variants, profile, || self.policy(dtype, profile))?;
        let way = StencilWay::of(variant.name);
        let mut program = Program::new(self.op, decision);
        let work = 2.0 * self.taps() as f64 * len as f64;
        program.cost = Cost::of(work, &operands);
        program.operands = operands;
        if len > 0 {
            StencilLowering { stencil: self, way, name, dtype, profile, program }.dispatch()
        } else {
            Ok(program)
        }
    }

    fn check_filter(&self, name: &str, dtype: DType) -> Result<()> {
        let (taps, weights) = (elements(name, "the filter", &self.filter)?, self.weights.as_deref());
        let weights = weights.unwrap_or_default();
        if self.weights.is_some() && taps != weights.len() {
            return Err(err!(
                Shape,
                "{name}: {} weights are given, but a filter of {} has one for each place",
                weights.len(),
                self.shape(self.filter)
            ));
        }
        if self.filter.iter().any(|n| n % 2 == 0) {
            return Err(err!(
                InvalidArgument,
                "{name}: the filter has an even extent, and so no middle; every extent must be odd: pad it with zeros"
            ));
        }
        if let Some(at) = weights.iter().position(|w| !w.is_finite()) {
            let weight = weights[at];
            return Err(err!(InvalidArgument, "{name}: weight {at} is {weight}; weights must be finite"));
        }
        let total: f64 = weights.iter().map(|w| f64::from(w.abs())).sum();
        if dtype == DType::U8 && total > 1e30 {
            return Err(err!(
                InvalidArgument,
                "{name}: the weights add up to {total:.1e}, above 1e30, the limit for elements of u8; scale them down"
            ));
        }
        if let Some([rows, planes]) = self.outputs
            && (![rows, planes].iter().all(|n| n.is_power_of_two() && *n <= 16) || self.axes < 3 && planes > 1)
        {
            return Err(err!(
                InvalidArgument,
                "{name}: {rows} x {planes} outputs for each thread; rows and planes must be powers of 2 up to 16, and \
                 planes 1 except in three dimensions"
            ));
        }
        Ok(())
    }

    fn check_extents(&self, name: &str, dtype: DType, profile: &DeviceProfile) -> Result<()> {
        if self.filter.iter().zip(self.extents).any(|(f, n)| f / 2 + n > MAX_COORDINATE) {
            return Err(err!(
                TooLarge,
                "{name}: an extent and half the filter along it are above {MAX_COORDINATE}; crop the filter"
            ));
        }
        let group = if dtype == DType::F32 { 1 } else { 4 };
        let separable = StencilWay::of(&self.variant) == StencilWay::Separable;
        if profile.ends_loops() && self.taps() * group > MAX_EVERYWHERE && !separable {
            return Err(err!(
                TooLarge,
                "{name}: {} weights are above {}, the maximum on {}, whose driver ends long loops; filter in passes",
                self.taps(),
                MAX_EVERYWHERE / group,
                profile.name
            ));
        }
        Ok(())
    }

    /// Chooses a variant and says why.
    fn policy(&self, dtype: DType, profile: &DeviceProfile) -> (&'static str, String) {
        // A buffer of the caller's need not be one that a uniform can be.
        let (taps, constant) = (self.taps(), self.weights.is_some() && self.taps() <= MAX_CONSTANT);
        // 125 weights, us of others and `register` (Mesa 22.3): `naive` 75, 104 for 4 x 6 x 6, 675, 221 for 3 x 4 x 58;
        // `constant` 89, 240 for 2 x 19 x 10, 15,974, 3936 for 20 x 30 x 40.
        let pays = if self.weights.is_none() { 256 } else { 1 << 12 };
        let outputs = self.extents.iter().product::<usize>();
        let many = self.axes == 3 && outputs >= pays;
        let most_terms = if profile.quirks.slow_compiler && !many { MAX_TERMS_ON_CPU } else { MAX_TERMS };
        let fits = halo_bytes(self.tile(dtype), self.filter) <= profile.limits.max_workgroup_bytes as usize;
        // A thread of `register` computes four rows. Mesa 22.3's software driver, 1 x 383: 112 us, `constant` 37.
        let flat = profile.quirks.serial_workgroups && constant && self.axes == 2 && self.extents[1] < 2;
        // And of `strategy1` (H100, Vulkan, driver 580.159.04): 24 x 30 x 40 8.2, 11.3; 60 x 64 x 64 18.4, 11.6.
        let short = self.axes == 3 && taps > MAX_TERMS_ON_CPU && outputs < 1 << 16 && fits;
        if taps <= most_terms && !flat && (profile.quirks.serial_workgroups || !short) {
            ("register", format!("{taps} weights are few enough to write every product out"))
        } else if profile.quirks.serial_workgroups && constant {
            ("constant", "a processor's caches replace tiles, and its barriers are slow".to_owned())
        } else if fits && !profile.quirks.serial_workgroups {
            ("strategy1", format!("{taps} weights; a tile with its halo fits workgroup memory"))
        } else if constant {
            ("constant", "a tile with its halo is above workgroup memory".to_owned())
        } else {
            ("naive", format!("{taps} weights are too many for tiles and registers"))
        }
    }

    /// Outputs of a workgroup in `strategy1` and `strategy3`.
    fn tile(&self, dtype: DType) -> [usize; 3] {
        match (self.axes, dtype) {
            (1, DType::F32) => [1, 1, 256],
            (1, _) => [1, 1, 1024],
            (2, DType::F32) => [1, 16, 16],
            (2, _) => [1, 32, 32],
            (_, DType::F32) => [4, 8, 8],
            _ => [4, 8, 32],
        }
    }

    /// Outputs of a workgroup in `strategy2`: as many as `threads` inputs allow.
    fn inner_tile(&self, dtype: DType, threads: usize) -> Option<[usize; 3]> {
        let halo = self.filter.map(|f| f - 1);
        let sides = |axis: usize| 1..=if axis + self.axes < 3 { 1 } else { threads };
        let mut best: Option<[usize; 3]> = None;
        for z in sides(0).take_while(|z| z + halo[0] <= threads) {
            for y in sides(1).take_while(|y| (z + halo[0]) * (y + halo[1]) <= threads) {
                let wide = threads / ((z + halo[0]) * (y + halo[1]));
                let x = wide.saturating_sub(halo[2]);
                let x = if dtype == DType::F32 { x } else { x / 4 * 4 };
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

fn halo_bytes(tile: [usize; 3], filter: [usize; 3]) -> usize {
    tile.iter().zip(filter).map(|(t, f)| t + f - 1).product::<usize>().saturating_mul(4)
}

#[cfg(test)]
mod tests;
