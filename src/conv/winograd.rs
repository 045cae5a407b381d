//! Winograd's convolution for windows of 3 x 3: 4 x 4 outputs from 6 x 6 cells, F(4 x 4, 3 x 3) of Lavin and Gray, 2016.
//!
//! Weights and tiles of cells are transformed to 36 numbers each; for each of these places the channels are summed by
//! one matrix product; the sums are transformed back. 36 products stand for 144.

use super::correlate::Job;
use super::layer::{Correlation, Piece};
use crate::dense::GemmBatched;
use crate::error::{Result, err};
use crate::program::{Binding, Grid, Kernel, Op, Program, Resource};
use crate::shader::Spec;

/// Outputs of a tile along a side, and numbers that stand for a tile.
const SIDE: usize = 4;
const PLACES: usize = 36;

/// Bytes of transformed cells and sums of a chunk of images.
const SCRATCH: u64 = 256 << 20;

/// Whether windows are of 3 x 3, one beside the other.
pub(super) fn fits(c: &Correlation) -> bool {
    c.kernel == [3, 3] && c.stride == [1, 1] && c.up == [1, 1] && c.dilation == [1, 1]
}

pub(super) fn lower(job: &Job<'_>, program: &mut Program, pieces: &[Piece]) -> Result<()> {
    let (c, profile) = (&job.c, job.profile);
    let [p, q] = c.out;
    let tiles = p.div_ceil(SIDE) * q.div_ceil(SIDE);
    let [from, to] = [c.groups * c.from, c.groups * c.to];
    // Of an image, its tiles rounded up to whole vectors.
    let bytes = |tiles: usize, channels: usize| 4 * (PLACES * channels * tiles.next_multiple_of(4)) as u64;
    let limit = profile.limits.max_storage_binding;
    let room = |images: usize| {
        let [cells, sums] = [from, to].map(|channels| bytes(images * tiles, channels));
        cells.max(sums) <= limit && (cells + sums <= SCRATCH || images == 1)
    };
    let weights_bytes = 4 * (PLACES * to * c.from) as u64;
    if !room(1) || weights_bytes > limit {
        return Err(err!(
            TooLarge,
            "{}: `winograd` takes {} bytes of scratch for an image and {weights_bytes} for the weights; {} binds {limit}; \
             take `implicit`",
            c.op,
            bytes(tiles, from.max(to)),
            profile.name
        ));
    }
    let images = (1..=pieces[0].images).rev().find(|n| room(*n)).unwrap_or(1);
    let most = (images * tiles).next_multiple_of(4);
    let weights = program.scratch(weights_bytes);
    let cells = program.scratch(bytes(most, from));
    let sums = program.scratch(bytes(most, to));
    program.why += &format!("; {images} images at a time, {} bytes of scratch", program.scratch_bytes());

    let kernel = program.kernel(Kernel::library(
        "conv/conv_winograd_weights",
        "transform_weights",
        job.weigh(Spec::new().constant("WEIGHTS_BINDING", 1u32)),
    ));
    let count = to * c.from;
    let grid = Grid::fold((count as u64).div_ceil(256));
    program.dispatch(kernel, &c.params(&pieces[0], count), vec![job.weights, weights], grid);

    let input = Kernel::library("conv/conv_winograd_input", "transform_cells", Spec::new());
    let vectors = q.is_multiple_of(4) && pieces.iter().all(|piece| piece.y_at.is_multiple_of(4));
    let spec = job.end(2, "OUTPUT_BINDING").flag("VECTORS", vectors);
    let output = Kernel::library("conv/conv_winograd_output", "transform_sums", spec);
    for piece in pieces {
        for first in (0..piece.images).step_by(images) {
            let count = images.min(piece.images - first);
            let columns = (count * tiles).next_multiple_of(4);
            let part = |binding: Binding, channels| Binding { size: bytes(columns, channels), ..binding };
            let (cells, sums) = (part(cells, from), part(sums, to));
            let mut params = c.params(piece, 0);
            params.images = count as u32;
            params.x_at += (first * c.image()[0]) as u32;
            params.y_at += (first * c.image()[1]) as u32;

            let kernel = program.kernel(input.clone());
            params.count = (columns * from) as u32;
            let grid = Grid::fold(u64::from(params.count).div_ceil(256));
            program.dispatch(kernel, &params, vec![piece.x, cells], grid);

            let product = GemmBatched::new(PLACES * c.groups, c.to, columns, c.from);
            let product = Op::<f32>::lower(&product, profile)?;
            let operands: Vec<Resource> = [weights, cells, sums].map(|b| b.resource).to_vec();
            program.append(product, &operands);

            let kernel = program.kernel(output.clone());
            params.count = (columns * to) as u32;
            let grid = Grid::fold(u64::from(params.count).div_ceil(256));
            program.dispatch(kernel, &params, [vec![sums], job.ends(piece.y)].concat(), grid);
        }
    }
    Ok(())
}
