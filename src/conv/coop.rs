//! Layers of f16 and their gradients on cooperative matrices: `shaders/conv/conv_coop.wgsl`. Passes before it pack
//! what does not have its channels next to each other, in whole pieces.

use super::correlate::{COOP, ConvJob, ConvSlabsParams};
use super::layer::{Correlation, ImageChunk};
use super::pack::{Images, PACK_RATE, PIECE, PackedImages, scratch_of, weights_in_place};
use super::phase::Phase;
use crate::dense::predict::{self, Rates, Work};
use crate::dense::{Division, Precision, ProductTile, dispatch_chunks};
use crate::program::prelude::*;
use std::ops::Range;

kernel_params! {
    struct CoopLayerParams {
        m: u32, n: u32, k: u32, first_tile: u32, tiles: u32, tiles_m: u32, tiles_n: u32, groups: u32, slice_k: u32,
        matrix_at: u32, ld: u32, group_matrix: u32, line: u32, x_at: u32, apart: u32, group_x: u32, image_x: u32,
        w: u32, bound_h: u32, bound_w: u32, pad_h: u32, pad_w: u32, q: u32, p: u32, pixels: u32, stride_h: u32,
        stride_w: u32, s: u32, channels: u32, dilation_h: u32, dilation_w: u32, step_at: u32, step_across: u32,
        step_down: u32, c_at: u32, image_c: u32, group_c: u32, slab: u32, channel_c: u32, row_c: u32, column_c: u32,
    }
}

/// The tile and the part of a subgroup, largest first, with the paces of the matrix product on the same tiles.
const ROWS: &[Division] = &[
    Division::new([128, 128, 64], [64, 32]).pace(43, [1100, 5000]),
    Division::new([128, 128, 32], [64, 64]).pace(42, [1000, 5600]),
    Division::new([64, 128, 64], [32, 64]).pace(30, [800, 4000]),
    Division::new([128, 64, 64], [64, 32]).pace(25, [800, 4000]),
    Division::new([64, 64, 64], [32, 32]).pace(26, [500, 2800]),
    Division::new([64, 64, 32], [32, 32]).pace(27, [440, 3000]),
    Division::new([32, 128, 64], [32, 32]).pace(15, [500, 3000]),
    Division::new([128, 32, 64], [32, 32]).pace(15, [500, 3000]),
    Division::new([32, 64, 64], [16, 32]).pace(11, [400, 1000]),
    Division::new([64, 32, 64], [32, 16]).pace(10, [400, 1000]),
    Division::new([32, 32, 64], [16, 16]).pace(9, [420, 610]),
    Division::new([32, 32, 32], [16, 32]).pace(7, [300, 770]),
];

/// Elements that a row in workgroup memory is longer than the tile, as in the shader.
const PAD: u32 = 8;

/// The shortest slice of k, the most slices, and the most bytes of slabs that are chosen; slices are tried that fill
/// the device once, twice and so on, up to this.
const MIN_SLICE: usize = 128;
const MAX_SLICES: usize = 1 << 10;
const SLABS: u64 = 64 << 20;
const ROUNDS: usize = 4;

pub(super) fn row_names() -> Vec<String> {
    ROWS.iter().map(Division::name).collect()
}

/// The product of a layer or of its gradient by weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct CoopLayer {
    tile: ProductTile,
    part: [u32; 2],
    /// Rows and columns of a cooperative matrix, and threads of a subgroup.
    side: u32,
    lanes: u32,
    gradients: bool,
    /// Rows are outputs and columns filters.
    windows_first: bool,
    m: usize,
    n: usize,
    k: usize,
    groups: usize,
    slice_k: usize,
    /// The predicted time, without packing.
    seconds: f64,
}

impl CoopLayer {
    /// Says if the gradient by weights runs here by default: on matrices, with channels enough.
    pub(super) fn suits(c: &Correlation, profile: &DeviceProfile) -> bool {
        Self::runs(c, profile) && c.from * c.to >= PIECE * PIECE
    }

    /// Says if `auto` may choose this way for the elements, the precision and the device.
    fn runs(c: &Correlation, profile: &DeviceProfile) -> bool {
        c.dtype == DType::F16
            && c.precision != Precision::Exact
            && COOP.requires.missing(profile).is_none()
            && profile.choices.denies(c.op, COOP.name).is_none()
    }

