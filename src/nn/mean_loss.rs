//! A loss for each element, the mean of the losses, and its gradient.

use super::columns::mean;
use crate::elementwise::Sweep;
use crate::program::prelude::*;

kernel_params! {
    struct MeanLossParams { n: u32, factor: f32 }
}

/// The loss of `n` elements against their targets.
pub(super) struct MeanLoss<'a> {
    pub(super) op: &'static str,
    /// The shader writes the losses and, with GRADIENT, the gradient times `factor / n`.
    pub(super) shader: &'static str,
    pub(super) n: usize,
    pub(super) gradient: bool,
    pub(super) factor: f64,
    pub(super) flop_per_element: f64,
    pub(super) variant: &'a str,
}

impl MeanLoss<'_> {
    pub(super) fn lower(self, profile: &DeviceProfile) -> Result<Program> {
        let Self { op, n, gradient, .. } = self;
        if n == 0 {
            return Err(err!(Shape, "{op}: n is 0; it must be at least 1, for a mean to exist"));
        }
        let operands =
            [("x", Access::Read), ("target", Access::Read), ("losses", Access::Write), ("dx", Access::Write)];
        let sweep = Sweep {
            op,
            shader: self.shader,
            variant: self.variant,
            dtype: DType::F32,
            n,
            operands: &operands[..if gradient { 4 } else { 3 }],
            spec: Spec::new().flag("GRADIENT", gradient),
            flop_per_element: self.flop_per_element,
        };
        let factor = (self.factor / n as f64) as f32;
        let sweep = sweep.lower(profile, |elements, _| MeanLossParams { n: elements, factor })?;
        let mut program = Program::new(op, sweep.decision.clone());
        program.operands = sweep.operands.clone();
        program.operands[2] = Operand { name: "mean", dtype: DType::F32, len: 1, access: Access::Write };
        program.cost = Cost::of(sweep.cost.flop, &program.operands);
        let losses = program.scratch(4 * n as u64).resource;
        let places = [Resource::Operand(0), Resource::Operand(1), losses, Resource::Operand(3)];
        program.append(sweep, &places);
        mean(&mut program, losses, n, Resource::Operand(2), profile)?;
        Ok(program)
    }
}

/// Forms the op that `make` returns for a number of elements, with its gradient.
pub(super) fn built<O: Op<f32> + 'static>(asked: &mut Asked<'_>, make: impl FnOnce(usize) -> O) -> Result<OpCall> {
    let x = asked.any("x")?;
    asked.check_type(&x)?;
    let (n, shape) = (x.len(), x.shape().to_vec());
    let target = asked.like("target", &shape)?;
    let operands = vec![Role::Given(x), Role::Given(target), Role::Result(vec![]), Role::Result(shape)];
    Ok(OpCall::new::<f32>(make(n), operands))
}
