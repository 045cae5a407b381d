//! Winograd's convolution for windows of 3 x 3: 4 x 4 outputs from 6 x 6 cells, F(4 x 4, 3 x 3) of Lavin and Gray,
//! 2016.
//!
//! Weights and tiles of cells are transformed to 36 numbers each. For each of these places one matrix product sums
//! the channels, and the sums are transformed back. 36 products replace 144.

use super::correlate::ConvJob;
use super::layer::{Correlation, ImageChunk};
use crate::dense::GemmBatched;
use crate::program::prelude::*;
use std::collections::HashMap;
use std::ops::Range;

/// Outputs of a tile along a side, and numbers of a transformed tile.
const SIDE: usize = 4;
pub(super) const PLACES: usize = 36;

/// Bytes of transformed cells and sums of a chunk of images. On an H100, 64 channels of 56 x 56, 64 images: 32 MiB
/// 43.8, 64 MiB 46.5, 256 MiB 50.2 and 1 GiB 51.2 TFLOP/s of the layer's own count.
const SCRATCH: u64 = 256 << 20;

/// Says if windows are of 3 x 3 with stride and dilation 1.
pub(super) fn fits(c: &Correlation) -> bool {
    c.kernel == [3, 3] && c.stride == [1, 1] && c.up == [1, 1] && c.dilation == [1, 1]
}

pub(super) fn tiles(c: &Correlation) -> usize {
    c.out[0].div_ceil(SIDE) * c.out[1].div_ceil(SIDE)
}

/// Says why there are no kernels for this layer, if so.
pub(super) fn check(c: &Correlation) -> Result<(), String> {
    let [r, s] = c.kernel;
    if fits(c) {
        return Ok(());
    }
    Err(format!(
        "takes windows of 3 x 3 with stride and dilation 1; these are {r} x {s} with stride {:?} and dilation {:?}",
        c.stride, c.dilation
    ))
}

/// The largest number from 1 to `end` with room, by bisection; 1 if none has.
fn largest_of(end: usize, room: impl Fn(usize) -> bool) -> usize {
    let (mut largest, mut end) = (1, end.max(1));
    while largest < end {
        let middle = largest + (end - largest).div_ceil(2);
        if room(middle) { largest = middle } else { end = middle - 1 }
    }
    largest
}

fn once(
    known: &mut HashMap<usize, Program>, size: usize, product: &GemmBatched, profile: &DeviceProfile,
) -> Result<Program> {
    if let Some(program) = known.get(&size) {
        return Ok(program.clone());
    }
    let program = Op::<f32>::lower(product, profile)?;
    known.insert(size, program.clone());
    Ok(program)
}

pub(super) fn lower(job: &ConvJob<'_>, program: &mut Program, chunks: &[ImageChunk]) -> Result<()> {
    let (c, profile) = (&job.c, job.profile);
    let tiles = tiles(c);
    let [from, to] = [c.groups * c.from, c.groups * c.to];
    // For an image, its tiles rounded up to whole vec4s.
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
            "{}: `winograd` takes {} bytes of scratch for an image and {weights_bytes} for the weights; {} binds \
             {limit}; take `implicit`",
            c.op,
            bytes(tiles, from.max(to)),
            profile.name
        ));
    }
    let images = largest_of(chunks[0].images, room);
    let most = (images * tiles).next_multiple_of(4);
    let weights = program.scratch(weights_bytes);
    let cells = program.scratch(bytes(most, from));
    let sums = program.scratch(bytes(most, to));
    program.decision.because(format_args!("{images} images at a time, {} bytes of scratch", program.scratch_bytes()));

    let kernel = program.kernel(Kernel::of_file(
        "conv/conv_winograd_weights",
        job.weigh(Spec::new().constant("WEIGHTS_BINDING", 1u32)),
    ));
    let count = to * c.from;
    let grid = Grid::fold((count as u64).div_ceil(256));
    program.dispatch(kernel, &c.params(&chunks[0], count), vec![job.weights, weights], grid);

    let input = Kernel::of_file("conv/conv_winograd_input", Spec::new());
    let vectors = c.out[1].is_multiple_of(4) && chunks.iter().all(|chunk| chunk.y_at.is_multiple_of(4));
    let spec = job.end(2, "OUTPUT_BINDING").flag("VECTORS", vectors);
    let output = Kernel::of_file("conv/conv_winograd_output", spec);
    let mut products = HashMap::new();
    for chunk in chunks {
        for Range { start, end } in program.chunks(chunk.images as u64, images as u64)? {
            let (first, count) = (start as usize, (end - start) as usize);
            let columns = (count * tiles).next_multiple_of(4);
            let part = |binding: Binding, channels| Binding { size: bytes(columns, channels), ..binding };
            let (cells, sums) = (part(cells, from), part(sums, to));
            let mut params = c.params(chunk, 0);
            (params.images, params.all_images) = (count as u32, count as u32);
            params.x_at += (first * c.image()[0]) as u32;
            params.y_at += (first * c.image()[1]) as u32;

            let kernel = program.kernel(input.clone());
            params.count = (columns * from) as u32;
            let grid = Grid::fold(u64::from(params.count).div_ceil(256));
            program.dispatch(kernel, &params, vec![chunk.x, cells], grid);

            let product = GemmBatched::new(PLACES * c.groups, c.to, columns, c.from);
            program
                .append(once(&mut products, columns, &product, profile)?, &[weights, cells, sums].map(|b| b.resource));

            let kernel = program.kernel(output.clone());
            params.count = (columns * to) as u32;
            let grid = Grid::fold(u64::from(params.count).div_ceil(256));
            program.dispatch(kernel, &params, [vec![sums], job.ends(chunk.y)].concat(), grid);
        }
    }
    Ok(())
}

