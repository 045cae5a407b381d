//! Searches for many needles in sorted elements.

use super::DTYPES;
use crate::element::DType;
use crate::error::Result;
use crate::program::{
    Access, Asked, Binding, Cost, DeviceProfile, Example, Grid, Input, Kernel, Operand, Operation, Program,
    Role, Variant, choose, element_fragment, kernel_params,
};
use crate::shader::Spec;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::portable("bisection", "a thread bisects for one needle"),
    Variant::portable("tree", "first writes an index of every 8th key, every 64th, and so on"),
];

kernel_params! { struct SearchParams { n: u32, needles: u32, levels: u32, top: u32 } }

/// Maximum of keys in the highest level of a tree: what lies in workgroup memory.
const TOP: usize = 2048;
/// Needles of a thread in `tree`.
const TREE_NEEDLES: u32 = 8;

/// The variant that `auto` takes for this many elements and needles, and why. 2^26 needles in 2^26 u32 on an H100
/// (Vulkan, driver 580.159.04): random ones 1,728 us with `tree`, 154 of which write the index, and 5,111 with
/// `bisection`; ascending ones 1,149 and 981.
fn policy(n: usize, needles: usize, profile: &DeviceProfile) -> (&'static str, String) {
    if !profile.quirks.serial_workgroups && n >= 1 << 22 && needles >= n / 4 {
        ("tree", "each level of the index is one access to memory, for three steps".into())
    } else {
        ("bisection", "an index would be read too rarely".into())
    }
}

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
    let (variant, decision) = choose(op, variant, VARIANTS, profile, || policy(n, needles, profile))?;
    let mut program = Program::new(op, decision);
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
    if needles == 0 {
        return Ok(program);
    }
    let spec = Spec::new().slot("element", element_fragment(dtype));
    let spec = spec.flag("FLOAT", dtype.is_float()).flag("SIGNED", dtype == DType::I32);
    let mut params = SearchParams { n: n as u32, needles: needles as u32, levels: 0, top: 0 };
    let mut bindings: Vec<_> = (0..3).map(|i| Binding::operand(i, &program.operands)).collect();
    let (mut of_search, mut each) = (spec.clone(), 256);
    if variant.name == "tree" {
        let mut highest = n.div_ceil(8);
        params.levels = 1;
        while highest > TOP {
            params.top += highest as u32;
            params.levels += 1;
            highest = highest.div_ceil(8);
        }
        let keys = params.top as usize + highest;
        let tree = program.scratch(4 * keys.max(1) as u64);
        if n > 0 {
            let kernel = program.kernel(Kernel::of_file("primitives/search_tree", spec));
            let grid = Grid::fold((keys as u64).div_ceil(256));
            program.dispatch(kernel, &params, vec![bindings[0], tree], grid);
        }
        bindings.push(tree);
        of_search = of_search.flag("TREE", true).constant("NEEDLES", TREE_NEEDLES);
        each *= u64::from(TREE_NEEDLES);
    }
    let kernel = program.kernel(Kernel::of_file(file, of_search));
    program.dispatch(kernel, &params, bindings, Grid::fold((needles as u64).div_ceil(each)));
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
