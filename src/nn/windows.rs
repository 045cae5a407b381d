//! Windows over planes: their shapes, and chunks of planes that fit a binding.

use crate::conv::WindowAxis;
use crate::program::fit::LOOP_ROUNDS;
use crate::program::prelude::*;

/// Cells that a thread may walk on every driver; the other half of the rounds is for outer loops.
pub(super) const MAX_STEPS: usize = LOOP_ROUNDS as usize / 2;

/// Writes the options of windows that pooling and its gradient share.
macro_rules! window_methods {
    () => {
        window_methods!(weighted);

        /// [`Average`](PoolKind::Average) divides by all cells of a window, padding included. By default it divides by
        /// the cells inside the image.
        #[must_use]
        pub fn count_include_pad(mut self) -> Self {
            self.windows.padding_counts = true;
            self
        }
    };
    (weighted) => {
        /// Sets the distance between windows, down and across. The default is the extent of a window.
        #[must_use]
        pub fn stride(mut self, stride: [usize; 2]) -> Self {
            self.windows.stride = stride;
            self
        }

        /// Sets the rows of padding above and below, and the columns left and right. The default is none.
        #[must_use]
        pub fn pad(mut self, [h, w]: [usize; 2]) -> Self {
            self.windows.pads = [h, w, h, w];
            self
        }

        /// Sets the distance between cells of a window, down and across. The default is 1.
        #[must_use]
        pub fn dilation(mut self, dilation: [usize; 2]) -> Self {
            self.windows.dilation = dilation;
            self
        }
    };
}
pub(super) use window_methods;

/// Windows over each of N x C planes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Windows {
    pub(super) op: &'static str,
    /// N, C, H, W.
    pub(crate) shape: [usize; 4],
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    /// Top, left, bottom, right.
    pub(crate) pads: [usize; 4],
    pub(crate) dilation: [usize; 2],
    pub(crate) padding_counts: bool,
}

kernel_params! {
    pub(super) struct WindowsParams {
        planes: u32,
        channels: u32,
        first: u32,
        h: u32,
        w: u32,
        p: u32,
        q: u32,
        r: u32,
        s: u32,
        stride_h: u32,
        stride_w: u32,
        top: u32,
        left: u32,
        dilation_h: u32,
        dilation_w: u32,
        wide: u32,
        narrow: u32,
        block: u32,
        first_part: u32,
        all_parts: u32,
    }
}

/// The operands that are bound chunk by chunk: those with planes of `x`, and those with planes of windows.
pub(super) struct ChunkedOperands<'a> {
    pub(super) dtype: DType,
    pub(super) wide: &'a [usize],
    pub(super) narrow: &'a [usize],
    pub(super) profile: &'a DeviceProfile,
}

pub(super) fn check_images(op: &str, [n, c, h, w]: [usize; 4]) -> Result<()> {
    if [n, c, h, w].contains(&0) {
        return Err(err!(Shape, "{op}: x has the shape {n} x {c} x {h} x {w}; every extent must be at least 1"));
    }
    Ok(())
}

impl Windows {
    pub(super) fn new(op: &'static str, shape: [usize; 4], kernel: [usize; 2]) -> Self {
        Self { op, shape, kernel, stride: kernel, pads: [0; 4], dilation: [1; 2], padding_counts: false }
    }

    /// Returns the shape of the output: N, C, P, Q.
    pub(crate) fn output_shape(&self) -> Result<[usize; 4]> {
        let Self { op, shape, kernel, stride, pads, dilation, .. } = *self;
        check_images(op, shape)?;
        let extent = |axis: usize| {
            let along = WindowAxis {
                name: ["rows", "columns"][axis],
                size: shape[2 + axis],
                cells: kernel[axis],
                step: stride[axis],
                gap: dilation[axis],
                pads: [pads[axis], pads[axis + 2]],
            };
            let windows = along.windows(op);
            let ([before, after], span) = (along.pads, along.span());
            if kernel[axis] > 0 && dilation[axis] > 0 && (before >= span || after >= span) {
                return Err(err!(
                    Shape,
                    "{op}: the padding, {before} and {after} {}, is as wide as a window of {span}; it must be narrower",
                    along.name
                ));
            }
            windows
        };
        Ok([shape[0], shape[1], extent(0)?, extent(1)?])
    }

    /// Returns the elements of `x` and of the output.
    pub(super) fn lengths(&self) -> Result<(usize, usize)> {
        Ok((elements(self.op, "x", &self.shape)?, elements(self.op, "output", &self.output_shape()?)?))
    }

    /// Tells whether windows are 2 x 2 and adjacent, in rows of whole vec4s.
    pub(super) fn are_pairs(&self) -> bool {
        self.kernel == [2, 2]
            && self.stride == [2, 2]
            && self.pads == [0; 4]
            && self.dilation == [1, 1]
            && self.shape[3].is_multiple_of(4)
    }

    pub(super) fn check_sizes(&self, program: &Program, profile: &DeviceProfile) -> Result<()> {
        let [n, c, ..] = self.shape;
        profile.check_buffers(self.op, &program.operands, "use fewer images at a time")?;
        for o in &program.operands {
            let planes = if ["bias", "weights"].contains(&o.name) { 1 } else { (n * c).max(1) as u64 };
            let plane = format_args!("a plane of {}", o.name);
            profile.check_row(self.op, plane, o.bytes() / planes, "split the images")?;
        }
        Ok(())
    }

    /// Calls `record` with parameters and bindings for each chunk of planes that fits the bindings.
    pub(super) fn each_chunk(
        &self, program: &mut Program, operands: &ChunkedOperands<'_>,
        mut record: impl FnMut(&mut Program, WindowsParams, &[Binding], &[Binding]),
    ) {
        let Self { shape: [n, c, h, w], kernel: [r, s], stride, pads, dilation, .. } = *self;
        let Ok([.., p, q]) = self.output_shape() else { return };
        let size = operands.dtype.size() as u64;
        let [wide, narrow] = [h * w, p * q].map(|plane| plane as u64 * size);
        for chunk in operands.profile.chunks((n * c) as u64, wide.max(narrow)) {
            let origin = |plane: u64| (chunk.span(plane).before / size) as u32;
            let bind = |indices: &[usize], plane| -> Vec<Binding> {
                indices.iter().map(|&o| chunk.of(Resource::Operand(o), plane)).collect()
            };
            let params = WindowsParams {
                planes: chunk.count as u32,
                channels: c as u32,
                first: (chunk.first % c as u64) as u32,
                h: h as u32,
                w: w as u32,
                p: p as u32,
                q: q as u32,
                r: r as u32,
                s: s as u32,
                stride_h: stride[0] as u32,
                stride_w: stride[1] as u32,
                top: pads[0] as u32,
                left: pads[1] as u32,
                dilation_h: dilation[0] as u32,
                dilation_w: dilation[1] as u32,
                wide: origin(wide),
                narrow: origin(narrow),
                block: 0,
                first_part: 0,
                all_parts: 0,
            };
            record(program, params, &bind(operands.wide, wide), &bind(operands.narrow, narrow));
        }
    }
}

#[cfg(test)]
mod tests;
