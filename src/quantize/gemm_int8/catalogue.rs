use super::GemmInt8;
use crate::dense::Activation;
use crate::program::prelude::*;

pub(in super::super) const INFO: Operation = Operation {
    name: "gemm-int8",
    about: "C = A B of signed bytes, summed in i32",
    inputs: &[Input::new("a", "(m, k)"), Input::new("b", "(k, n); (n, k) with trans-b")],
    outputs: &[("c", "i32 (m, n); f32 (m, n) with a-scale")],
    types: &[DType::I8],
    options: &[
        Setting::flag("trans-b"),
        Setting::array("a-scale", "f32 (m)"),
        Setting::array("b-scale", "f32 (n)"),
        Setting::array("bias", "f32 (n)"),
        Activation::SETTING,
        TILE,
        THREAD_TILE,
    ],
    make: Some(make),
    variants: GemmInt8::variants,
    samples,
    ..Operation::UNDECLARED
};

const TILE: Setting = Setting::text("tile", "M,N,K", "");
const THREAD_TILE: Setting = Setting::text("thread-tile", "ROWS,COLUMNS", "");

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let (a, [m, k]) = asked.array("a")?;
    asked.check("a", &a, &[m, k], DType::I8)?;
    let trans_b = settings.has("trans-b");
    let (b, stored) = asked.free_of("b", if trans_b { [m, k] } else { [k, m] }, DType::I8)?;
    let [k_b, n] = if trans_b { [stored[1], stored[0]] } else { stored };
    if k != k_b {
        let side = if trans_b { "columns" } else { "rows" };
        return Err(err!(
            Shape,
            "gemm-int8: a is {a}, b is {b}; the columns of the first must be the {side} of the second"
        ));
    }
    let mut op = GemmInt8::new(m, n, k).when(trans_b, |op| op.trans_b()).variant(asked.variant());
    op.activation = Activation::asked(settings)?;
    op.tile = settings.given_numbers(&TILE)?;
    op.thread = settings.given_numbers(&THREAD_TILE)?;
    let mut named = |name, n| asked.named_of(name, &[n], DType::F32);
    let (a_scale, b_scale, bias) = (named("a-scale", m)?, named("b-scale", n)?, named("bias", n)?);
    if a_scale.is_some() != b_scale.is_some() {
        return Err(err!(InvalidArgument, "gemm-int8: of --a-scale and --b-scale one is given; give both, or none"));
    }
    (op.scaled, op.bias) = (a_scale.is_some(), bias.is_some());
    let scaled = op.scaled;
    let given = [Some(a), Some(b), a_scale, b_scale, bias].into_iter().flatten().map(Role::Given);
    let operands = given.chain([Role::Result(vec![m, n])]).collect();
    Ok(if scaled { OpCall::new::<f32>(op, operands) } else { OpCall::new::<i32>(op, operands) })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for trans_b in [false, true] {
        for (m, n, k) in [(64, 64, 64), (5, 7, 9), (6, 8, 20), (33, 36, 128)] {
            let gemm = GemmInt8::new(m, n, k).when(trans_b, |op| op.trans_b()).variant(variant);
            programs.push(Op::<i32>::lower(&gemm, profile)?);
            for activation in if k == 9 { &Activation::ALL[..] } else { &[] } {
                let scaled = gemm.clone().scaled().activation(*activation);
                programs.push(Op::<f32>::lower(&scaled, profile)?);
                programs.push(Op::<f32>::lower(&scaled.clone().with_bias(), profile)?);
                if profile.features.f16 {
                    programs.push(Op::<f16>::lower(&scaled.with_bias(), profile)?);
                }
            }
            let layer = gemm.scaled().with_bias();
            programs.push(Op::<f32>::lower(&layer, profile)?);
            if profile.features.f16 {
                programs.push(Op::<f16>::lower(&layer, profile)?);
            }
        }
    }
    // Kernels of the size that the device gets by itself.
    for side in [256, 1 << 12] {
        programs.push(Op::<i32>::lower(&GemmInt8::new(side, side, 64).trans_b().variant(variant), profile)?);
    }
    Ok(programs)
}
