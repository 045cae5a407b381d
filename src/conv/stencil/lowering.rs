use super::{MAX_CONSTANT, MAX_TERMS, Stencil, halo_bytes};
use crate::analysis::{Axis, divergence, reads_from_shared};
use crate::conv::lines::{self, FilterLines};
use crate::conv::register::Registers;
use crate::program::facts::{Fact, Subject, fact};
use crate::program::prelude::*;

/// Fields that every kernel has before the weights.
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
    StencilParams;
    Params64[16];
    Params512[128];
    Params4096[1024];
    ParamsMax[4094];
}

const WORKGROUP_SIZE: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StencilWay {
    Naive,
    Constant,
    Strategy1,
    Strategy2,
    Strategy3,
    Register,
    Separable,
}

impl StencilWay {
    pub(super) fn of(variant: &str) -> Self {
        match variant {
            "naive" => Self::Naive,
            "constant" => Self::Constant,
            "strategy1" => Self::Strategy1,
            "strategy2" => Self::Strategy2,
            "strategy3" => Self::Strategy3,
            "separable" => Self::Separable,
            _ => Self::Register,
        }
    }
}

pub(super) struct StencilLowering<'a> {
    pub(super) stencil: &'a Stencil,
    pub(super) way: StencilWay,
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) profile: &'a DeviceProfile,
    pub(super) program: Program,
}

