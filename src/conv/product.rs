//! Convolution layers as products of each group, on the register-tiled kernels of the matrix product, whose factors
//! need not be matrices in memory.

use super::layer::{Correlation, ImageChunk};
use crate::dense::predict::{self, Rates, Work};
use crate::dense::{Division, ProductTile, RegisterForm, StepCount, WalkedKernel, dispatch_chunks};
use crate::program::prelude::*;
use std::ops::Range;

kernel_params! {
    pub(super) struct ConvProductParams {
        m: u32, n: u32, k: u32, lda: u32, ldb: u32, first_tile: u32, tiles: u32, tiles_m: u32, tiles_n: u32,
        groups: u32, slice_k: u32, first_n: u32, all_n: u32, a_at: u32, b_at: u32, c_at: u32, group_a: u32,
        group_b: u32, group_c: u32, pixels: u32, image_c: u32, slab: u32, jump_a: u32, step_pixels: u32,
        step_a: u32, w: u32, bound_h: u32, bound_w: u32, pad_h: u32, pad_w: u32, n_across: u32, n_down: u32,
        n_plane: u32, n_step_h: u32, n_step_w: u32, k_across: u32, k_down: u32, k_plane: u32, k_step_h: u32,
        k_step_w: u32, step_across: u32, step_down: u32, step_plane: u32,
    }
}

/// Largest first: those of the matrix product, and flat ones for layers of few channels. On an H100 (Vulkan, driver
/// 580.159.04), TFLOP/s of a layer and of its gradient by weights: 256 channels of 28 x 28, 3 x 3, the first 40.9 and
/// 38.5, the second 38.3 and 34.6; 16 to 32 channels of 80 x 80, 7 x 7, the third 31.9 and 25.2. A step of k of 16
/// halves what the smaller tiles reach. The paces are fitted to 58 layers that were drawn, on the same card: the times
/// of the tiles that they choose are 2.5 % above those of the best.
const CARD: &[Division] = &[
    Division::new([128, 128, 8], [8, 8]).pace(67, [1030, 6300]),
    Division::new([64, 128, 8], [8, 8]).pace(65, [610, 8500]),
    Division::new([32, 128, 8], [4, 8]).pace(58, [410, 6700]),
    Division::new([64, 64, 8], [8, 4]).pace(61, [370, 5300]),
    Division::new([16, 128, 8], [4, 8]).pace(35, [440, 5700]),
    Division::new([32, 64, 8], [4, 4]).pace(50, [375, 3900]),
    Division::new([16, 64, 8], [4, 4]).pace(44, [370, 4100]),
];
const GPU: &[Division] =
    &[Division::new([64, 64, 8], [8, 4]), Division::new([32, 64, 8], [4, 4]), Division::new([16, 64, 8], [4, 4])];
/// Small, to compile quickly.
const CPU: &[Division] = &[Division::new([16, 16, 4], [4, 4])];

/// Threads that fill the device: on a large card eight workgroups of 64 for each of 132 processors.
fn fill(profile: &DeviceProfile) -> usize {
    if profile.class == DeviceClass::Discrete { 132 * 512 } else { 32 * 256 }
}

/// The shortest slice of k.
const MIN_SLICE: usize = 256;

/// The longest slice of k: a bounded time, in loops that every driver runs to their end, since a step is 4 or more
/// of k.
const MAX_SLICE: usize = 1 << 17;
const _: () = assert!(runs_everywhere(MAX_SLICE / 4));

fn rows(profile: &DeviceProfile) -> &'static [Division] {
    match profile.class {
        DeviceClass::Cpu => CPU,
        DeviceClass::Discrete => CARD,
        _ => GPU,
    }
}

pub(crate) fn rows_of(variant: &str, profile: &DeviceProfile) -> Vec<String> {
    match variant {
        "coop" => super::coop::row_names(),
        "implicit" | "im2col" => rows(profile).iter().map(Division::name).collect(),
        _ => Vec::new(),
    }
}

