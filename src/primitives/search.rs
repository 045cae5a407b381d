//! Searches for many needles in sorted elements.

use super::DTYPES;
use crate::element::DType;
use crate::error::Result;
use crate::program::{
    Access, Asked, Binding, Cost, DeviceProfile, Example, Grid, Input, Kernel, Operand, Operation, Program,
    Role, Variant, element_fragment, kernel_params,
};
use crate::shader::Spec;

pub(super) const VARIANTS: &[Variant] = &[Variant::portable("bisection", "a thread bisects for one needle")];

kernel_params! { struct SearchParams { n: u32, needles: u32 } }

/// What the two bounds have in common.
pub(super) const SEARCH: Operation = Operation {
    inputs: &[Input::new("sorted", "(n)"), Input::new("needles", "(m)")],
    outputs: &[("output", "(m)")],
    types: &DTYPES,
    domains: &[("sorted", crate::program::Domain::Increasing)],
    variants: || VARIANTS,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

/// Lowers a search by the kernel of this file and name.
pub(super) fn lower(
    (op, file): (&'static str, &'static str),
    [n, needles]: [usize; 2],
    variant: &str,
    dtype: DType,
    profile: &DeviceProfile,
) -> Result<Program> {
    let mut program = Program::of_only_variant(op, variant, VARIANTS, profile)?;
    let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
    program.operands = vec![
        operand("sorted", dtype, n, Access::Read),
        operand("needles", dtype, needles, Access::Read),
        operand("output", DType::U32, needles, Access::Write),
    ];
    profile.check_bindings(op, &program.operands, "search parts in separate calls")?;
    // Each needle reads a path of its own, at most.
    let steps = f64::from(n.checked_ilog2().map_or(0, |steps| steps + 1));
    let found = needles as f64 * (4.0 + dtype.size() as f64);
    let read = (needles as f64 * steps).min(n as f64) * dtype.size() as f64;
    program.cost = Cost { flop: needles as f64 * steps, bytes: found + read };
    if needles > 0 {
        let spec = Spec::new().slot("element", element_fragment(dtype));
        let spec = spec.flag("FLOAT", dtype.is_float()).flag("SIGNED", dtype == DType::I32);
        let kernel = program.kernel(Kernel::of_file(file, spec));
        let bindings = (0..3).map(|i| Binding::operand(i, &program.operands)).collect();
        let params = SearchParams { n: n as u32, needles: needles as u32 };
        program.dispatch(kernel, &params, bindings, Grid::fold((needles as u64).div_ceil(256)));
    }
    Ok(program)
}

/// The lengths of a request, its type, and its operands.
pub(super) fn asked(asked: &mut Asked<'_>) -> Result<([usize; 2], DType, Vec<Role>)> {
    let (sorted, [n]) = asked.array("sorted")?;
    asked.check_type(&sorted)?;
    let dtype = sorted.dtype();
    let (needles, [m]) = asked.free_of("needles", [n], dtype)?;
    Ok(([n, m], dtype, vec![Role::Given(sorted), Role::Given(needles), Role::Result(vec![m])]))
}
