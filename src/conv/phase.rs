//! Layers of a spread x, cut into layers without spread, and their weights as matrices of f16.

use super::correlate::ConvJob;
use super::layer::{ConvParams, Correlation, ImageChunk};
use super::pack::{Images, PIECE, weights_in_place};
use crate::program::prelude::*;

/// The outputs of a layer whose windows take the same cells of a spread x, as a layer of their own without spread:
/// each `up`-th output down and across, and each so-many-th cell of a window.
pub(super) struct Phase {
    pub(super) c: Correlation,
    /// The first output, and the first cell and the distance of cells of a window.
    pub(super) first: [usize; 2],
    cell: [usize; 2],
    cell_step: [usize; 2],
}

pub(super) const MAX_PHASES: usize = 16;

impl Phase {
    pub(super) fn whole(c: &Correlation) -> Self {
        Self { c: *c, first: [0; 2], cell: [0; 2], cell_step: [1; 2] }
    }

    /// The phases of a layer, if there are few.
    pub(super) fn all(c: &Correlation) -> Vec<Self> {
        let [up_h, up_w] = c.up;
        if up_h * up_w == 1 || up_h * up_w > MAX_PHASES {
            return vec![Self::whole(c)];
        }
        let phases = (0..up_h).flat_map(|y| (0..up_w).map(move |x| [y, x]));
        phases.filter(|[y, x]| *y < c.out[0] && *x < c.out[1]).map(|first| Self::from(c, first)).collect()
    }

    pub(super) fn from(c: &Correlation, first: [usize; 2]) -> Self {
        let mut phase = Self { first, ..Self::whole(c) };
        for axis in [0, 1] {
            let (up, dilation, cells) = (c.up[axis], c.dilation[axis], c.kernel[axis]);
            // The place in the spread x that a cell of the first window reads.
            let place = |cell: usize| first[axis] as isize - c.pad[axis] + (cell * dilation) as isize;
            let inside = |cell: &usize| place(*cell).rem_euclid(up as isize) == 0;
            let mut taken = (0..cells).filter(inside);
            let (begin, next) = (taken.next(), taken.next());
            let step = begin.zip(next).map_or(up, |(begin, next)| next - begin);
            let begin_at = begin.unwrap_or(0);
            phase.cell[axis] = begin_at;
            phase.cell_step[axis] = step;
            let of = &mut phase.c;
            of.kernel[axis] = begin.map_or(0, |begin| (cells - begin).div_ceil(step));
            of.dilation[axis] = (step * dilation / up).max(1);
            of.pad[axis] = -place(begin_at).div_euclid(up as isize);
            of.out[axis] = (c.out[axis] - first[axis]).div_ceil(up);
            of.up[axis] = 1;
        }
        if phase.c.kernel.contains(&0) {
            phase.c.kernel = [0; 2];
        }
        phase
    }

    /// The weights as a matrix of f16: a row for each filter, with whole pieces of channels.
    pub(super) fn pack_weights(&self, job: &ConvJob<'_>, program: &mut Program) -> Binding {
        if weights_in_place(&job.c) {
            return job.weights;
        }
        let c = &self.c;
        let columns = c.kernel[0] * c.kernel[1] * Images::of_x(c).padded();
        let count = c.groups * c.to * columns / PIECE;
        let packed = program.scratch((16 * count).max(16) as u64);
        if count == 0 {
            return packed;
        }
        let spec = job.weigh(Spec::new().constant("WEIGHTS_BINDING", 1u32));
        let kernel = program.kernel(Kernel::of_file("conv/conv_pack_weights", spec));
        let none = ImageChunk { first: 0, images: 0, x: packed, y: packed, x_at: 0, y_at: 0 };
        let [p, q] = c.kernel.map(|cells| cells as u32);
        let [stride_h, stride_w] = self.cell_step.map(|step| step as u32);
        let [pad_h, pad_w] = self.cell.map(|cell| cell as u32);
        let of_layer = job.c.params(&none, count);
        let params = ConvParams { columns: columns as u32, p, q, stride_h, stride_w, pad_h, pad_w, ..of_layer };
        let grid = Grid::fold((count as u64).div_ceil(256));
        program.dispatch(kernel, &params, vec![job.weights, packed], grid);
        packed
    }
}

#[cfg(test)]
mod tests;
