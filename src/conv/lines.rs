//! Filters that are products of lines, one for each axis: in registers, by tiles, or in a dispatch for each axis.
//! For separable filters, and for images, whose neighbours along x have the other channels between them.

use super::Boundary;
use super::register::Registers;
use super::stencil::element_fragments;
use crate::analysis::Axis;
use crate::program::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinesForm {
    /// One kernel, sums in registers.
    Register,
    /// One kernel, sums along x in workgroup memory.
    Tiled,
    /// A kernel for each axis, sums in memory between them.
    Passes,
}

impl LinesForm {
    /// The name of the variant that runs lines this way.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Tiled => "fused",
            Self::Passes => "passes",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Register, Self::Tiled, Self::Passes].into_iter().find(|f| f.name() == name)
    }
}

/// The work: extents and lines of z, y and x.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FilterLines {
    /// Planes, rows, and elements in a row.
    pub(crate) extents: [usize; 3],
    /// Elements between neighbours along x.
    pub(crate) step: usize,
    /// Weights of each line; 1 for an axis that is not filtered.
    pub(crate) lines: [Vec<f32>; 3],
    pub(crate) boundary: Boundary,
    /// Fills the slot `finish` with a function that turns sums into results.
    pub(crate) finish: Spec,
}

/// Fields that every kernel has before the weights.
macro_rules! params {
    ($($(#[$meta:meta])* $vis:vis $name:ident $([$vectors:expr])?;)*) => {$(
        kernel_params! {
            $(#[$meta])*
            $vis struct $name {
                w: u32, h: u32, d: u32, groups: u32, tiles_x: u32, tiles_y: u32, tiles: u32, step: u32,
                radius_x: u32, radius_y: u32, extent: u32, pitch: u32,
                $(weights: [[f32; 4]; $vectors],)?
            }
        }
    )*};
}
params! {
    pub(crate) LinesParams;
    Params64[64];
    Params512[512];
    ParamsMax[4092];
}

/// Weights of the largest uniform: WebGPU's 64 KiB less the other parameters.
const MAX_WEIGHTS: usize = 4092;
/// Multiply-adds of vec4s in the text of a kernel, so that drivers compile it in about a second, and in a tenth of
/// one on a processor.
const MAX_TERMS: [usize; 2] = [384, 64];
const WORKGROUP_SIZE: usize = 256;
/// Groups across a tile.
const TILE_WIDTH: usize = 32;
/// Rows of a tile with those above and below: as few as suffice, since more tiles then run side by side.
const TILE_ROWS: [usize; 3] = [32, 64, 96];

impl LinesParams {
    /// Describes work on rows of these extents (planes, rows, elements in a row).
    pub(crate) fn of([d, h, w]: [usize; 3], step: usize) -> Self {
        let groups = w.div_ceil(4) as u32;
        let (w, h, d, step) = (w as u32, h as u32, d as u32, step as u32);
        let (tiles_x, tiles_y, tiles, radius_x, radius_y, extent, pitch) = (0, 0, 0, 0, 0, 0, 0);
        Self { w, h, d, groups, tiles_x, tiles_y, tiles, step, radius_x, radius_y, extent, pitch }
    }
}

impl FilterLines {
    fn radius(&self, axis: usize) -> usize {
        self.lines[axis].len() / 2
    }

    fn flat(&self) -> bool {
        self.lines[0].len() == 1
    }

    fn groups(&self) -> usize {
        self.extents[2].div_ceil(4)
    }

    /// Says if no word or vec4 belongs to two rows.
    fn whole(&self) -> bool {
        self.extents[2].is_multiple_of(4)
    }

    /// Outputs of a thread in registers, if some choice keeps the text short enough.
    fn registers(&self, dtype: DType, profile: &DeviceProfile) -> Option<Registers> {
        let filter = [0, 1, 2].map(|i| self.lines[i].len());
        let most = MAX_TERMS[usize::from(profile.quirks.slow_compiler)];
        let candidates: &[[usize; 2]] = match (self.flat(), profile.quirks.slow_compiler) {
            (true, false) => &[[8, 1], [4, 1]],
            (true, true) => &[[4, 1], [2, 1]],
            (false, false) => &[[4, 2], [2, 2], [2, 1], [1, 1]],
            (false, true) => &[[1, 2], [1, 1]],
        };
        let all = candidates.iter().map(|&[rows, planes]| Registers {
            filter,
            packed: dtype != DType::F32,
            vectors: true,
            rows,
            planes,
            lines: Some(self.step),
        });
        // Checks the lengths first: the text of very long lines is not worth counting.
        let short = filter.iter().all(|f| *f <= most);
        all.into_iter().find(|r| short && r.terms() <= most)
    }

    /// Rows of outputs of a tile, and all rows that it sums along x.
    fn tile(&self, profile: &DeviceProfile) -> Option<[usize; 2]> {
        let halo = 2 * self.radius(1);
        let room = profile.limits.max_workgroup_bytes as usize / (16 * TILE_WIDTH);
        let fitting = TILE_ROWS.into_iter().filter(|rows| *rows <= room);
        let tiles = fitting.map(|rows| [rows.saturating_sub(halo) / 4 * 4, rows]);
        // If most of a tile is halo, sums are better kept in memory.
        let good = |share: usize| tiles.clone().find(|[own, _]| *own > 0 && own * share >= halo);
        good(1).or_else(|| good(2))
    }

    /// Says in words what this way needs and the device or the shape lacks, if anything.
    pub(crate) fn missing(&self, form: LinesForm, dtype: DType, profile: &DeviceProfile) -> Option<String> {
        let weights: usize = self.lines.iter().map(Vec::len).sum();
        let longest = self.lines.iter().map(Vec::len).max().unwrap_or(0);
        match form {
            LinesForm::Register if !self.whole() => {
                Some(format!("rows that are multiples of 4 long (these have {} elements)", self.extents[2]))
            }
            LinesForm::Register if self.registers(dtype, profile).is_none() => {
                Some(format!("lines short enough to write every product out (these have {weights} weights)"))
            }
            LinesForm::Tiled if !self.flat() => Some("a filter of two dimensions".into()),
            LinesForm::Tiled if weights > MAX_WEIGHTS || self.tile(profile).is_none() => Some(format!(
                "workgroup memory for a tile with {} rows above and below it (there are {} bytes)",
                self.radius(1),
                profile.limits.max_workgroup_bytes
            )),
            LinesForm::Passes if longest > MAX_WEIGHTS => {
                Some(format!("lines of at most {MAX_WEIGHTS} weights (the longest has {longest})"))
            }
            LinesForm::Passes if self.scratch() > profile.limits.max_storage_binding => Some(format!(
                "{} bytes of scratch in one binding (there are {})",
                self.scratch(),
                profile.limits.max_storage_binding
            )),
            _ => None,
        }
    }

    /// The fastest way here, and why; `None` if nothing fits.
    pub(crate) fn best(&self, dtype: DType, profile: &DeviceProfile) -> Option<(LinesForm, &'static str)> {
        let fits = |form: &LinesForm| self.missing(*form, dtype, profile).is_none();
        let mut forms = vec![
            (LinesForm::Register, "lines short enough to write every product out"),
            (LinesForm::Tiled, "a tile with the rows above and below it fits workgroup memory"),
            (LinesForm::Passes, "a dispatch for each axis"),
        ];
        // u8, radius 4, us of tiles, passes (H100, Vulkan, driver 580.159.04): 400 x 401 25.8, 18.9, 2000 x 2001 62.8,
        // 50.4. On a processor barriers are slow, and caches replace tiles.
        if profile.quirks.serial_workgroups || self.radius(1) > 3 {
            forms.swap(1, 2);
        }
        forms.into_iter().find(|(form, _)| fits(form))
    }

    /// Bytes of the sums between two passes.
    fn scratch(&self) -> u64 {
        16 * (self.groups() * self.extents[0] * self.extents[1]) as u64
    }

    pub(crate) fn flop(&self) -> f64 {
        2.0 * self.lines.iter().map(|l| if l.len() > 1 { l.len() } else { 0 }).sum::<usize>().max(1) as f64
    }

    /// Appends the dispatches; `program` has its two operands. Nothing may be [`missing`](Self::missing).
    pub(crate) fn dispatch(&self, form: LinesForm, profile: &DeviceProfile, program: &mut Program) {
        let dtype = program.operands[0].dtype;
        match form {
            LinesForm::Register => {
                if let Some(registers) = self.registers(dtype, profile) {
                    self.in_registers(registers, program);
                }
            }
            LinesForm::Tiled => {
                if let Some([own, all]) = self.tile(profile) {
                    self.by_tiles(own, all, program);
                }
            }
            LinesForm::Passes => self.by_passes(program),
        }
    }

    /// Notes how often each loaded element is read, by the formula of the whole filter.
    fn note(program: &mut Program, what: &str, axes: &[Axis]) {
        program.decision.because(format_args!("{what}: reuse {:.2}", Axis::reuse(axes)));
    }

    fn axes(&self, tile: [usize; 3]) -> Vec<Axis> {
        (0..3).map(|i| Axis::inside(tile[i] as u64, self.lines[i].len() as u64)).collect()
    }

    /// Notes the bytes that workgroups request from memory, with `inputs` inputs for each output.
    fn traffic(program: &mut Program, inputs: f64) {
        let [input, output] = [0, 1].map(|i| program.operands[i].bytes() as f64);
        program.traffic = Some(input * inputs + output);
    }

    fn params(&self) -> LinesParams {
        let radii = LinesParams {
            radius_x: self.radius(2) as u32,
            radius_y: self.radius(1) as u32,
            ..LinesParams::of(self.extents, self.step)
        };
        LinesParams { extent: radii.h, pitch: radii.groups, ..radii }
    }

    fn boundary(&self, spec: Spec) -> Spec {
        let [d, h, w] = self.extents;
        let far = [d, h, w / self.step].iter().zip(&self.lines).any(|(n, line)| line.len() > *n);
        self.boundary.add_to(spec, far)
    }

    fn in_registers(&self, registers: Registers, program: &mut Program) {
        let [d, h, w] = self.extents;
        let across = (w / 4).next_power_of_two().min(32);
        // Planes of an image are not neighbours: no workgroup has more than one.
        let deep = if self.flat() { 1 } else { 2 };
        let lanes = [deep, WORKGROUP_SIZE / deep / across, across];
        let own = [registers.planes, registers.rows, 4];
        let tile = [0, 1, 2].map(|i| lanes[i] * own[i]);
        let axes = self.axes(own);
        Self::note(program, &format!("{} x {} x 4 outputs for each thread, sums in registers", own[0], own[1]), &axes);
        let loads: u64 = axes.iter().map(Axis::loads).product();
        Self::traffic(program, loads as f64 / own.iter().product::<usize>() as f64);
        let fragment = if d > 1 { "conv/filter3d_tile" } else { "conv/filter2d_tile" };
        let spec = self
            .boundary(self.finish.clone())
            .flag("VECTORS", true)
            .flag("LINES", true)
            .slot("element", Fragment::Library(element_fragments(program.operands[0].dtype)))
            .slot("tile", Fragment::Library(fragment))
            .constant("TILE_X", tile[2] as u32)
            .constant("TILE_Y", tile[1] as u32)
            .constant("TILE_Z", tile[0] as u32);
        let kernel = registers.kernel(spec);
        let tiles = [d.div_ceil(tile[0]), h.div_ceil(tile[1]), w.div_ceil(tile[2])];
        let params = LinesParams { tiles_x: tiles[2] as u32, tiles_y: tiles[1] as u32, ..self.params() };
        let weights = [&self.lines[2][..], &self.lines[1], &self.lines[0]].concat();
        let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        launch(program, kernel, params, tiles.iter().product(), 1, &weights, bindings);
    }

    fn by_tiles(&self, own: usize, all: usize, program: &mut Program) {
        let dtype = program.operands[0].dtype;
        let axes = self.axes([1, own, 4 * TILE_WIDTH]);
        Self::note(program, &format!("tile of {own} x {} outputs and the rows around it", 4 * TILE_WIDTH), &axes);
        let loads: u64 = axes.iter().map(Axis::loads).product();
        Self::traffic(program, loads as f64 / (own * 4 * TILE_WIDTH) as f64);
        let spec = source(target(self.boundary(self.finish.clone()), dtype, self.whole()), dtype)
            .flag("LINES", true)
            .constant("ROWS", all as u32);
        let kernel = Kernel::of_file("conv/lines_tiled", spec);
        let [d, h, _] = self.extents;
        let (tiles_x, tiles_y) = (self.groups().div_ceil(TILE_WIDTH), h.div_ceil(own));
        let params =
            LinesParams { tiles_x: tiles_x as u32, tiles_y: tiles_y as u32, extent: own as u32, ..self.params() };
        let weights = [&self.lines[2][..], &self.lines[1]].concat();
        let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        launch(program, kernel, params, tiles_x * tiles_y * d, 1, &weights, bindings);
    }

    /// Appends a kernel that computes a group by the definition, with the weights along x and then those along y.
    pub(crate) fn by_windows(&self, file: &'static str, entry: &'static str, program: &mut Program) {
        let dtype = program.operands[0].dtype;
        let spec = source(target(self.boundary(Spec::new()), dtype, self.whole()), dtype);
        let kernel = Kernel::library(file, entry, spec.flag("LINES", true));
        let weights = [&self.lines[2][..], &self.lines[1]].concat();
        let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        let work = self.groups() * self.extents[1] * self.extents[0];
        launch(program, kernel, self.params(), work, WORKGROUP_SIZE, &weights, bindings);
    }

    fn by_passes(&self, program: &mut Program) {
        let dtype = program.operands[0].dtype;
        let [input, output] = [0, 1].map(|i| Binding::operand(i, &program.operands));
        let [d, h, _] = self.extents;
        // A pass over rows comes last, and alone if nothing else is filtered: there is always one across.
        let deep = !self.flat();
        let sums = program.scratch(self.scratch());
        Self::note(program, "1 x 1 x 4 outputs for each thread", &self.axes([1, 1, 4])[2..]);
        let spec = source(self.boundary(Spec::new()), dtype).flag("LINES", true);
        let kernel = Kernel::of_file("conv/lines_x", spec);
        let work = self.groups() * h * d;
        launch(program, kernel, self.params(), work, WORKGROUP_SIZE, &self.lines[2], vec![input, sums]);
        let across = |depth: bool, dtype: DType, finish: &Spec| {
            // Sums between passes are whole vec4s, whatever the rows.
            let whole = self.whole() || depth != deep;
            let spec = target(self.boundary(finish.clone()), dtype, whole);
            Kernel::of_file("conv/lines_yz", spec.flag("LINES", true).flag("DEPTH", depth))
        };
        let blocks = self.groups() * h.div_ceil(4) * d;
        if !deep {
            let kernel = across(false, dtype, &self.finish);
            launch(program, kernel, self.params(), blocks, WORKGROUP_SIZE, &self.lines[1], vec![sums, output]);
            return;
        }
        let between = program.scratch(self.scratch());
        let kernel = across(false, DType::F32, &Spec::new());
        launch(program, kernel, self.params(), blocks, WORKGROUP_SIZE, &self.lines[1], vec![sums, between]);
        let params = LinesParams {
            radius_y: self.radius(0) as u32,
            extent: d as u32,
            pitch: (self.groups() * h) as u32,
            ..self.params()
        };
        let kernel = across(true, dtype, &self.finish);
        let blocks = self.groups() * h * d.div_ceil(4);
        launch(program, kernel, params, blocks, WORKGROUP_SIZE, &self.lines[0], vec![between, output]);
    }
}

/// Fills the slot `source` with the fragment that reads elements by fours.
pub(crate) fn source(spec: Spec, dtype: DType) -> Spec {
    spec.slot(
        "source",
        Fragment::Library(match dtype {
            DType::U8 => "conv/stencil_bytes_in",
            DType::F16 => "conv/stencil_halves_in",
            _ => "conv/lines_floats_in",
        }),
    )
}

/// Fills the slot `target` with the fragment that writes elements by fours. `whole`: no four straddle rows.
pub(crate) fn target(spec: Spec, dtype: DType, whole: bool) -> Spec {
    let fragment = match dtype {
        DType::U8 => "conv/stencil_bytes_out",
        DType::F16 => "conv/stencil_halves_out",
        _ => "conv/lines_floats_out",
    };
    spec.slot("target", Fragment::Library(fragment)).flag("VECTORS", whole)
}

/// Adds a dispatch of a kernel with weights: `work` items, `each` of them a workgroup.
fn launch(
    program: &mut Program, kernel: Kernel, params: LinesParams, work: usize, each: usize, weights: &[f32],
    bindings: Vec<Binding>,
) {
    let grid = Grid::fold(work.div_ceil(each) as u64);
    macro_rules! with_weights {
        ($($ty:ident[$vectors:literal]),*) => {
            match weights.len() {$(
                0..=$vectors => {
                    let spec = kernel.spec.clone().constant("LINE_WEIGHTS", $vectors as u32);
                    let kernel = program.kernel(Kernel { spec, ..kernel });
                    let mut all = [[0.0; 4]; $vectors];
                    for (place, weight) in all.iter_mut().zip(weights) {
                        *place = [*weight; 4];
                    }
                    let LinesParams {
                        w, h, d, groups, tiles_x, tiles_y, step, radius_x, radius_y, extent, pitch, ..
                    } = params;
                    let params = $ty {
                        w, h, d, groups, tiles_x, tiles_y, tiles: work as u32, step, radius_x, radius_y, extent,
                        pitch, weights: all,
                    };
                    program.dispatch(kernel, &params, bindings, grid);
                }
            )* _ => {}}
        };
    }
    with_weights!(Params64[64], Params512[512], ParamsMax[4092]);
}

/// The largest rounding difference between a weight and the product of its lines, as a fraction of the largest
/// weight: 8 steps of f32.
pub(crate) const TOLERANCE: f64 = 8.0 * f32::EPSILON as f64;

/// Finds lines whose product is the filter within [`TOLERANCE`], exact ones if they exist; otherwise returns the
/// weight that is off, and how far.
pub(super) fn factors(filter: [usize; 3], weights: &[f32]) -> Result<[Vec<f32>; 3], (usize, f64)> {
    let largest = (0..weights.len()).max_by(|&a, &b| weights[a].abs().total_cmp(&weights[b].abs())).unwrap_or(0);
    let top = weights.get(largest).copied().unwrap_or(0.0);
    let [_, fy, fx] = filter;
    let (z, y, x) = (largest / (fy * fx), largest / fx % fy, largest % fx);
    let at = |k: usize, j: usize, i: usize| weights[(k * fy + j) * fx + i];
    // The lines through the largest weight, those along z and y as multiples of it.
    let through = |of_z: f32, of_y: f32| {
        let part = |weight: f32, of: f32| if of == 0.0 { 0.0 } else { weight / of };
        [
            (0..filter[0]).map(|k| part(at(k, y, x), of_z)).collect::<Vec<_>>(),
            (0..fy).map(|j| part(at(z, j, x), of_y)).collect(),
            (0..fx).map(|i| part(at(z, y, i), part(top, of_z) * part(top, of_y))).collect(),
        ]
    };
    let off = |lines: &[Vec<f32>; 3], place: usize| {
        let (k, j, i) = (place / (fy * fx), place / fx % fy, place % fx);
        let product = f64::from(lines[0][k]) * f64::from(lines[1][j]) * f64::from(lines[2][i]);
        (f64::from(weights[place]) - product).abs()
    };
    let exact = |lines: &[Vec<f32>; 3]| (0..weights.len()).all(|place| off(lines, place) == 0.0);
    let lines = through(top, top);
    if exact(&lines) {
        return Ok(lines);
    }
    // As fractions of the largest weight they may round. If all are multiples of one number, the largest such
    // number divides, with its sign, so that the line of an axis that is not filtered stays 1.
    let of_z = divisor((0..filter[0]).map(|k| at(k, y, x))).copysign(top);
    let whole = through(of_z, divisor((0..fy).map(|j| at(z, j, x))).copysign(top));
    if exact(&whole) {
        return Ok(whole);
    }
    let bound = TOLERANCE * f64::from(top.abs());
    let wrong = (0..weights.len()).map(|place| (place, off(&lines, place))).find(|(_, off)| *off > bound);
    wrong.map_or(Ok(lines), Err)
}

/// The largest number that all of these are multiples of, by Euclid's algorithm: remainders of floats are exact.
fn divisor(of: impl Iterator<Item = f32>) -> f32 {
    of.fold(0.0, |mut a: f32, mut b| {
        while b != 0.0 {
            (a, b) = (b, a % b);
        }
        a.abs()
    })
}

#[cfg(test)]
mod tests;