/// The shortest slice of k of a layer that is chosen, the most slices that a user asks for, which every driver adds in
/// one loop, and the most bytes of slabs that are chosen.
const MIN_LAYER_SLICE: usize = 128;
const MAX_SLICES: usize = 1 << 10;
const _: () = assert!(runs_everywhere(MAX_SLICES));
const LAYER_SLABS: u64 = 64 << 20;

/// Slices are tried that fill the device once, twice and so on, up to this.
const ROUNDS: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProductKind {
    /// Weights times windows of x.
    Windows,
    /// Weights times columns in memory.
    Columns,
    /// dy times windows of x.
    Weights,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LayerProduct {
    kind: ProductKind,
    form: RegisterForm,
    /// Rows of a group; `n` counts the columns of all work.
    m: usize,
    n: usize,
    k: usize,
    groups: usize,
    slice_k: usize,
    bytes: u64,
    /// The predicted time of a layer.
    pub(super) seconds: f64,
}

/// The bindings: A, B, and all that belongs to C, with C itself last.
pub(super) struct ProductBindings {
    pub(super) a: Binding,
    pub(super) b: Binding,
    pub(super) c: Vec<Binding>,
}

impl LayerProduct {
    /// The product in the row that suits best: `factors` are the bytes that are read, and `slices` those of k that were
    /// asked for.
    fn new(
        (op, bytes): (&str, u64), kind: ProductKind, sizes: [usize; 4],
        (vec, factors, slices): (bool, f64, Option<u32>), profile: &DeviceProfile,
    ) -> Self {
        let rows = rows(profile);
        let of = |division: &Division| {
            let whole = Self::divided(kind, sizes, (vec, bytes), *division, profile);
            if kind == ProductKind::Weights { whole } else { whole.fastest(*division, factors, slices, profile) }
        };
        let fits = |p: &Self| p.form.fits(profile) && p.form.walks();
        let variant = if kind == ProductKind::Columns { "im2col" } else { "implicit" };
        let choices = &profile.choices;
        let allowed = |row: &&Division| !choices.denies_row(op, variant, || row.name());
        let forced = choices.row(op, variant);
        let forced = forced.and_then(|name| rows.iter().filter(allowed).find(|row| row.name() == name));
        let mut usable = rows.iter().filter(allowed).map(of).filter(fits);
        let chosen = forced.map(of).filter(fits).or_else(|| match kind {
            ProductKind::Weights => usable.find(|p| p.fills(profile)),
            _ => usable.min_by(|a, b| a.seconds.total_cmp(&b.seconds)),
        });
        chosen.unwrap_or_else(|| of(&rows[rows.len() - 1]))
    }

    fn divided(
        kind: ProductKind, [m, n, k, groups]: [usize; 4], (vec, bytes): (bool, u64), division: Division,
        profile: &DeviceProfile,
    ) -> Self {
        let walked = match kind {
            ProductKind::Windows => WalkedKernel { kernel: ["conv/conv_implicit", "conv_implicit"], a: false, b: true },
            ProductKind::Columns => WalkedKernel { kernel: ["conv/conv_columns", "conv_columns"], a: false, b: false },
            ProductKind::Weights => {
                WalkedKernel { kernel: ["conv/conv_gradients", "conv_gradients"], a: true, b: true }
            }
        };
        let steps = match (kind, StepCount::of(k, division.tile)) {
            // All slices but the last take even numbers.
            (ProductKind::Weights, StepCount::Odd) => StepCount::Any,
            (_, steps) => steps,
        };
        let form = RegisterForm {
            vectors: !profile.quirks.stores_whole_vectors,
            vec_a: vec,
            vec_b: kind == ProductKind::Columns,
            steps,
            walked: Some(walked),
            ..RegisterForm::of(division)
        };
        Self { kind, form, m, n, k, groups, slice_k: k, bytes, seconds: 0.0 }
    }

    /// Says if the gradient with respect to weights has few idle rows and columns in this tile, and fills the device.
    fn fills(&self, profile: &DeviceProfile) -> bool {
        let ProductTile { m, n, .. } = self.form.tile;
        let inside = |side: u32, extent: usize| (side / 4 * 3) as usize <= extent;
        let threads = (self.k / MIN_SLICE).max(1) * self.form.threads() as usize;
        inside(m, self.m) && inside(n, self.n) && self.tiles().saturating_mul(threads) >= fill(profile)
    }

    /// The layer with the number of slices that was asked for, or the one that is predicted to be the fastest.
    fn fastest(self, mut division: Division, factors: f64, slices: Option<u32>, profile: &DeviceProfile) -> Self {
        if self.kind == ProductKind::Columns {
            // Columns are loaded without walking over windows.
            division.pace.alone = division.pace.alone * 21 / 25;
        }
        let Self { m, n, k, groups, .. } = self;
        let rates = Rates::of(profile);
        let bytes = self.bytes as f64;
        let work = Work { batch: groups, m, n, k, factor_bytes: bytes, result_bytes: bytes, factors, matrices: false };
        let timed = |slices: usize| {
            let sliced = self.sliced(slices);
            Self { seconds: predict::seconds(&rates, &work, &division, sliced.slices()), ..sliced }
        };
        if let Some(slices) = slices {
            return timed((slices as usize).clamp(1, MAX_SLICES));
        }
        let slab = ((groups * m * n) as u64).saturating_mul(4).max(1);
        let most = (k / MIN_LAYER_SLICE).min((LAYER_SLABS / slab) as usize);
        let filling = (1..=ROUNDS).map(|rounds| (rounds as f64 * rates.processors) as usize / self.tiles().max(1));
        let split = self.kind == ProductKind::Windows && !profile.quirks.serial_workgroups;
        let filling = filling.filter(|slices| split && (2..=most).contains(slices));
        let by_time = |a: &Self, b: &Self| a.seconds.total_cmp(&b.seconds);
        filling.map(timed).chain([timed(1)]).min_by(by_time).unwrap_or(self)
    }

    fn sliced(self, slices: usize) -> Self {
        let step = 2 * self.form.tile.k as usize;
        let slice_k = if slices > 1 { self.k.div_ceil(slices).next_multiple_of(step) } else { self.k };
        let mut sliced = Self { slice_k, ..self };
        if sliced.slices() > 1 && sliced.form.steps == StepCount::Odd {
            sliced.form.steps = StepCount::Any;
        }
        sliced
    }

    /// Weights, m rows for each of `c`'s groups, times windows of a chunk of the batch, with the sums in `slices` or as
    /// many as suit.
    pub(super) fn windows(c: &Correlation, images: usize, slices: Option<u32>, profile: &DeviceProfile) -> Self {
        let sizes = [c.to, images * c.pixels(), c.terms(), c.groups];
        let elements = (images * c.image()[0]) as f64 + (c.groups * c.to * c.terms()) as f64;
        let given = (c.terms().is_multiple_of(4), c.size_of() as f64 * elements, slices);
        Self::new((c.op, c.size_of()), ProductKind::Windows, sizes, given, profile)
    }

    /// Weights times `columns` columns, a multiple of four, in memory.
    pub(super) fn columns(c: &Correlation, columns: usize, profile: &DeviceProfile) -> Self {
        let sizes = [c.to, columns, c.terms(), c.groups];
        let elements = (c.groups * c.terms()) as f64 * (columns + c.to) as f64;
        let given = (c.terms().is_multiple_of(4), 4.0 * elements, Some(1));
        Self::new((c.op, 4), ProductKind::Columns, sizes, given, profile)
    }

    /// dy times windows of x, for a chunk of the batch.
    pub(super) fn weights(c: &Correlation, chunk: &ImageChunk, profile: &DeviceProfile) -> Self {
        let sizes = [c.to, c.terms(), chunk.images * c.pixels(), c.groups];
        let vec = !c.last && c.pixels().is_multiple_of(4) && chunk.y_at.is_multiple_of(4);
        Self::new((c.op, c.size_of()), ProductKind::Weights, sizes, (vec, 0.0, None), profile)
    }

    fn tiles(&self) -> usize {
        let ProductTile { m, n, .. } = self.form.tile;
        self.m.div_ceil(m as usize) * self.n.div_ceil(n as usize) * self.groups
    }

    pub(super) fn text(&self) -> String {
        let ProductTile { m, n, k } = self.form.tile;
        let [rows, columns] = self.form.thread;
        format!("tile {m} x {n} x {k} by {rows} x {columns}")
    }

    pub(super) fn slices(&self) -> usize {
        self.k.div_ceil(self.slice_k.max(1)).max(1)
    }

    /// Elements of k of a slice of a gradient: enough slices to fill the device, with `slab` bytes for each.
    pub(super) fn slice(&self, slab: u64, profile: &DeviceProfile) -> usize {
        let all = self.tiles() * self.form.threads() as usize;
        let most = (profile.limits.max_storage_binding / slab.max(1)).clamp(1, 1 << 12) as usize;
        let wanted = (fill(profile) / all.max(1)).min(self.k / MIN_SLICE).clamp(1, most);
        let slice = self.k.div_ceil(wanted).next_multiple_of(2 * self.form.tile.k as usize);
        slice.min(MAX_SLICE)
    }

    /// The parameters that all products of a layer share.
    fn params(&self, c: &Correlation, chunk: &ImageChunk) -> ConvProductParams {
        let ProductTile { m, n, k } = self.form.tile;
        let [h, w] = c.size;
        let [p, q] = c.out;
        let [r, s] = c.kernel;
        let [bound_h, bound_w] = c.bounds();
        let image = c.image()[0];
        // Outputs, and cells of a window: across, down, the distance of planes, and steps down and across.
        let outputs = [q, p, image, c.stride[0], c.stride[1]];
        let cells = [s, r, if c.last { 1 } else { h * w }, c.dilation[0], c.dilation[1]];
        let (of_n, of_k) = if self.kind == ProductKind::Weights { (cells, outputs) } else { (outputs, cells) };
        let [n_across, n_down, n_plane, n_step_h, n_step_w] = of_n.map(|x| x as u32);
        let [k_across, k_down, k_plane, k_step_h, k_step_w] = of_k.map(|x| x as u32);
        let (step_across, step_down) = (k % k_across * k_step_w, k / k_across % k_down * k_step_h);
        let spread = c.up != [1, 1];
        let [apart_b, apart_c] = c.channels().map(|channels| if c.last { channels as u32 } else { 1 });
        let in_plane = if spread { 0 } else { (step_down * w as u32 + step_across) * apart_b };
        let pixels = c.pixels() as u32;
        let plane_a = (c.groups * c.to) as u32 * pixels;
        let weights = self.kind == ProductKind::Weights;
        // From one group to the next.
        let [of_x, of_y] = if c.last { [c.from, c.to] } else { [c.from * h * w, c.to * c.pixels()] };
        let group = |elements: usize| if c.groups > 1 { elements as u32 } else { 0 };
        ConvProductParams {
            m: self.m as u32,
            n: self.n as u32,
            k: self.k as u32,
            lda: self.k as u32,
            ldb: self.n as u32,
            first_tile: 0,
            tiles: 0,
            tiles_m: (self.m as u32).div_ceil(m),
            tiles_n: (self.n as u32).div_ceil(n),
            groups: c.groups as u32,
            slice_k: self.slice_k as u32,
            first_n: 0,
            all_n: self.n as u32,
            a_at: if weights { chunk.y_at } else { 0 },
            b_at: if self.kind == ProductKind::Columns { 0 } else { chunk.x_at },
            c_at: if weights { 0 } else { chunk.y_at },
            group_a: group(if weights { of_y } else { self.m * self.k }),
            group_b: group(if self.kind == ProductKind::Columns { self.n * self.k } else { of_x }),
            group_c: group(if weights { self.m * self.n } else { of_y }),
            pixels,
            image_c: c.image()[1] as u32,
            slab: (self.groups * self.m * self.n) as u32,
            jump_a: if c.last { 0 } else { plane_a - pixels },
            step_pixels: k % pixels,
            step_a: if c.last { k * apart_c } else { k + k / pixels * (plane_a - pixels) },
            w: w as u32,
            bound_h,
            bound_w,
            pad_h: c.pad[0] as u32,
            pad_w: c.pad[1] as u32,
            n_across,
            n_down,
            n_plane,
            n_step_h,
            n_step_w,
            k_across,
            k_down,
            k_plane,
            k_step_h,
            k_step_w,
            step_across,
            step_down,
            step_plane: k / k_across / k_down * k_plane + in_plane,
        }
    }

    fn kernel(&self, c: &Correlation, spec: Spec, vec_c: bool) -> Kernel {
        let mut spec = spec
            .flag("VEC_C", vec_c)
            .flag("IMAGES", self.kind != ProductKind::Weights)
            .flag("SLICED", self.slices() > 1)
            .alias("T", c.wgsl())
            .flag("F16", c.dtype == DType::F16);
        let [apart_b, apart_c] = c.channels().map(|channels| channels as u32);
        if c.last {
            spec = spec.flag("LAST", true).constant("APART_C", apart_c).constant("APART_B", apart_b);
            if self.kind == ProductKind::Weights {
                spec = spec.constant("APART_A", apart_c);
            }
        }
        if self.kind != ProductKind::Columns {
            spec =
                spec.flag("SPREAD", c.up != [1, 1]).constant("UP_H", c.up[0] as u32).constant("UP_W", c.up[1] as u32);
        }
        self.form.kernel(spec)
    }

    /// Writes a layer: the columns from `first` on; `self` has their number. Each of several slices of k writes a slab
    /// of the chunk's outputs.
    pub(super) fn layer(
        &self, program: &mut Program, (c, chunk, first): (&Correlation, &ImageChunk, usize), spec: Spec,
        bound: ProductBindings, profile: &DeviceProfile,
    ) -> Result<()> {
        // One round for each step of k, which is written out.
        let most = profile.loop_steps(1, 1 << 32) * u64::from(self.form.tile.k);
        if self.slice_k as u64 > most {
            return Err(err!(
                TooLarge,
                "{}: {} products for an output; on {} at most {most} are safe; take fewer channels in a call",
                c.op,
                self.slice_k,
                profile.name
            ));
        }
        let all = chunk.images * c.pixels();
        // Columns in memory are loaded by vec4s.
        let columns = self.kind == ProductKind::Columns;
        let rest = (all - first).next_multiple_of(if columns { 4 } else { 1 }).min(self.n);
        let vec = !c.last && c.pixels().is_multiple_of(4) && chunk.y_at.is_multiple_of(4);
        let kernel = program.kernel(self.kernel(c, spec, vec));
        let one = Self { n: rest, ..*self };
        let params = ConvProductParams {
            first_n: first as u32,
            all_n: all as u32,
            n: rest as u32,
            tiles_n: (rest as u32).div_ceil(self.form.tile.n),
            slab: (chunk.images * c.image()[1]) as u32,
            ..self.params(c, chunk)
        };
        one.dispatch(program, kernel, params, bound, self.slices(), profile)
    }

    /// Writes the gradient with respect to weights, in slices of `slice` steps of k, each to a slab of C.
    pub(super) fn gradients(
        &self, program: &mut Program, (c, chunk, slice): (&Correlation, &ImageChunk, usize), bound: ProductBindings,
        profile: &DeviceProfile,
    ) -> Result<()> {
        let slab = self.groups * self.m * self.n;
        let vec = self.n.is_multiple_of(4) && slab.is_multiple_of(4);
        let kernel = program.kernel(self.kernel(c, Spec::new(), vec));
        let params = ConvProductParams { slice_k: slice as u32, ..self.params(c, chunk) };
        self.dispatch(program, kernel, params, bound, self.k.div_ceil(slice), profile)
    }

    /// Dispatches over all tiles, in chunks that take a bounded time.
    fn dispatch(
        &self, program: &mut Program, kernel: usize, params: ConvProductParams, bound: ProductBindings, slices: usize,
        profile: &DeviceProfile,
    ) -> Result<()> {
        let flop = 2 * self.form.tile.elements() * u64::from(params.slice_k);
        let all = (self.tiles() * slices) as u64;
        let bindings = [vec![bound.a, bound.b], bound.c].concat();
        dispatch_chunks(program, kernel, &bindings, all, flop, profile, |Range { start, end }| ConvProductParams {
            first_tile: start as u32,
            tiles: (end - start) as u32,
            ..params
        })
    }
}

#[cfg(test)]
mod tests;
