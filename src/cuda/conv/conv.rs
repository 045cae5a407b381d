//! The convolution layer on CUDA: [`Conv2d`], with or without a bias.
//!
//! An implicit matrix product. A first pass copies x and the weights to scratch, with the channels of a pixel adjacent
//! and the channels of a group zero-padded to whole 16-byte chunks. f16 and bf16 are multiplied directly; tensor cores
//! round f32 to tf32 ([`Precision::Tensor`]) or split it into two tf32 ([`Precision::Split`]). Sums are f32.

use crate::conv::{Conv2d, Layer};
use crate::cuda::tile::{self, TileEnd, TileFactor, TileLines, TileWork, suits};
use crate::cuda::variant::choose;
use crate::cuda::{Arch, Arg, CudaKernel, CudaOp, CudaProfile, CudaProgram, CudaVariant, Launch};
use crate::dense::{Activation, Precision};
use crate::program::prelude::*;
use half::{bf16, f16};

const VARIANTS: &[CudaVariant] = &[tile::FMA, tile::WMMA, tile::MMA];

/// Maximum elements of packed x in one pass: kernels count them in 31 bits, and scratch stays bounded.
const MAX_PACKED: usize = 1 << 29;

/// Side of the square that a block of `conv_pack` transposes.
const PACK_SIDE: u64 = 64;

impl Conv2d {
    /// Lists the CUDA variants.
    pub fn cuda_variants() -> &'static [CudaVariant] {
        VARIANTS
    }
}

/// Memory to pack: planes of `channels` for each group of each image.
struct Planes {
    images: usize,
    groups: usize,
    channels: usize,
    pixels: usize,
}

impl Planes {
    /// Adds launches that pack the planes of an operand, from element `skip` on.
    fn pack(&self, program: &mut CudaProgram, size: usize, padded: usize, (from, skip, to): (usize, usize, usize)) {
        let kernel = CudaKernel::new("conv/conv_pack", "conv_pack", Arch::Sm75).define("BYTES", size);
        let pairs = self.pixels.is_multiple_of(2);
        let kernel = program.kernel(kernel.define("PAIRS", u32::from(pairs)));
        let across = (self.pixels as u64).div_ceil(PACK_SIDE);
        let blocks = across * (padded as u64).div_ceil(PACK_SIDE) * (self.images * self.groups) as u64;
        let max = i32::MAX as u64;
        for first in (0..blocks).step_by(max as usize) {
            let sizes = [self.groups, self.channels, padded, self.pixels].map(|x| Arg::U32(x as u32));
            let mut args = vec![Arg::Operand(from), Arg::U64(skip as u64), Arg::Scratch(to), Arg::U64(first)];
            args.extend(sizes);
            let grid = [(blocks - first).min(max) as u32, 1, 1];
            program.launches.push(Launch::new(kernel, grid, 256, args));
        }
    }
}

fn lower(op: &Conv2d, dtype: DType, biased: bool, profile: &CudaProfile) -> Result<CudaProgram> {
    let (layer, activation, _) = op.parts();
    let [images, filters, out_h, out_w] = layer.output_shape()?;
    let [x, w, output] = layer.lengths()?;
    if layer.last {
        return Err(err!(
            Unsupported,
            "{}: channels last run on a Gpu only; give x, weights and output in the order N, C, H, W",
            layer.op
        ));
    }
    let factor = TileFactor::of(layer.op, dtype, layer.precision)?;
    factor.check(layer.op, profile)?;
    let (_, decision) = choose(layer.op, &op.variant, VARIANTS, profile, || tile::policy(factor, profile))?;
    let mut program = CudaProgram::new(layer.op, decision);
    let operand = |name, len, access| Operand { name, dtype, len, access };
    program.operands = vec![operand("x", x, Access::Read), operand("w", w, Access::Read)];
    if biased {
        program.operands.push(operand("bias", filters, Access::Read));
    }
    program.operands.push(operand("output", output, Access::Write));
    let elements = (x + w + output + if biased { filters } else { 0 }) as f64;
    program.cost = Cost { flop: layer.flop()?, bytes: elements * dtype.size() as f64 };
    if output > 0 {
        CudaConvJob { layer, factor, activation, biased, images, out: [out_h, out_w] }
            .product(&mut program, profile)?;
    }
    Ok(program)
}

struct CudaConvJob<'a> {
    layer: &'a Layer,
    factor: TileFactor,
    activation: Activation,
    biased: bool,
    images: usize,
    out: [usize; 2],
}

