//! The kernel with tiles of x and their halo in workgroup memory, and sums in registers:
//! `shaders/conv/conv_tiled.wgsl`.

use super::correlate::ConvJob;
use super::layer::{ConvParams, Correlation, ImageChunk};
use crate::dense::dispatch_chunks;
use crate::dense::predict::{self, Rates};
use crate::program::prelude::*;
use std::ops::Range;

/// Outputs of a thread along a row.
const WIDE: usize = 8;

/// Approximate cells of windows, over all channels that are staged at once.
const STAGED_CELLS: usize = 36;

/// Cells of the largest window.
const MAX_CELLS: usize = 121;

/// Seconds of the first loads and last stores, and of a product of an output where a processor has one tile; percent of
/// the peak rate that a full processor reaches.
const START: f64 = 12e-6;
const ALONE: f64 = 0.1e-6;
const PERCENT: f64 = 60.0;

/// The constants that the kernel is specialised to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiled {
    kernel: [usize; 2],
    /// Channels that a thread computes, and the number of such groups in a workgroup.
    channels: usize,
    groups: usize,
    /// Threads down and across.
    down: usize,
    across: usize,
    /// Channels of x that are staged at once.
    staged: usize,
    /// Workgroup memory is made of vec4s, as in the register-tiled matrix product.
    vectors: bool,
    /// Rows of outputs are whole vec4s.
    stores: bool,
}

impl Tiled {
    /// Fails with the reason if the kernel cannot compute this layer.
    pub(super) fn check(c: &Correlation) -> Result<(), String> {
        let [r, s] = c.kernel;
        if [c.stride, c.up, c.dilation] == [[1, 1]; 3] && r * s <= MAX_CELLS && r.max(s) <= 16 {
            return Ok(());
        }
        Err(format!(
            "takes windows of up to {MAX_CELLS} cells with stride and dilation 1; these are {r} x {s} with stride \
             {:?} and dilation {:?}",
            c.stride, c.dilation
        ))
    }

    /// The most channels of a dispatch, whole steps of the channels that are staged at once. In each step two loops
    /// stage channels, and one walks over rows of windows. The round that ends a loop counts.
    fn longest_slice(&self, profile: &DeviceProfile) -> u64 {
        let [r, s] = self.kernel;
        let lanes = self.lanes();
        let weights = self.staged * r * s * self.tile()[0];
        let each = self.cells().div_ceil(lanes) + weights.div_ceil(lanes) + self.staged * r + 4;
        ((profile.max_rounds() - 1) / each as u64).max(1).saturating_mul(self.staged as u64)
    }

    pub(super) fn new(c: &Correlation, profile: &DeviceProfile) -> Self {
        let [p, q] = c.out;
        // Four groups of channels in a workgroup: 7 x 7 to 16 channels reach 36.8 TFLOP/s by 4 x 4, 31.3 by 2 x 8
        // on an H100; to 32 channels 39.8 by 4 x 8, 33.6 by 2 x 16.
        let (channels, lanes) = match profile.quirks.serial_workgroups {
            true => (4, 16),
            false => (if c.to <= 16 { 4 } else { 8 }, 128),
        };
        let groups = c.to.div_ceil(channels).next_power_of_two().min(4);
        // The fewest lanes that idle or lie beyond the last row and column; of equals the largest, then the widest.
        let shapes = [4, 2, 1].into_iter().flat_map(|across| {
            let most = (lanes / groups / across).max(1);
            (most.div_ceil(2)..=most).rev().map(move |down| (across, down))
        });
        let subgroup = profile.subgroup_sizes.1.max(1) as usize;
        let cost = |&(across, down): &(usize, usize)| {
            let own = groups * across * down;
            let tiles = p.div_ceil(down) * q.div_ceil(across * WIDE);
            (tiles * own.next_multiple_of(subgroup), lanes.abs_diff(own))
        };
        let (across, down) = shapes.min_by_key(cost).unwrap_or((1, 1));
        let cells = c.kernel[0] * c.kernel[1];
        let mut tiled = Self {
            kernel: c.kernel,
            channels,
            groups,
            down,
            across,
            staged: STAGED_CELLS.div_ceil(cells).min(c.from),
            vectors: !profile.quirks.stores_whole_vectors,
            stores: q.is_multiple_of(4),
        };
        let most = u64::from(profile.limits.max_workgroup_bytes.min(24 << 10));
        while tiled.bytes() > most && (tiled.staged > 1 || tiled.down > 1 || tiled.groups > 1) {
            let smaller = [&mut tiled.staged, &mut tiled.down, &mut tiled.groups];
            if let Some(extent) = smaller.into_iter().find(|extent| **extent > 1) {
                *extent /= 2;
            }
        }
        tiled
    }