    /// The predicted time of a layer with its passes, where it runs by default.
    pub(super) fn predicted(c: &Correlation, profile: &DeviceProfile) -> Option<f64> {
        if !Self::runs(c, profile) {
            return None;
        }
        let rates = Rates::of(profile);
        let weights = 4.0 * (c.groups * c.to * c.terms()) as f64;
        let phases = Self::phases(c, None, profile);
        let of_phase = |phase: &Phase| {
            let turn = if weights_in_place(c) { 0.0 } else { predict::PASS };
            turn + Self::windows(&phase.c, c.images, None, profile).seconds
        };
        let turn = if weights_in_place(c) { 0.0 } else { PACK_RATE * rates.copy(weights) };
        let product: f64 = phases.iter().map(of_phase).sum();
        Some(product + turn + Images::of_x(c).seconds(c.images, &rates))
    }

    /// The phases of a layer; one, if the sums of several would be sliced.
    fn phases(c: &Correlation, slices: Option<u32>, profile: &DeviceProfile) -> Vec<Phase> {
        let phases = Phase::all(c);
        let whole = |phase: &Phase| Self::windows(&phase.c, c.images, Some(1), profile).slices() == 1;
        if phases.len() > 1 && (slices.is_some_and(|slices| slices > 1) || !phases.iter().all(whole)) {
            return vec![Phase::whole(c)];
        }
        phases
    }

    fn windows(c: &Correlation, images: usize, slices: Option<u32>, profile: &DeviceProfile) -> Self {
        let outputs = images * c.pixels();
        let [m, n] = if c.last { [outputs, c.to] } else { [c.to, outputs] };
        let k = c.kernel[0] * c.kernel[1] * Images::of_x(c).padded();
        Self::fastest(c, (false, c.last), [m, n, k], slices, profile)
    }

    fn weights(c: &Correlation, images: usize, profile: &DeviceProfile) -> Self {
        let n = c.kernel[0] * c.kernel[1] * Images::of_x(c).padded();
        Self::fastest(c, (true, false), [c.to, n, images * c.pixels()], None, profile)
    }

    /// The product in the row and the slices that are predicted to be the fastest, or in those that were asked for.
    fn fastest(
        c: &Correlation, (gradients, windows_first): (bool, bool), [m, n, k]: [usize; 3], slices: Option<u32>,
        profile: &DeviceProfile,
    ) -> Self {
        let rates = Rates::of(profile);
        let of = |row: &Division| Self {
            tile: row.tile,
            part: row.thread,
            side: profile.cooperative_side().unwrap_or(16),
            lanes: profile.subgroup_sizes.0,
            gradients,
            windows_first,
            m,
            n,
            k,
            groups: c.groups,
            slice_k: k,
            seconds: 0.0,
        };
        let factors = 2.0 * (c.groups * (m + n)) as f64 * k as f64 / (c.kernel[0] * c.kernel[1]).max(1) as f64;
        let best = |row: &Division| {
            let one = of(row);
            // Every driver must run the loop to its end.
            let longest = (profile.loop_steps(1, 1 << 32) * u64::from(row.tile.k)).min(1 << 20) as usize;
            let least = k.div_ceil(longest).max(1);
            let timed = |slices: usize| {
                let slice_k = k.div_ceil(slices).max(1).next_multiple_of(row.tile.k as usize);
                let sliced = Self { slice_k, ..one };
                let result_bytes = if gradients { 4.0 } else { 2.0 };
                let work = Work { batch: c.groups, m, n, k, factor_bytes: 2.0, result_bytes, factors, matrices: true };
                Self { seconds: predict::seconds(&rates, &work, row, sliced.slices()), ..sliced }
            };
            if let Some(slices) = slices {
                return timed((slices as usize).clamp(1, MAX_SLICES).max(least));
            }
            let slab = 4 * (c.groups * m) as u64 * n as u64;
            let most = (k / MIN_SLICE.max(2 * row.tile.k as usize)).min((SLABS / slab.max(1)) as usize);
            let filling = (1..=ROUNDS).map(|rounds| (rounds as f64 * rates.processors) as usize / one.tiles().max(1));
            let filling = filling.filter(|slices| (2..=most.min(MAX_SLICES)).contains(slices));
            let by_time = |a: &Self, b: &Self| a.seconds.total_cmp(&b.seconds);
            filling.map(|slices| timed(slices.max(least))).chain([timed(least)]).min_by(by_time).unwrap_or(one)
        };
        let choices = &profile.choices;
        let usable = |row: &&Division| of(row).fits(profile) && !choices.denies_row(c.op, COOP.name, || row.name());
        let forced = choices.row(c.op, COOP.name);
        let forced = forced.and_then(|name| ROWS.iter().filter(usable).find(|row| row.name() == name));
        let all = ROWS.iter().filter(usable).map(best).min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        forced.map(best).or(all).unwrap_or_else(|| best(&ROWS[ROWS.len() - 1]))
    }

