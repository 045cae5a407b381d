//! Programs that compute on the device how many workgroups another dispatch has.

use super::{Access, Binding, Decision, Grid, Kernel, Operand, Program, kernel_params};
use crate::element::DType;
use crate::shader::Spec;

kernel_params! { struct CountedParams { items: u32, most: u32 } }

/// Computes from a count the workgroups of `items` items each that cover it, at most as many as cover `most`: three
/// u32, folded as in [`Grid::fold`].
pub(crate) fn workgroups(items: u32, most: u32) -> Program {
    let mut program = Program::new("workgroups", Decision::policy("folded", "the count lies on the device"));
    let operand = |name, len, access| Operand { name, dtype: DType::U32, len, access };
    program.operands = vec![operand("count", 1, Access::Read), operand("workgroups", 3, Access::Write)];
    let kernel = program.kernel(Kernel::of_file("dispatch/fold_count", Spec::new()));
    let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
    program.dispatch(kernel, &CountedParams { items, most }, bindings, Grid::fold(1));
    program
}
