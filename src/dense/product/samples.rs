use super::ProductTypes;
use super::job::slice_k;
use crate::dense::ProductTile;
use crate::dense::ThreadTile;
use crate::dense::{Activation, Gemm, GemmBatched, Precision};
use crate::program::prelude::*;

const TRANSPOSES: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

/// The types of factors and result that a device has.
fn types(profile: &DeviceProfile) -> Vec<ProductTypes> {
    let mut types = vec![ProductTypes::all(DType::F32)];
    if profile.features.f16 {
        types.extend([ProductTypes::all(DType::F16), ProductTypes::MIXED]);
    }
    types
}

/// The product without a bias and with one.
fn biased(gemm: Gemm) -> [Gemm; 2] {
    [gemm.clone(), gemm.with_bias()]
}

pub(in super::super) fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    if variant == "coop" {
        return coop_samples(profile);
    }
    // Tiles that differ as little as possible between variants, and shapes whose rows are whole vec4s or not.
    let tiled = |gemm: Gemm| match variant {
        "naive" | "tiled" => gemm.tile(ProductTile { m: 8, n: 12, k: 5 }),
        "coarsened" => gemm.tile(ProductTile { m: 8, n: 12, k: 5 }).thread_tile(ThreadTile { rows: 1, columns: 2 }),
        "register-direct" | "register-staged" => gemm.tile(ProductTile { m: 8, n: 16, k: 8 }),
        _ => gemm.tile(ProductTile { m: 8, n: 16, k: 4 }).thread_tile(ThreadTile { rows: 4, columns: 8 }),
    };
    let new = |m, n, k| Gemm::new(m, n, k).variant(variant);
    let (odd, even) = (|k| tiled(new(33, 21, k)), tiled(new(32, 24, 40)));
    let mut samples = vec![new(64, 64, 64).with_bias()];
    for (trans_a, trans_b) in TRANSPOSES {
        samples.push(odd(41).when(trans_a, |op| op.trans_a()).when(trans_b, |op| op.trans_b()).with_bias());
        samples.push(
            even.clone()
                .when(trans_a, |op| op.trans_a())
                .when(trans_b, |op| op.trans_b())
                .when(trans_a, |op| op.rolled()),
        );
    }
    samples.extend(Activation::ALL.map(|activation| odd(40).activation(activation).beta(1.0).with_bias()));
    let long = slice_k(profile) + 1;
    let ends = [odd(0).beta(1.0), tiled(new(3, 2, long)), tiled(new(3, 4, long))].map(biased);
    samples.extend(ends.iter().map(|[without, _]| without.clone()));
    samples.extend(ends.into_iter().map(|[_, with]| with));
    samples.extend([odd(40).with_row_bias(), even.clone().with_row_bias()]);
    samples.extend([odd(40).with_scalars().with_bias(), even.with_scalars(), odd(0).with_scalars()]);
    if matches!(variant, "register-direct" | "register-staged") {
        for n in [4, 24] {
            let gemm = new(33, 21, 41).tile(ProductTile { m: 16, n, k: 6 });
            samples.extend([gemm.clone().unrolled(), gemm.clone().trans_a().unrolled(), gemm.rolled()]);
        }
    }
    let mut programs = Vec::new();
    for types in types(profile) {
        for gemm in &samples {
            programs.push(gemm.product.lower_as(types, profile)?);
        }
    }
    // Kernels of the size that the device gets by default.
    for side in [256, 1 << 12] {
        programs.push(new(side, side, 64).product.lower(DType::F32, profile)?);
    }
    Ok(programs)
}

fn coop_samples(profile: &DeviceProfile) -> Result<Vec<Program>> {
    let single = ProductTypes::all(DType::F32);
    let kinds = [
        (Precision::Tensor, single),
        (Precision::Split, single),
        (Precision::Tensor, ProductTypes::all(DType::F16)),
        (Precision::Tensor, ProductTypes::MIXED),
    ];
    let mut programs = Vec::new();
    for (precision, types) in kinds {
        let new = |m, n, k| Gemm::new(m, n, k).variant("coop").precision(precision);
        let mut samples = Vec::new();
        for (trans_a, trans_b) in TRANSPOSES {
            // Loads of 4, 2 and 1 elements and of copies, of whole blocks and not, rows of C in vec4s and not.
            let turned = |op: Gemm| op.when(trans_a, |op| op.trans_a()).when(trans_b, |op| op.trans_b());
            for (m, n, k) in [(64, 48, 96), (34, 22, 58), (33, 21, 41), (12, 20, 8)] {
                samples.push(turned(new(m, n, k)));
            }
            samples.push(turned(new(33, 21, 41).packed(true)));
        }
        samples.extend([new(64, 48, 300).slices(2), new(33, 21, 300).slices(2)]);
        samples.push(new(33, 20, 8).fresh_sums(true));
        for activation in Activation::ALL {
            samples.push(new(64, 64, 64).activation(activation).beta(1.0).with_bias());
        }
        let [[end, biased_end], [long, biased_long]] =
            [new(16, 16, 0).beta(1.0), new(3, 2, slice_k(profile) + 1)].map(biased);
        samples.extend([end, long, biased_end, biased_long, new(33, 21, 40).with_row_bias()]);
        samples.extend([new(64, 64, 64), new(33, 21, 300).slices(2)].map(|op| op.with_scalars()));
        // Kernels of the size that the device gets by default.
        samples.extend([1 << 10, 1 << 11, 1 << 12].map(|side| new(side, side, 64)));
        for gemm in samples {
            programs.push(gemm.product.lower_as(types, profile)?);
        }
    }
    Ok(programs)
}

pub(in super::super) fn batched_samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let new = |batch, m, n, k| GemmBatched::new(batch, m, n, k).variant(variant);
    let mut samples = Vec::new();
    for (trans_a, trans_b) in TRANSPOSES {
        for [batch, m, n, k] in [[10, 8, 8, 8], [3, 17, 21, 9], [2, 32, 32, 32], [2, 61, 64, 35]] {
            samples.push(new(batch, m, n, k).when(trans_a, |op| op.trans_a()).when(trans_b, |op| op.trans_b()));
        }
    }
    samples.push(new(2, 4, 4, 0).beta(1.0).with_bias());
    samples.extend([3, 4].map(|n| new(2, 3, n, slice_k(profile) + 1)));
    for op in [new(2, 12, 20, 16), new(2, 13, 21, 16)] {
        samples.extend([op.clone().with_scalars(), op.clone().with_bias(), op.with_row_bias()]);
    }
    samples.extend(Activation::ALL.map(|activation| new(2, 12, 20, 16).activation(activation)));
    let mut programs = Vec::new();
    for types in types(profile) {
        for op in &samples {
            programs.push(op.product.lower_as(types, profile)?);
        }
    }
    if variant != "small" {
        programs.push(new(2, 300, 256, 64).product.lower(DType::F32, profile)?);
    }
    Ok(programs)
}
