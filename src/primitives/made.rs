//! Vectors that are made element by element from another of the same length.

use crate::program::prelude::*;

pub(super) const VARIANTS: &[Variant] = &[Variant::portable("words", "a thread makes four words of 32 bits")];

const WORKGROUP_WORDS: u64 = 1024;

kernel_params! { struct MadeParams { n: u32, by: u32 } }

/// What these ops have in common.
pub(super) const MADE: Operation = Operation {
    inputs: &[Input::new("input", "(n)")],
    outputs: &[("output", "(n)")],
    options: &[LENGTH],
    types: &crate::array::HostData::TYPES,
    domains: &[("input", crate::program::Domain::Bits)],
    variants: || VARIANTS,
    example: Example { shape: &[1000], options: &[] },
    ..Operation::UNDECLARED
};

/// The operands of such an op by name, its type and its number of elements, and whether it takes that from the device.
pub(super) fn asked_elements(asked: &mut Asked<'_>) -> Result<(Vec<Role>, DType, usize, bool)> {
    let (input, [n]) = asked.array("input")?;
    let (length, output) = asked.length(1, vec![n])?;
    let (dtype, counted) = (input.dtype(), length.is_some());
    Ok(([Role::Given(input)].into_iter().chain(length).chain([output]).collect(), dtype, n, counted))
}

/// Lowers the op to its kernel; `by` is a number that the kernel reads.
pub(super) fn lower(
    (op, file): (&'static str, &'static str), (n, by, counted): (usize, u32, bool), variant: &str, dtype: DType,
    profile: &DeviceProfile,
) -> Result<Program> {
    let mut program = Program::of_only_variant(op, variant, VARIANTS, profile)?;
    let operand = |name, access| Operand { name, dtype, len: n, access };
    program.operands = vec![operand("input", Access::Read)];
    let length = Operand { dtype: DType::U32, len: 1, ..operand("length", Access::Read) };
    program.operands.extend(counted.then_some(length));
    program.operands.push(operand("output", Access::Write));
    profile.check_bindings(op, &program.operands, "take parts in separate calls")?;
    program.cost = Cost::of(0.0, &program.operands);
    if n > 0 {
        let spec = Spec::new().slot("element", element_fragment(dtype)).flag("PACKED", dtype.size() < 4);
        let spec = limited(spec, counted, 3);
        let kernel = program.kernel(Kernel::of_file(file, spec));
        let mut bindings: Vec<_> =
            (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
        // The length comes last.
        bindings[1..].reverse();
        let words = (n as u64 * dtype.size() as u64).div_ceil(4);
        let grid = Grid::fold(words.div_ceil(WORKGROUP_WORDS));
        program.dispatch(kernel, &MadeParams { n: n as u32, by }, bindings, grid);
    }
    Ok(program)
}
