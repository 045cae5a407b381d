//! The kernel of depthwise layers, several outputs for each thread with their sums in registers:
//! `shaders/conv/conv_depthwise.wgsl`.

use super::correlate::ConvJob;
use super::layer::{Correlation, ImageChunk};
use crate::program::prelude::*;

/// The constants that the kernel is specialised to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depthwise {
    c: Correlation,
    /// Outputs of a thread below each other; WIDE of them side by side.
    rows: usize,
    /// Rows of x, and those of outputs, are whole vec4s.
    loads: bool,
    stores: bool,
}

/// Outputs of a thread along a row.
const WIDE: usize = 4;

/// Cells of the largest window.
const MAX_CELLS: usize = 49;

/// Maximum multiply-adds that the kernel writes out.
const TERMS: usize = 800;

impl Depthwise {
    /// Says if each group has one input channel and no gradient of strides is requested.
    pub(super) fn fits(c: &Correlation) -> bool {
        let reach = |axis: usize| c.kernel[axis].saturating_mul(c.dilation[axis]) <= 64 && c.stride[axis] <= 4;
        let pads = c.pad.iter().all(|pad| pad.unsigned_abs() <= 1 << 20);
        c.from == 1 && c.terms() <= MAX_CELLS && c.up == [1, 1] && reach(0) && reach(1) && pads
    }

    /// The kernel for this layer, or why there is none.
    pub(super) fn check(c: &Correlation, profile: &DeviceProfile) -> Result<Self, String> {
        if !Self::fits(c) {
            let [r, s] = c.kernel;
            return Err(format!(
                "takes one channel a group, windows of up to {MAX_CELLS} cells and no gradient of strides; these are \
                 {r} x {s} of {} channels",
                c.from
            ));
        }
        // 32 x 512 channels of 56 x 56 under 3 x 3 on an H100: 1 row 2642, 2 2847, 4 2841, 8 2657 GB/s.
        let most = if profile.quirks.slow_compiler { 2 } else { 4 };
        let rows = (TERMS / WIDE / c.terms()).clamp(1, most).min(c.out[0]);
        Ok(Self { c: *c, rows, loads: c.size[1].is_multiple_of(4), stores: c.out[1].is_multiple_of(4) })
    }

    pub(super) fn lower(&self, job: &ConvJob<'_>, program: &mut Program, chunks: &[ImageChunk]) {
        let c = self.c;
        let loads = self.loads && chunks.iter().all(|chunk| chunk.x_at.is_multiple_of(4));
        let stores = self.stores && chunks.iter().all(|chunk| chunk.y_at.is_multiple_of(4));
        let [p, q] = c.out;
        let per_plane = p.div_ceil(self.rows) * q.div_ceil(WIDE);
        let kernel = program.kernel(Self { loads, stores, ..*self }.kernel(job.weigh(job.end(3, "OUTPUT_BINDING"))));
        program.decision.because(format_args!("{} x {WIDE} outputs for each thread", self.rows));
        for chunk in chunks {
            let count = chunk.images * c.groups * c.to * per_plane;
            let bindings = [vec![chunk.x, job.weights], job.ends(chunk.y)].concat();
            let grid = Grid::fold((count as u64).div_ceil(256));
            program.dispatch(kernel, &c.params(chunk, count), bindings, grid);
        }
    }

    fn kernel(&self, spec: Spec) -> Kernel {
        let c = &self.c;
        // The first cell of the first output's windows: the load that has it, and its place there.
        let (first, lead) = match self.loads {
            true => ((-c.pad[1]).div_euclid(4), (-c.pad[1]).rem_euclid(4)),
            false => (-c.pad[1], 0),
        };
        let spec = spec
            .flag("VECTORS", self.loads)
            .flag("STORES", self.stores)
            .constant("WINDOW_H", c.kernel[0] as u32)
            .constant("WINDOW_W", c.kernel[1] as u32)
            .constant("STRIDE_H", c.stride[0] as u32)
            .constant("STRIDE_W", c.stride[1] as u32)
            .constant("DILATION_H", c.dilation[0] as u32)
            .constant("DILATION_W", c.dilation[1] as u32)
            .constant("ROWS", self.rows as u32)
            .constant("FIRST", first as u32)
            .constant("LEAD", lead as u32);
        Kernel::of_file("conv/conv_depthwise", spec)
    }
}

#[cfg(test)]
mod tests;
