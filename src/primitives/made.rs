//! Vectors that are made element by element from another of the same length.

use crate::element::DType;
use crate::error::Result;
use crate::program::{
    Access, Binding, Cost, DeviceProfile, Example, Grid, Input, Kernel, Operand, Operation, Program, Variant,
    element_fragment, kernel_params,
};
use crate::shader::Spec;

pub(super) const VARIANTS: &[Variant] = &[Variant::portable("words", "a thread makes four words of 32 bits")];

/// Words of a workgroup.
const WORKGROUP_WORDS: u64 = 1024;

kernel_params! { struct MadeParams { n: u32, by: u32 } }

/// What these ops have in common.
pub(super) const MADE: Operation = Operation {
    inputs: &[Input::new("input", "(n)")],
    outputs: &[("output", "(n)")],
    types: &crate::array::HostData::TYPES,
    domains: &[("input", crate::program::Domain::Bits)],
    variants: || VARIANTS,
    example: Example { shape: &[1000], options: &[] },
    ..Operation::UNDECLARED
};

/// Lowers the op to its kernel; `by` is a number that the kernel reads.
pub(super) fn lower(
    (op, file): (&'static str, &'static str),
    (n, by): (usize, u32),
    variant: &str,
    dtype: DType,
    profile: &DeviceProfile,
) -> Result<Program> {
    let mut program = Program::of_only_variant(op, variant, VARIANTS, profile)?;
    let operand = |name, access| Operand { name, dtype, len: n, access };
    program.operands = vec![operand("input", Access::Read), operand("output", Access::Write)];
    profile.check_bindings(op, &program.operands, "take parts in separate calls")?;
    program.cost = Cost::of(0.0, &program.operands);
    if n > 0 {
        let spec = Spec::new().slot("element", element_fragment(dtype)).flag("PACKED", dtype.size() < 4);
        let kernel = program.kernel(Kernel::of_file(file, spec));
        let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
        let words = (n as u64 * dtype.size() as u64).div_ceil(4);
        let grid = Grid::fold(words.div_ceil(WORKGROUP_WORDS));
        program.dispatch(kernel, &MadeParams { n: n as u32, by }, bindings, grid);
    }
    Ok(program)
}