    /// Says if the device has the threads and the workgroup memory, and threads share the loads evenly.
    fn fits(&self, profile: &DeviceProfile) -> bool {
        let ProductTile { m, n, k } = self.tile;
        let threads = self.threads();
        let even = |lines: u32, across: u32| {
            let pieces = across / PIECE as u32;
            threads.is_multiple_of(pieces) && (lines * pieces).is_multiple_of(threads)
        };
        let even = if self.gradients { even(k, m) && even(k, n) } else { even(m, k) && even(n, k) };
        even && [self.part[0], self.part[1], k].iter().all(|x| x.is_multiple_of(self.side))
            && threads <= profile.limits.max_invocations.min(profile.limits.max_workgroup_size[0])
            && self.workgroup_bytes() <= profile.limits.max_workgroup_bytes
    }

    fn threads(&self) -> u32 {
        self.tile.m / self.part[0] * (self.tile.n / self.part[1]) * self.lanes
    }

    fn workgroup_bytes(&self) -> u32 {
        let ProductTile { m, n, k } = self.tile;
        let staged = if self.gradients { k * (m + n + 2 * PAD) } else { (m + n) * (k + PAD) };
        2 * staged + 4 * self.threads() / self.lanes * self.side * self.side
    }

    fn tiles(&self) -> usize {
        let ProductTile { m, n, .. } = self.tile;
        self.m.div_ceil(m as usize) * self.n.div_ceil(n as usize) * self.groups
    }

    fn slices(&self) -> usize {
        self.k.div_ceil(self.slice_k).max(1)
    }

    fn text(&self) -> String {
        let ProductTile { m, n, k } = self.tile;
        let [rows, columns] = self.part;
        let slices = match self.slices() {
            1 => String::new(),
            slices => format!(", k in {slices} slices"),
        };
        format!("tile {m} x {n} x {k} by {rows} x {columns}{slices}")
    }

    pub(super) fn lower(job: &ConvJob<'_>, program: &mut Program) -> Result<()> {
        let (c, profile) = (&job.c, job.profile);
        let phases = Self::phases(c, job.slices, profile);
        // The sums of several phases are not sliced.
        let slices = if phases.len() > 1 { Some(1) } else { job.slices };
        let weights: Vec<_> = phases.iter().map(|phase| phase.pack_weights(job, program)).collect();
        let images = Images::of_x(c);
        let chunks = c.packed_chunks([job.x, job.output], images.scratch(), profile)?;
        let of = |phase: &Phase, chunk: &ImageChunk| Self::windows(&phase.c, chunk.images, slices, profile);
        let first = of(&phases[0], &chunks[0]);
        program.decision.because(format_args!("{}", first.text()));
        let outputs = |chunk: &ImageChunk| (chunk.images * c.image()[1]) as u64;
        let slabs = |chunk: &ImageChunk| match of(&phases[0], chunk).slices() as u64 {
            1 => 0,
            slices => 4 * slices * outputs(chunk),
        };
        let most = chunks.iter().map(slabs).max().unwrap_or(0);
        let many = first.slices();
        let what = format_args!("the slabs of {many} slices");
        profile.check_scratch(c.op, what, most, "take fewer slices or images")?;
        let held = (most > 0).then(|| program.scratch(most));
        let packed = scratch_of(program, &images, chunks[0].images);
        for chunk in &chunks {
            let x = images.pack(program, chunk.images, (chunk.x, chunk.x_at), packed);
            let size = slabs(chunk);
            let slab = held.filter(|_| size > 0).map(|slabs| Binding { size, ..slabs });
            let (spec, ends, c_at) = match slab {
                Some(slabs) => (Spec::new(), vec![slabs], 0),
                None => (job.end(3, "C_BINDING"), job.ends(chunk.y), chunk.y_at),
            };
            for (phase, weights) in phases.iter().zip(&weights) {
                let product = of(phase, chunk);
                let strided = phase.c.up != c.up;
                // Elements that are stored together are filters of one group, or lie in one image.
                let vec = if c.last { c.to.is_multiple_of(4) } else { !strided && c.pixels().is_multiple_of(4) };
                let vec = vec && c_at.is_multiple_of(4);
                let params = product.of_phase(c, phase, &x);
                let params = CoopLayerParams { c_at: c_at + params.c_at, ..params };
                let bindings = [vec![*weights, x.binding], ends.clone()].concat();
                let spec = spec.clone().flag("STRIDED", strided);
                product.dispatch(program, &phase.c, params, (spec, vec), &bindings, profile)?;
            }
            let Some(slabs) = slab else { continue };
            let end = job.end(2, "OUTPUT_BINDING").flag("LAST", c.last);
            let kernel = program.kernel(Kernel::of_file("conv/conv_slabs", end));
            let params = ConvSlabsParams {
                count: outputs(chunk) as u32,
                slabs: first.slices() as u32,
                pixels: c.pixels() as u32,
                channels: c.channels()[1] as u32,
                y_at: chunk.y_at,
            };
            let bindings = [vec![slabs], job.ends(chunk.y)].concat();
            program.dispatch(kernel, &params, bindings, Grid::fold(outputs(chunk).div_ceil(256)));
        }
        Ok(())
    }