impl CudaConvJob<'_> {
    fn product(&self, program: &mut CudaProgram, profile: &CudaProfile) -> Result<()> {
        let Layer { op, shape: [_, channels, h, w], kernel: [r, s], groups, filters, .. } = *self.layer;
        let size = self.factor.size();
        let [of_group, filters] = [channels / groups, filters / groups];
        let padded = of_group.next_multiple_of(16 / size);
        let image = h * w * groups * padded;
        let pixels = self.out[0] * self.out[1];
        let cells = r * s * padded;
        let max = i32::MAX as usize / 2;
        for (what, count) in
            [("cells of an image", image), ("pixels of an output", pixels), ("cells of a window", cells)]
        {
            if count > max {
                return Err(err!(
                    TooLarge,
                    "{op}: {count} {what}, with channels padded to 16 bytes, exceed the {max} of a kernel; split the image, \
                     or use fewer channels"
                ));
            }
        }
        let chunk = (MAX_PACKED / image).min(max / pixels).clamp(1, self.images);

        let [packed_w, packed_x] =
            [filters * groups * cells, chunk * image].map(|elements| program.scratch((elements * size) as u64));
        let weights = Planes { images: filters * groups, groups: 1, channels: of_group, pixels: r * s };
        weights.pack(program, size, padded, (1, 0, packed_w));

        let lines = TileLines { along_k: true, unit: 16, partial: false };
        let work =
            TileWork { m: filters, n: chunk * pixels, k: padded * cells, products: groups, bytes: program.cost.bytes };
        let row = suits(self.factor, lines, lines, &work, profile)?;
        let tiling = row.tiling;
        program.decision.why = format!(
            "{}; tile {}, {}; {} bytes of scratch for packed x and weights",
            program.decision.why,
            tiling.describe(),
            row.measured,
            program.scratch_bytes()
        );
        let kernel = tile::kernel(op, program.variant(), self.factor, "conv/conv_wmma", "conv_wmma")?;
        let end = TileEnd {
            result: program.operands[0].dtype,
            bias: if self.biased { 2 } else { 0 },
            read_c: false,
            activation: self.activation,
        };
        let kernel = program.kernel(end.define(tiling.define_sides(kernel, self.factor)));
        for first_image in (0..self.images).step_by(chunk) {
            let images = chunk.min(self.images - first_image);
            let planes = Planes { images, groups, channels: of_group, pixels: h * w };
            planes.pack(program, size, padded, (0, first_image * channels * h * w, packed_x));
            let numbers = [first_image, images, groups, filters, padded, h, w, self.out[0], self.out[1], r, s];
            let [top, left, ..] = self.layer.pads;
            let ways = [self.layer.stride, [top, left], self.layer.dilation];
            let numbers: Vec<_> = numbers.into_iter().chain(ways.into_iter().flatten()).collect();
            let blocks = tiling.blocks(filters, images * pixels) * groups as u64;
            let max = i32::MAX as u64;
            for first in (0..blocks).step_by(max as usize) {
                let mut args = vec![Arg::Scratch(packed_w), Arg::Scratch(packed_x)];
                args.push(if self.biased { Arg::Operand(2) } else { Arg::Null });
                args.extend([Arg::Operand(2 + usize::from(self.biased)), Arg::U64(first)]);
                args.extend(numbers.iter().map(|&x| Arg::U32(x as u32)));
                let grid = [(blocks - first).min(max) as u32, 1, 1];
                let shared = tiling.shared(self.factor, lines, lines);
                program.launches.push(Launch { shared, ..Launch::new(kernel, grid, tiling.threads(), args) });
            }
        }
        Ok(())
    }
}

macro_rules! op {
    ($($t:ty),*) => {$(
        impl CudaOp<$t> for Conv2d {
            fn lower(&self, profile: &CudaProfile) -> Result<CudaProgram> {
                lower(self, <$t>::DTYPE, self.bias, profile)
            }
        }

    )*};
}
op!(f32, f16, bf16);

/// Returns programs that together use every kernel of the device, in every form.
pub(in crate::cuda) fn samples(profile: &CudaProfile) -> Result<Vec<CudaProgram>> {
    let small = Conv2d::new([2, 20, 5, 6], 24, [3, 3]).pad([1, 1]);
    let of = |activation, variant| small.clone().activation(activation).variant(variant);
    let mut programs = vec![
        lower(&small, DType::F32, false, profile)?,
        lower(&of(Activation::Relu, "wmma"), DType::F16, true, profile)?,
    ];
    if profile.runs(Arch::Sm80) {
        programs.push(lower(&of(Activation::None, "mma"), DType::Bf16, false, profile)?);
        let single = of(Activation::Gelu, "auto").precision(Precision::Tensor);
        programs.push(lower(&single, DType::F32, true, profile)?);
        programs.push(lower(&single.precision(Precision::Split), DType::F32, false, profile)?);
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
