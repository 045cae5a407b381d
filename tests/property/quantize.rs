//! Cases of narrow types.

use super::draw::{Contents, Draw};
use super::guarded::{Case, elements_of};
use crate::quantize::quantize::{far_codes, far_scales};
use crate::support::Sample;
use half::f16;
use tilework::Activation;
use tilework::program::{Op, When};
use tilework::quantize::{Code, Dequantize, GemmInt8, Quantize, Scales};
use tilework::reference;

/// Rows, their length, and the elements that share a factor.
fn rows(draw: &mut Draw) -> (usize, usize, Scales) {
    let rows = draw.length(0, 60);
    match draw.option(&[0, 1, 2]) {
        0 => (rows, draw.length(0, 300), Scales::Row),
        1 => (rows, 33 * draw.length(0, 4), Scales::Group(33)),
        _ => (rows, draw.length(0, 100), Scales::Tensor),
    }
}

pub(super) fn quantize(draw: &mut Draw) -> Case {
    fn of<Q: Code, T: Sample>(draw: &mut Draw) -> Case
    where
        Quantize<Q>: Op<T>,
    {
        let variant = draw.variant(Quantize::<Q>::variants());
        let (rows, n, scales) = rows(draw);
        // `whole` holds vectors in registers.
        let n = if variant == "whole" { n / 4 * 4 } else { n };
        let scales = if variant == "whole" && scales != Scales::Row { Scales::Row } else { scales };
        // Factors of empty groups are undefined.
        let n = match (scales, variant) {
            (Scales::Group(of), _) => n.max(of),
            (_, "whole") => n.max(4),
            _ => n.max(1),
        };
        let rows = if scales == Scales::Tensor { rows.max(1) } else { rows };
        let op = Quantize::<Q>::new(rows, n).scales(scales).variant(variant);
        let x = draw.elements::<T>(rows * n, Contents::Unit);
        let (want, factors) = reference::quantize(&op, &x);
        let (codes, of, wanted) = (want.len(), factors.len(), factors.clone());
        let span = op.span();
        let given = x.clone();
        Case::new::<T>(op)
            .given(&x)
            .checked::<Q>(codes, move |all| {
                far_codes(&given, &elements_of::<f32>(&all[2]), span, &elements_of::<Q>(&all[1]), &want)
            })
            .checked::<f32>(of, move |all| far_scales(&elements_of::<f32>(&all[2]), &wanted))
    }
    let forms: [fn(&mut Draw) -> Case; 4] = [of::<i8, f32>, of::<u8, f32>, of::<i8, f16>, of::<u8, f16>];
    draw.option(&forms)(draw)
}

pub(super) fn dequantize(draw: &mut Draw) -> Case {
    fn of<Q: Code + Sample, T: Sample>(draw: &mut Draw) -> Case
    where
        Dequantize<Q>: Op<T>,
    {
        let variant = draw.variant(Dequantize::<Q>::variants());
        let (rows, n, scales) = rows(draw);
        let op = Dequantize::<Q>::new(rows, n).scales(scales).variant(variant);
        let spans = match scales {
            Scales::Row => rows,
            Scales::Group(of) => rows * n / of,
            _ => 1,
        };
        let (x, scale) = (draw.any::<Q>(rows * n), draw.special::<f32>(spans));
        let want = reference::dequantize::<Q, T>(&op, &x, &scale);
        let bound = reference::dequantize_bound::<Q, T>(&op, &x, &scale);
        Case::new::<T>(op).given(&x).given(&scale).close(&want, bound)
    }
    let forms: [fn(&mut Draw) -> Case; 4] = [of::<i8, f32>, of::<u8, f32>, of::<i8, f16>, of::<u8, f16>];
    draw.option(&forms)(draw)
}

pub(super) fn gemm_int8(draw: &mut Draw) -> Case {
    fn scaled<T: Sample>(draw: &mut Draw, op: GemmInt8, [m, n]: [usize; 2], a: &[i8], b: &[i8]) -> Case
    where
        GemmInt8: Op<T>,
    {
        let op = op.scaled().activation(draw.option(&Activation::ALL));
        let of_a = draw.numbers::<f32>(m);
        let of_b: Vec<f32> = draw.numbers::<f32>(n).iter().map(|x| 0.002 * x).collect();
        let bias = draw.option(&[false, true]).then(|| draw.numbers::<f32>(n));
        let want = reference::gemm_int8_scaled(&op, [a, b], [&of_a, &of_b], bias.as_deref());
        let bound = reference::gemm_int8_bound::<T>(&op, [a, b], [&of_a, &of_b], bias.as_deref());
        match bias {
            Some(bias) => {
                let case = Case::new::<T>(op.with_bias()).given(a).given(b).given(&of_a).given(&of_b);
                case.given(&bias).near::<T>(want, bound)
            }
            None => Case::new::<T>(op).given(a).given(b).given(&of_a).given(&of_b).near::<T>(want, bound),
        }
    }
    let variant = draw.variant(GemmInt8::variants());
    let (m, n, k) = (draw.length(0, 60), draw.length(0, 60), draw.length(0, 130));
    let op = GemmInt8::new(m, n, k).when(draw.option(&[true, false]), |op| op.trans_b()).variant(variant);
    let (a, b) = (draw.any::<i8>(m * k), draw.any::<i8>(k * n));
    match draw.option(&[0, 1, 2]) {
        0 => {
            let want = reference::gemm_int8(&op, &a, &b);
            Case::new::<i32>(op).given(&a).given(&b).exactly(&want)
        }
        1 => scaled::<f32>(draw, op, [m, n], &a, &b),
        _ => scaled::<f16>(draw, op, [m, n], &a, &b),
    }
}