    /// The parameters of a phase of a layer whose result begins at element 0.
    fn of_phase(&self, whole: &Correlation, phase: &Phase, x: &PackedImages) -> CoopLayerParams {
        let c = &phase.c;
        let (padded, step) = (Images::of_x(c).padded(), self.tile.k as usize);
        let (cells, across) = (step / padded, c.kernel[1].max(1));
        let outputs = whole.image()[1];
        // From image to image (or, of whole rows, from output to output), from group to group, from channel to channel,
        // and between neighbours of the whole layer.
        let strided = whole.up != c.up;
        let (image_c, group_c, channel_c, column_c) = match c.last {
            true if strided => (outputs, c.to, 1, whole.channels()[1]),
            true => (whole.channels()[1], c.to, 1, 1),
            false => (outputs, c.to * whole.pixels(), whole.pixels(), 1),
        };
        let row_c = whole.out[1] * column_c;
        let first = if strided { phase.first[0] * row_c + phase.first[1] * column_c } else { 0 };
        CoopLayerParams {
            ld: self.k as u32,
            group_matrix: (c.to * self.k) as u32,
            step_at: (step % padded) as u32,
            step_across: (cells % across * c.dilation[1]) as u32,
            step_down: (cells / across * c.dilation[0]) as u32,
            image_c: image_c as u32,
            group_c: group_c as u32,
            slab: (self.m * self.n * self.groups) as u32,
            channel_c: channel_c as u32,
            row_c: (row_c * whole.up[0]) as u32,
            column_c: (column_c * whole.up[1]) as u32,
            c_at: first as u32,
            ..self.params(c, x)
        }
    }

    /// Writes the gradient by weights as slabs of f32: the slabs, their number, the elements of a row of one, and those
    /// of a cell.
    pub(super) fn gradients(
        program: &mut Program, c: &Correlation, profile: &DeviceProfile,
    ) -> Result<(Binding, usize, usize, usize)> {
        let (of_x, of_y) = (Images::of_x(c), Images::of_y(c));
        let operands = [Resource::Operand(0), Resource::Operand(1)];
        let chunks = c.packed_chunks(operands, of_x.scratch().max(of_y.scratch()), profile)?;
        let products: Vec<_> = chunks.iter().map(|chunk| Self::weights(c, chunk.images, profile)).collect();
        program.decision.because(format_args!("{}", products[0].text()));
        let (m, n) = (products[0].m, products[0].n);
        let slab = c.groups * m * n;
        let count: usize = products.iter().map(Self::slices).sum();
        let bytes = 4 * slab as u64 * count as u64;
        let what = format_args!("the slabs of {count} slices");
        profile.check_scratch(c.op, what, bytes, "take fewer images at a time")?;
        let slabs = program.scratch(bytes);
        let [for_x, for_y] = [of_x, of_y].map(|images| scratch_of(program, &images, chunks[0].images));
        let mut before = 0;
        for (chunk, product) in chunks.iter().zip(&products) {
            let x = of_x.pack(program, chunk.images, (chunk.x, chunk.x_at), for_x);
            let y = of_y.pack(program, chunk.images, (chunk.y, chunk.y_at), for_y);
            let [p, q] = c.out;
            let step = product.tile.k as usize;
            let params = CoopLayerParams {
                matrix_at: y.at,
                ld: y.apart as u32,
                group_matrix: of_y.padded() as u32,
                line: of_y.padded() as u32,
                step_at: (step / q / p * of_x.image()) as u32,
                step_across: (step % q * c.stride[1]) as u32,
                step_down: (step / q % p * c.stride[0]) as u32,
                c_at: (before * slab) as u32,
                image_c: n as u32,
                group_c: (m * n) as u32,
                slab: slab as u32,
                ..product.params(c, &x)
            };
            let bindings = [y.binding, x.binding, slabs];
            product.dispatch(program, c, params, (Spec::new(), true), &bindings, profile)?;
            before += product.slices();
        }
        Ok((slabs, count, n, of_x.padded()))
    }