impl StencilLowering<'_> {
    /// Says if words hold several elements, so that a thread computes four.
    fn packed(&self) -> bool {
        self.dtype != DType::F32
    }

    /// Says if the weights are in a uniform: that of the parameters, or with `constant` one of the caller's.
    fn uniform(&self) -> bool {
        let wanted = match self.stencil.weights {
            Some(_) => self.way != StencilWay::Naive,
            None => self.way == StencilWay::Constant,
        };
        wanted && self.stencil.taps() <= MAX_CONSTANT
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

    pub(super) fn dispatch(mut self) -> Result<Program> {
        match self.way {
            StencilWay::Naive | StencilWay::Constant => self.windows()?,
            StencilWay::Strategy1 => self.tiles_with_halo()?,
            StencilWay::Strategy2 => self.tiles_of_inputs()?,
            StencilWay::Strategy3 => self.tiles(),
            StencilWay::Register => self.register()?,
            StencilWay::Separable => self.separable()?,
        }
        Ok(self.program)
    }

    /// Says if no word or vec4 belongs to two rows.
    fn whole_groups(&self) -> bool {
        self.stencil.extents[2].is_multiple_of(4)
    }

    /// Dispatches the kernel of a file, over tiles or over groups of outputs.
    fn plain(&mut self, file: &'static str, tile: Option<[usize; 3]>) {
        let packed = self.packed();
        let spec = self.spec(tile, self.whole_groups() && packed).flag("PACKED", packed);
        self.launch(Kernel::of_file(file, spec), tile, false);
    }

    fn windows(&mut self) -> Result<()> {
        let taps = self.stencil.taps();
        if self.way == StencilWay::Constant && taps > MAX_CONSTANT {
            let (bytes, most) = (4 * taps, 4 * MAX_CONSTANT);
            return Err(self.unsupported(&format!("{bytes} bytes of uniform for {taps} weights (at most {most})")));
        }
        self.note("every output reads its inputs itself", 1.0);
        self.traffic(taps as f64);
        self.plain("conv/stencil_naive", None);
        Ok(())
    }

    fn tiles_with_halo(&mut self) -> Result<()> {
        let stencil = self.stencil;
        let tile = stencil.tile(self.dtype);
        let there = self.profile.limits.max_workgroup_bytes as usize;
        let bytes = halo_bytes(tile, stencil.filter);
        if bytes > there {
            return Err(self.unsupported(&format!(
                "{bytes} bytes of workgroup memory for a tile with its halo (there are {there})"
            )));
        }
        let what = format!("tile of {} outputs and its halo", stencil.shape(tile));
        self.note(&what, Axis::reuse(&stencil.axes_of(tile)));
        self.traffic((bytes / 4) as f64 / tile.iter().product::<usize>() as f64);
        self.plain("conv/stencil_strategy1", Some(tile));
        Ok(())
    }

    fn tiles_of_inputs(&mut self) -> Result<()> {
        let (stencil, limits) = (self.stencil, &self.profile.limits);
        let most = (limits.max_invocations as usize).min(limits.max_workgroup_bytes as usize / 4);
        let Some(tile) = stencil.inner_tile(self.dtype, most) else {
            let least = halo_bytes([1, 1, if self.packed() { 4 } else { 1 }], stencil.filter) / 4;
            return Err(self.unsupported(&format!(
                "{least} threads in a workgroup for one output and its halo (there are {most})"
            )));
        };
        let what = format!("tile of {} outputs, one thread for each input", stencil.shape(tile));
        self.note(&what, Axis::reuse(&stencil.axes_of(tile)));
        let cells = tile.iter().product::<usize>() as f64;
        self.traffic((halo_bytes(tile, stencil.filter) / 4) as f64 / cells);
        self.plain("conv/stencil_strategy2", Some(tile));
        Ok(())
    }

    fn tiles(&mut self) {
        let tile = self.stencil.tile(self.dtype);
        let cells = tile.iter().product::<usize>() as f64;
        let axes = self.stencil.axes_of(tile);
        let shared = reads_from_shared(&axes) as f64;
        let reads = axes.iter().map(Axis::reads).product::<u64>() as f64;
        // A read outside the tile is loaded again for each use.
        let loads = cells + reads - shared;
        let what = format!("tile of {}, {shared} of {reads} reads in it", self.stencil.shape(tile));
        self.note(&what, reads / loads);
        self.traffic(loads / cells);
        self.plain("conv/stencil_strategy3", Some(tile));
    }

    fn separable(&mut self) -> Result<()> {
        let stencil = self.stencil;
        let Some(weights) = &stencil.weights else {
            return Err(err!(
                Unsupported,
                "{}: the variant `separable` finds the lines of a filter when it is planned; this filter is an \
                 operand: use `auto`, or a filter for each line",
                self.name
            ));
        };
        let lines = lines::factors(stencil.filter, weights).map_err(|(place, off)| {
            err!(
                Unsupported,
                "{}: the variant `separable` needs a filter that is a product of lines; weight {place} is {off:.1e} \
                 off that of the lines through the largest weight, above {:.1e} of it; use `auto`",
                self.name,
                lines::TOLERANCE
            )
        })?;
        let lines =
            FilterLines { extents: stencil.extents, step: 1, lines, boundary: stencil.boundary, finish: Spec::new() };
        let Some((form, why)) = lines.best(self.dtype, self.profile) else {
            return Err(self.unsupported("a uniform that holds the longest line, and scratch for its sums"));
        };
        self.program.decision.because(format_args!("{why}"));
        self.program.cost.flop = lines.flop() * self.program.operands[0].len as f64;
        lines.dispatch(form, self.profile, &mut self.program);
        Ok(())
    }

    fn register(&mut self) -> Result<()> {
        let (stencil, whole_groups) = (self.stencil, self.whole_groups());
        let mut registers = Registers {
            filter: stencil.filter,
            packed: self.packed(),
            vectors: whole_groups,
            rows: 1,
            planes: 1,
            lines: None,
        };
        let asked = stencil.outputs.is_some();
        [registers.rows, registers.planes] = stencil.outputs.unwrap_or(match stencil.axes {
            1 => [1, 1],
            2 if self.profile.quirks.slow_compiler => [4, 1],
            // H100, 8192 x 8192: 3 x 3 2875 GB/s (8: 2825), 5 x 5 2813 (8: 2700); 7 x 7 by 8 2409 (4: 2341).
            2 if stencil.taps() <= 25 => [4, 1],
            2 => [8, 1],
            _ if self.profile.quirks.slow_compiler => [1, 2],
            // H100, 512^3, 3 x 3 x 3: 2518 GB/s; 2 x 2 2414, 2 x 4 2231, 4 x 4 1222.
            _ => [4, 2],
        });
        while !asked && registers.terms() > MAX_TERMS && registers.planes * registers.rows > 1 {
            if registers.planes > 1 {
                registers.planes /= 2;
            } else {
                registers.rows /= 2;
            }
        }
        // Requested outputs may take longer to compile.
        if registers.terms() > if asked { 16 * MAX_TERMS } else { MAX_TERMS } {
            return Err(err!(
                Unsupported,
                "{}: the variant `register` writes out {} products; at most {MAX_TERMS} weights suit it; use `auto`",
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
        let what = format!("{} outputs for each thread, sums in registers", stencil.shape(own));
        self.note(&what, Axis::reuse(&stencil.axes_of(own)));
        let cells = own.iter().product::<usize>() as f64;
        self.traffic((halo_bytes(own, stencil.filter) / 4) as f64 / cells);
        let kernel = registers.kernel(self.spec(Some(tile), whole_groups));
        self.launch(kernel, Some(tile), whole_groups);
        Ok(())
    }

    /// Notes the tiles, and how often each loaded element is read.
    fn note(&mut self, what: &str, reuse: f64) {
        self.program.decision.because(format_args!("{what}: reuse {reuse:.2}"));
    }

    /// Notes the traffic: each output requests `inputs` inputs from memory.
    fn traffic(&mut self, inputs: f64) {
        let image = self.program.operands[0].bytes() as f64;
        self.program.traffic = Some(image * inputs + image);
    }

    fn spec(&self, tile: Option<[usize; 3]>, vectors: bool) -> Spec {
        let stencil = self.stencil;
        let [z, y, x] = stencil.filter.map(|f| f as u32);
        let mut spec = stencil
            .boundary
            .add_to(Spec::new(), stencil.far())
            .constant("FILTER_X", x)
            .constant("FILTER_Y", y)
            .constant("FILTER_Z", z)
            .flag("UNIFORM", self.uniform())
            .flag("OPERAND", stencil.weights.is_none())
            .flag("VECTORS", vectors)
            .slot("element", Fragment::Library(element_fragments(self.dtype)));
        if self.uniform() {
            let vectors = match stencil.weights {
                Some(_) => weight_vectors(stencil.taps()),
                None => stencil.taps().div_ceil(4),
            };
            spec = spec.constant("WEIGHT_VECTORS", vectors as u32);
        }
        let Some([z, y, x]) = tile.map(|t| t.map(|n| n as u32)) else { return spec };
        let fragment = ["conv/filter1d_tile", "conv/filter2d_tile", "conv/filter3d_tile"][stencil.axes - 1];
        spec.slot("tile", Fragment::Library(fragment)).constant("TILE_X", x).constant("TILE_Y", y).constant("TILE_Z", z)
    }

    /// Dispatches the kernel, over tiles or over groups of outputs.
    fn launch(&mut self, kernel: Kernel, tile: Option<[usize; 3]>, vectors: bool) {
        let [d, h, w] = self.stencil.extents;
        let group = if self.packed() || vectors { 4 } else { 1 };
        let groups = w.div_ceil(group);
        let (tiles, workgroups) = match tile {
            Some([z, y, x]) => ([w.div_ceil(x), h.div_ceil(y)], w.div_ceil(x) * h.div_ceil(y) * d.div_ceil(z)),
            None => ([0, 0], (groups * h * d).div_ceil(WORKGROUP_SIZE)),
        };
        let params = StencilParams {
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
        let operand = |i| Binding::operand(i, &self.program.operands);
        let mut bindings = vec![operand(0), operand(self.program.operands.len() - 1)];
        let grid = Grid::fold(workgroups as u64);
        let Some(weights) = &self.stencil.weights else {
            bindings.push(operand(1));
            self.program.dispatch(kernel, &params, bindings, grid);
            return;
        };
        if !self.uniform() {
            bindings.push(self.program.constant(bytemuck::cast_slice(weights).to_vec()));
            self.program.dispatch(kernel, &params, bindings, grid);
            return;
        }
        macro_rules! with_weights {
            ($($ty:ident[$vectors:literal]),*) => {
                match weight_vectors(weights.len()) {$(
                    $vectors => {
                        let StencilParams { w, h, d, groups, tiles_x, tiles_y, tiles, rows } = params;
                        let mut all = [[0.0; 4]; $vectors];
                        all.as_flattened_mut()[..weights.len()].copy_from_slice(weights);
                        let params = $ty { w, h, d, groups, tiles_x, tiles_y, tiles, rows, weights: all };
                        self.program.dispatch(kernel, &params, bindings, grid);
                    }
                )* _ => {}}
            };
        }
        with_weights!(Params64[16], Params512[128], Params4096[1024], ParamsMax[4094]);
    }
}

/// The fragment with which a filter reads and writes elements.
pub(in crate::conv) fn element_fragments(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "conv/stencil_bytes",
        DType::F16 => "conv/stencil_halves",
        _ => "conv/stencil_floats",
    }
}

/// Vec4s of the uniform that holds `taps` weights: few sizes, so that kernels are few.
fn weight_vectors(taps: usize) -> usize {
    match taps {
        0..=64 => 16,
        65..=512 => 128,
        513..=4096 => 1024,
        _ => 4094,
    }
}

/// Counts the uses of an element, and with threads over the halo also the threads that compute.
pub(crate) fn facts(subject: &Subject<'_>) -> Option<Vec<Fact>> {
    let spec = &subject.program.kernels.first()?.spec;
    let filter = ["FILTER_X", "FILTER_Y", "FILTER_Z"].map(|name| spec.number(name));
    let [x, y, z] = [filter[0]?, filter[1]?, filter[2]?];
    let taps = u64::from(x) * u64::from(y) * u64::from(z);
    let image = subject.program.operands.first()?.bytes() as f64;
    let loaded = subject.program.traffic? / image - 1.0;
    let mut facts = vec![fact("reuse", taps as f64 / loaded, "uses of an element loaded")];
    if subject.program.kernels.first()?.entry == "stencil_strategy2" {
        // Threads cover the tile with its halo; only those of the tile compute.
        let tile = ["TILE_X", "TILE_Y", "TILE_Z"].map(|name| spec.number(name));
        let tile = [tile[0]?, tile[1]?, tile[2]?];
        let block = [tile[0] + x - 1, tile[1] + y - 1, tile[2] + z - 1];
        let inside = |[x, y, z]: [u32; 3]| u32::from(x < tile[0] && y < tile[1] && z < tile[2]);
        let d = divergence([1; 3], block, subject.subgroup, inside);
        facts.push(fact("divergent", d.divergent as f64, format!("of {} subgroups that compute", d.warps)));
        let axes: Vec<_> = [0, 1, 2].map(|i| Axis::inside(tile[i].into(), [x, y, z][i].into())).into_iter().collect();
        let busy = axes.iter().map(|a| a.tile).product::<u64>() as f64;
        let all = axes.iter().map(Axis::loads).product::<u64>() as f64;
        facts.push(fact("computing", 100.0 * busy / all, "% of threads"));
    }
    Some(facts)
}
