//! Rows that move with the best elements.

use crate::primitives::select_columns::{MovedColumn, PositionsOf, check_column};
use crate::program::prelude::*;

/// Adds to a top-k the operands `payload`, before its outputs, and `payload_out`, of `width` elements of `dtype` a row.
/// There are `rows` rows; `positions_of` says which of them the positions of the best are.
pub(in crate::primitives) fn with_payload(
    best: Program, (dtype, width): (DType, usize), rows: usize, positions_of: PositionsOf, profile: &DeviceProfile,
) -> Result<Program> {
    let op = best.op;
    check_column(op, dtype)?;
    let mut program = Program::new(op, best.decision.clone());
    program.operands = best.operands.clone();
    // The last operands are the best elements and their positions.
    let at = program.operands.len() - 2;
    let found = program.operands[at].len;
    let operand = |name, len, access| Operand { name, dtype, len, access };
    let payload = operand("payload", elements(op, "payload", &[rows, width])?, Access::Read);
    let moved = operand("payload_out", elements(op, "payload_out", &[found, width])?, Access::Write);
    program.operands.insert(at, payload);
    program.operands.push(moved);
    let moved = [at, at + 3].map(|i| &program.operands[i..=i]);
    moved.iter().try_for_each(|of| profile.check_bindings(op, of, "copy the rows by their positions in parts"))?;
    program.cost = Cost::of(best.cost.flop, &program.operands);
    let outputs = [at + 1, at + 2].map(Resource::Operand);
    let operands: Vec<_> = (0..at).map(Resource::Operand).chain(outputs).collect();
    program.append(best, &operands);
    let [column, positions, output] = [at, at + 2, at + 3].map(|i| Binding::operand(i, &program.operands));
    let length = program.operands.iter().position(|operand| operand.name == "length");
    let length = length.map(|i| Binding::operand(i, &program.operands));
    let columns = (column, rows, None);
    MovedColumn { dtype, width, columns, rows: found, positions, output, length, positions_of }.add(&mut program)?;
    Ok(program)
}

/// The payload of a request: rows of one element, with this output.
pub(in crate::primitives) fn asked_payload(
    asked: &mut Asked<'_>, shape: &[usize], output: Role, operands: &mut Vec<Role>,
) -> Result<Option<(DType, usize)>> {
    if !asked.has_more() {
        return Ok(None);
    }
    let payload = asked.of_own_type("payload", shape)?;
    let dtype = payload.dtype();
    operands.insert(operands.len() - 2, Role::Given(payload));
    operands.push(output);
    Ok(Some((dtype, 1)))
}
