//! Counts that only the device knows: of elements, and of the workgroups of a later dispatch.

use super::{Access, Binding, Decision, Grid, Kernel, Operand, Program, kernel_params};
use crate::element::DType;
use crate::shader::Spec;

kernel_params! { struct CountedParams { items: u32, most: u32 } }

/// Selects kernels that read the number of elements from the binding `at` (`shaders/dispatch/extent.wgsl`), if it is
/// `counted` on the device.
pub(crate) fn limited(spec: Spec, counted: bool, at: u32) -> Spec {
    if counted { spec.flag("LIMITED", true).constant("LENGTH_BINDING", at) } else { spec }
}

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