    /// The parameters that all products share.
    fn params(&self, c: &Correlation, x: &PackedImages) -> CoopLayerParams {
        let images = Images::of_x(c);
        let [p, q] = c.out.map(|extent| extent as u32);
        let [bound_h, bound_w] = c.bounds();
        let [stride_h, stride_w] = c.stride.map(|step| step as u32);
        let [dilation_h, dilation_w] = c.dilation.map(|gap| gap as u32);
        // Negative values wrap, and sums come out right.
        let [pad_h, pad_w] = c.pad.map(|pad| pad as u32);
        CoopLayerParams {
            m: self.m as u32,
            n: self.n as u32,
            k: self.k as u32,
            first_tile: 0,
            tiles: 0,
            tiles_m: self.m.div_ceil(self.tile.m as usize) as u32,
            tiles_n: self.n.div_ceil(self.tile.n as usize) as u32,
            groups: c.groups as u32,
            slice_k: self.slice_k as u32,
            matrix_at: 0,
            ld: 0,
            group_matrix: 0,
            line: 0,
            x_at: x.at,
            apart: x.apart as u32,
            group_x: images.padded() as u32,
            image_x: images.image() as u32,
            w: c.size[1] as u32,
            bound_h,
            bound_w,
            pad_h,
            pad_w,
            q,
            p,
            pixels: p * q,
            stride_h,
            stride_w,
            s: c.kernel[1].max(1) as u32,
            channels: images.padded() as u32,
            dilation_h,
            dilation_w,
            step_at: 0,
            step_across: 0,
            step_down: 0,
            c_at: 0,
            image_c: 0,
            group_c: 0,
            slab: 0,
            channel_c: 0,
            row_c: 0,
            column_c: 0,
        }
    }

    /// Dispatches over all tiles and slices, in chunks that take a bounded time.
    fn dispatch(
        &self, program: &mut Program, c: &Correlation, params: CoopLayerParams, (end, vec): (Spec, bool),
        bindings: &[Binding], profile: &DeviceProfile,
    ) -> Result<()> {
        let all = (self.tiles() * self.slices()) as u64;
        if all >= 1 << 31 {
            return Err(err!(TooLarge, "{}: {all} tiles are above 2^31; take fewer images in a call", c.op));
        }
        let kernel = program.kernel(self.kernel(c, end, vec));
        let flop = 2 * self.tile.elements() * self.slice_k as u64;
        dispatch_chunks(program, kernel, bindings, all, flop, profile, |Range { start, end }| CoopLayerParams {
            first_tile: start as u32,
            tiles: (end - start) as u32,
            ..params
        })
    }

    fn kernel(&self, c: &Correlation, end: Spec, vec: bool) -> Kernel {
        let ProductTile { m, n, k } = self.tile;
        let mut spec = end
            .flag("VEC_C", vec)
            .flag("GRADIENTS", self.gradients)
            .flag("WINDOWS_FIRST", self.windows_first)
            .constant("TILE_M", m)
            .constant("TILE_N", n)
            .constant("TILE_K", k)
            .constant("PART_M", self.part[0])
            .constant("PART_N", self.part[1])
            .constant("BLOCK_SIDE", self.side)
            .constant("LANES", self.lanes);
        if c.up != [1, 1] {
            let [up_h, up_w] = c.up.map(|up| up as u32);
            spec = spec.flag("SPREAD", true).constant("UP_H", up_h).constant("UP_W", up_w);
        }
        Kernel::of_file("conv/conv_coop", spec)
    }
}

#[cfg(test)]
mod tests;