    /// Predicts the time of a layer. On an H100 (Vulkan, driver 580.159.04): 223 to 95 channels of 160 x 160, 5 x 5,
    /// 4 images 3.23 ms; 192 to 5 of 64 x 64 487 us, where no processor has more than one tile.
    pub(super) fn seconds(&self, c: &Correlation, rates: &Rates) -> f64 {
        let [m, down, across] = self.tile();
        let tiles = c.images * self.tiles(c);
        let full = 2.0 * (m * down * across) as f64 / (rates.flop * PERCENT * 1e-2);
        let each = tiles as f64 / rates.processors;
        START + c.terms() as f64 * ALONE.max(full * predict::fullest(each))
    }

    fn tiles(&self, c: &Correlation) -> usize {
        let [m, down, across] = self.tile();
        c.groups * c.to.div_ceil(m) * c.out[0].div_ceil(down) * c.out[1].div_ceil(across)
    }

    fn lanes(&self) -> usize {
        self.groups * self.down * self.across
    }

    /// Channels, rows and columns of outputs of a workgroup.
    fn tile(&self) -> [usize; 3] {
        [self.groups * self.channels, self.down, self.across * WIDE]
    }

    /// Rows of x of a tile, and cells from one to the next in workgroup memory: an odd number of vec4s, which
    /// spreads a column over the banks.
    fn rows(&self) -> usize {
        self.down + self.kernel[0] - 1
    }

    fn pitch(&self) -> usize {
        let vectors = (self.across * WIDE + self.kernel[1] - 1).div_ceil(4);
        4 * (vectors | 1)
    }

    /// Weights of a cell of the window in workgroup memory: four more than channels, to spread them over the banks.
    fn pitch_w(&self) -> usize {
        self.tile()[0] + 4
    }

    fn cells(&self) -> usize {
        self.staged * self.rows() * self.pitch()
    }

    fn weights(&self) -> usize {
        self.staged * self.kernel[0] * self.kernel[1] * self.pitch_w()
    }

    fn bytes(&self) -> u64 {
        4 * (self.cells() + self.weights()) as u64
    }

    pub(super) fn lower(&self, job: &ConvJob<'_>, program: &mut Program, chunks: &[ImageChunk]) -> Result<()> {
        let c = &job.c;
        let stores = self.stores && chunks.iter().all(|chunk| chunk.y_at.is_multiple_of(4));
        let [m, down, across] = self.tile();
        let tiles = self.tiles(c);
        let spec = job.spread(job.weigh(job.end(3, "OUTPUT_BINDING")));
        let slices = BoundChunk::full(c.from as u64, self.longest_slice(job.profile));
        let spec = spec.flag("SLICED", slices.clone().count() > 1);
        let kernel = program.kernel(Self { stores, ..*self }.kernel(spec));
        program.decision.because(format_args!("tile of {m} channels x {down} x {across}"));
        let flop = 2 * (m * down * across * c.terms()) as u64;
        for chunk in chunks {
            let all = (chunk.images * tiles) as u64;
            let bindings = [vec![chunk.x, job.weights], job.ends(chunk.y)].concat();
            for slice in slices.clone() {
                dispatch_chunks(program, kernel, &bindings, all, flop, job.profile, |Range { start, end }| {
                    ConvParams {
                        first: start as u32,
                        first_channel: slice.first as u32,
                        end_channel: (slice.first + slice.count) as u32,
                        ..c.params(chunk, end as usize)
                    }
                })?;
            }
        }
        Ok(())
    }

    fn kernel(&self, spec: Spec) -> Kernel {
        let [window_h, window_w] = self.kernel.map(|extent| extent as u32);
        let spec = spec
            .flag("VECTORS", self.vectors)
            .flag("STORES", self.stores)
            .constant("WINDOW_H", window_h)
            .constant("WINDOW_W", window_w)
            .constant("CHANNELS", self.channels as u32)
            .constant("GROUPS", self.groups as u32)
            .constant("DOWN", self.down as u32)
            .constant("ACROSS", self.across as u32)
            .constant("STAGED", self.staged as u32);
        Kernel::of_file("conv/conv_tiled", spec)
    }
}