/// Workgroups of matrix products that fill a large card about four times, in tiles of 64 x 64.
const PRODUCTS: usize = 4 * 528;

/// Writes the gradient with respect to weights: transforms tiles of gradients too, and each of 36 products sums
/// over tiles. For enough products, images are divided into slices, summed at the end.
pub(super) fn weights(
    program: &mut Program, c: &Correlation, chunks: &[ImageChunk], output: Binding, profile: &DeviceProfile,
) -> Result<()> {
    let tiles = tiles(c);
    let [from, to] = [c.groups * c.from, c.groups * c.to];
    let windows = to * c.from;
    let tile = if c.from.min(c.to) >= 256 { 128 } else { 64 };
    let each = PLACES * c.groups * c.from.div_ceil(tile) * c.to.div_ceil(tile) * tile / 64;
    let wanted = if profile.quirks.few_cores { 1 } else { (PRODUCTS / each).max(1) };
    let limit = profile.limits.max_storage_binding;
    // Bytes of `slices` slices of `images` images.
    let bytes = |slices: usize, images: usize, channels: usize| {
        4 * (slices * PLACES * channels * (images * tiles).next_multiple_of(4)) as u64
    };
    let sums_bytes = |slices: usize| 4 * (slices * PLACES * windows) as u64;
    let room = |slices: usize, images: usize| {
        let [cells, gradients, sums] = [bytes(slices, images, from), bytes(slices, images, to), sums_bytes(slices)];
        cells.max(gradients).max(sums) <= limit && (cells + gradients + sums <= SCRATCH || images == 1)
    };
    if !room(1, 1) {
        return Err(err!(
            TooLarge,
            "{}: `winograd` takes {} bytes of scratch for an image and {} for sums; {} binds {limit}; take `implicit`",
            c.op,
            bytes(1, 1, from.max(to)),
            sums_bytes(1),
            profile.name
        ));
    }
    // Images of a slice, and slices of a pass.
    let images = chunks[0].images.div_ceil(wanted).max(1);
    let images = largest_of(images, |n| room(1, n));
    let most = chunks[0].images.div_ceil(images);
    let slices = largest_of(most, |n| room(n, images));
    let cells = program.scratch(bytes(slices, images, from));
    let gradients = program.scratch(bytes(slices, images, to));
    let sums = program.scratch(sums_bytes(slices));
    program.decision.because(format_args!(
        "{slices} slices of {images} images at a time, {} bytes of scratch",
        program.scratch_bytes()
    ));

    let cells_kernel = program.kernel(Kernel::of_file("conv/conv_winograd_input", Spec::new()));
    let name = "conv/conv_backward_weights_tiles";
    let gradients_kernel = program.kernel(Kernel::library(name, "conv_backward_weights_tiles", Spec::new()));
    let (mut adds, mut products) = (0, HashMap::new());
    for chunk in chunks {
        for Range { start, .. } in program.chunks(chunk.images as u64, (images * slices) as u64)? {
            let first = start as usize;
            let rest = chunk.images - first;
            let slices = rest.div_ceil(images).min(slices);
            let columns = (images * tiles).next_multiple_of(4);
            let mut params = c.params(chunk, slices * columns * from);
            (params.images, params.all_images) = (images as u32, rest.min(images * slices) as u32);
            params.x_at += (first * c.image()[0]) as u32;
            params.y_at += (first * c.image()[1]) as u32;
            let grid = |count: u32| Grid::fold(u64::from(count).div_ceil(256));
            program.dispatch(cells_kernel, &params, vec![chunk.x, cells], grid(params.count));
            params.count = (slices * columns * to) as u32;
            program.dispatch(gradients_kernel, &params, vec![chunk.y, gradients], grid(params.count));

            let product = GemmBatched::new(slices * PLACES * c.groups, c.to, c.from, columns).trans_b();
            let product = if profile.quirks.serial_workgroups { product } else { product.variant("register") };
            let product = once(&mut products, slices, &product, profile)?;
            program.append(product, &[gradients.resource, cells.resource, sums.resource]);

            let name = "conv/conv_backward_weights_winograd";
            let kernel = program.kernel(Kernel::library(name, "conv_backward_weights_winograd", Spec::new()));
            (params.count, params.images, params.first) = (windows as u32, slices as u32, adds);
            program.dispatch(kernel, &params, vec![sums, output], grid(params.count));
            adds = 1;
        }
    }
    Ok(())
}
