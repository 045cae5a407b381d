//! The filters whose sums stay in registers: `shaders/conv/stencil_register.wgsl`, and `lines_register.wgsl` for
//! filters that are products of lines.

use crate::program::prelude::*;

/// The outputs of a thread, and the filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registers {
    /// Extents of the filter along z, y and x.
    pub(super) filter: [usize; 3],
    /// Words hold several elements: u8 or f16.
    pub(super) packed: bool,
    /// Rows are multiples of 4 long, so that they load by vec4s.
    pub(super) vectors: bool,
    /// Outputs of a thread along y, and along z.
    pub(super) rows: usize,
    pub(super) planes: usize,
    /// For a filter that is a product of lines: elements between neighbours along x. Such kernels need `vectors`.
    pub(super) lines: Option<usize>,
}

impl Registers {
    /// Outputs along x.
    pub(super) fn wide(&self) -> usize {
        if self.vectors || self.packed { 4 } else { 1 }
    }

    /// Counts the multiply-adds that the kernel writes out.
    pub(super) fn terms(&self) -> usize {
        let [fz, fy, fx] = self.filter;
        if self.lines.is_none() {
            return fz * fy * fx * self.rows * self.planes;
        }
        let across = if fz > 1 { self.planes * self.rows * fz } else { 0 };
        (self.planes + fz - 1) * ((self.rows + fy - 1) * fx + self.rows * fy) + across
    }

    /// The kernel. `spec` has the tile of a workgroup, the boundary, `VECTORS` and, except for lines, the filter.
    pub(super) fn kernel(&self, spec: Spec) -> Kernel {
        let spec =
            spec.flag("PACKED", self.packed).constant("ROWS", self.rows as u32).constant("PLANES", self.planes as u32);
        let Some(step) = self.lines else {
            return Kernel::of_file("conv/stencil_register", spec);
        };
        let [z, y, x] = self.filter.map(|line| line as u32);
        let spec =
            spec.constant("LINE_X", x).constant("LINE_Y", y).constant("LINE_Z", z).constant("APART", step as u32);
        Kernel::of_file("conv/lines_register", spec)
    }
}

#[cfg(test)]
mod tests;
