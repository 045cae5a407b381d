//! Images and weights of f16 with their channels next to each other, in whole pieces: what
//! `shaders/conv/conv_coop.wgsl` reads.

use super::layer::{Correlation, ImageChunk, image_chunks};
use crate::dense::predict::{self, Rates};
use crate::program::prelude::*;

kernel_params! {
    struct PackImageParams {
        count: u32, pixels: u32, image_pixels: u32, pieces: u32, pixel_pieces: u32, from_at: u32, image: u32,
        channel_step: u32, pixel_step: u32, channels: u32,
    }
}

/// Channels of a piece, which a thread moves together, as in the shader.
pub(super) const PIECE: usize = 8;

/// Time of a pass that packs over that of a copy: its loads are of single elements.
pub(super) const PACK_RATE: f64 = 1.5;

/// A factor in memory: its binding, its first element, and the elements from one pixel or row to the next.
#[derive(Clone, Copy)]
pub(super) struct PackedImages {
    pub(super) binding: Binding,
    pub(super) at: u32,
    pub(super) apart: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Images {
    channels: usize,
    pixels: usize,
    groups: usize,
    last: bool,
}

impl Images {
    pub(super) fn of_x(c: &Correlation) -> Self {
        Self { channels: c.from, pixels: c.size[0] * c.size[1], groups: c.groups, last: c.last }
    }

    pub(super) fn of_y(c: &Correlation) -> Self {
        Self { channels: c.to, pixels: c.pixels(), ..Self::of_x(c) }
    }

    pub(super) fn padded(&self) -> usize {
        self.channels.next_multiple_of(PIECE)
    }

    pub(super) fn image(&self) -> usize {
        self.pixels * self.groups * self.padded()
    }

    pub(super) fn in_place(&self) -> bool {
        self.last && self.channels.is_multiple_of(PIECE)
    }

    pub(super) fn scratch(&self) -> u64 {
        if self.in_place() { 0 } else { 2 * self.image() as u64 }
    }

    pub(super) fn seconds(&self, images: usize, rates: &Rates) -> f64 {
        let moved = 2 * images * self.pixels * self.groups * (self.channels + self.padded());
        if self.in_place() { 0.0 } else { predict::PASS + PACK_RATE * rates.copy(moved as f64) }
    }

    /// Packs images of `from`, whose first element is `at`, into `to`; or nothing, where they are packed as they are.
    pub(super) fn pack(
        &self, program: &mut Program, images: usize, (from, at): (Binding, u32), to: Option<Binding>,
    ) -> PackedImages {
        let apart = self.groups * self.padded();
        let Some(to) = to else { return PackedImages { binding: from, at, apart } };
        let (pixels, channels) = (images * self.pixels, self.groups * self.channels);
        let pieces = self.padded() / PIECE;
        let count = pixels.next_multiple_of(64) * self.groups * pieces;
        let (channel_step, pixel_step) = if self.last { (1, channels) } else { (self.pixels, 1) };
        let params = PackImageParams {
            count: count as u32,
            pixels: pixels as u32,
            image_pixels: self.pixels as u32,
            pieces: pieces as u32,
            pixel_pieces: (self.groups * pieces) as u32,
            from_at: at,
            image: (channels * self.pixels) as u32,
            channel_step: channel_step as u32,
            pixel_step: pixel_step as u32,
            channels: self.channels as u32,
        };
        let kernel = program.kernel(Kernel::of_file("conv/conv_pack", Spec::new()));
        let to = Binding { size: 2 * (images * self.image()) as u64, ..to };
        program.dispatch(kernel, &params, vec![from, to], Grid::fold((count as u64).div_ceil(256)));
        PackedImages { binding: to, at: 0, apart }
    }
}

/// Says if the weights are the rows of a matrix as they are.
pub(super) fn weights_in_place(c: &Correlation) -> bool {
    !c.turned && Images::of_x(c).in_place()
}

/// Scratch for the packed images of the largest chunk.
pub(super) fn scratch_of(program: &mut Program, of: &Images, images: usize) -> Option<Binding> {
    (!of.in_place()).then(|| program.scratch(of.scratch() * images as u64))
}

impl Correlation {
    /// As [`chunks`](Self::chunks), with scratch of these bytes for an image that must fit a binding too.
    pub(super) fn packed_chunks(
        &self, operands: [Resource; 2], scratch: u64, profile: &DeviceProfile,
    ) -> Result<Vec<ImageChunk>> {
        let bytes = self.image().map(|elements| self.size_of() * elements as u64);
        image_chunks(self.op, self.images, (bytes, self.size_of(), scratch), operands, profile)
    }
}
