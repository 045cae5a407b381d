//! What batch norm, in inference and in training, and its gradients share: their programs begin as they are declared.

use super::rows::check_eps;
use super::windows::check_images;
use crate::program::prelude::*;

/// The shape of an operand declared with this formula: of a number for each channel, or of images like `x`.
fn extents<'a>(formula: &str, shape: &'a [usize; 4]) -> &'a [usize] {
    if formula == "(C)" { &shape[1..2] } else { shape }
}

/// Checks the shape of `x` and the epsilon, and begins a program of `flop` operations for each element, of the variant
/// that `policy` takes for `auto`.
pub(super) fn begin(
    op: &Operation, shape: [usize; 4], eps: f32, (variant, deterministic): (&str, bool), flop: f64,
    profile: &DeviceProfile, policy: impl FnOnce() -> (&'static str, String),
) -> Result<Program> {
    check_images(op.name, shape)?;
    let len = elements(op.name, "x", &shape)?;
    check_eps(op.name, eps)?;
    let (variant, decision) =
        choose_with(op.name, variant, (op.variants)(), profile, Bits { rounds: true, deterministic }, policy)?;
    let mut program = Program::new(op.name, decision);
    program.determinism = variant.determinism(true);
    let f32s = |name, formula, access| {
        let len = extents(formula, &shape).iter().product();
        Operand { name, dtype: DType::F32, len, access }
    };
    program.operands = op.inputs.iter().map(|input| f32s(input.name, input.shape, Access::Read)).collect();
    program.operands.extend(op.outputs.iter().map(|(name, formula)| f32s(name, formula, Access::Write)));
    program.cost = Cost::of(flop * len as f64, &program.operands);
    Ok(program)
}

/// Forms the op that `make` returns for the shape of `x`.
pub(super) fn built<O: Op<f32> + 'static>(
    asked: &mut Asked<'_>, op: &Operation, make: impl FnOnce([usize; 4], &Asked<'_>) -> Result<O>,
) -> Result<OpCall> {
    let (x, shape) = asked.array::<4>("x")?;
    asked.check_type(&x)?;
    let made = make(shape, asked)?;
    let mut operands = vec![Role::Given(x)];
    for input in &op.inputs[1..] {
        operands.push(Role::Given(asked.like(input.name, extents(input.shape, &shape))?));
    }
    operands.extend(op.outputs.iter().map(|(_, formula)| Role::Result(extents(formula, &shape).to_vec())));
    Ok(OpCall::new::<f32>(made, operands))
}
