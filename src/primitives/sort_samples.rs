//! What a sort across devices asks of a shard: samples, and where keys lie in order.

use super::sort::key_spec;
use crate::program::prelude::*;
use crate::program::{Decision, KernelParams};
use crate::shape::index_u32;

const WORKGROUP_SIZE: u64 = 256;

kernel_params! { struct SortSamplesParams { n: u32, count: u32, seed: u32 } }
kernel_params! { struct SortBoundsParams { n: u32, count: u32 } }

fn program(op: &'static str, operands: Vec<Operand>, profile: &DeviceProfile) -> Result<Program> {
    let mut program = Program::new(op, Decision::policy("bisection", ""));
    program.operands = operands;
    profile.check_bindings(op, &program.operands, "use more ranks")?;
    Ok(program)
}

fn dispatch<P: KernelParams>(program: &mut Program, kernel: Kernel, params: &P, threads: usize) {
    let kernel = program.kernel(kernel);
    let all = (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
    program.dispatch(kernel, params, all, Grid::fold((threads as u64).div_ceil(WORKGROUP_SIZE)));
}

/// Draws one key of each of `count` nearly equal parts of `n` keys: operands `keys`, `samples`. `count` is at most `n`
/// and 2^16.
pub(crate) fn draw(dtype: DType, n: usize, count: usize, seed: u32, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sort-samples";
    let operand = |name, len, access| Operand { name, dtype, len, access };
    let operands = vec![operand("keys", n, Access::Read), operand("samples", count, Access::Write)];
    let mut program = program(OP, operands, profile)?;
    let params = SortSamplesParams { n: index_u32(OP, "keys", n)?, count: index_u32(OP, "samples", count)?, seed };
    if count > 0 {
        dispatch(&mut program, Kernel::of_file("primitives/sort_samples", Spec::new()), &params, count);
    }
    Ok(program)
}

/// For each of `count` numbers, as sorts give them to keys, finds how many of `n` sorted keys come before it, and how
/// many do not come after it: operands `sorted`, `numbers`, `bounds`.
pub(crate) fn bounds(
    dtype: DType, n: usize, count: usize, descending: bool, profile: &DeviceProfile,
) -> Result<Program> {
    const OP: &str = "sort-bounds";
    let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
    let operands = vec![
        operand("sorted", dtype, n, Access::Read),
        operand("numbers", DType::U32, count, Access::Read),
        operand("bounds", DType::U32, 2 * count, Access::Write),
    ];
    let mut program = program(OP, operands, profile)?;
    let params = SortBoundsParams { n: index_u32(OP, "keys", n)?, count: index_u32(OP, "numbers", count)? };
    if count > 0 {
        let kernel = Kernel::of_file("primitives/sort_bounds", key_spec(dtype, descending)?);
        dispatch(&mut program, kernel, &params, 2 * count);
    }
    Ok(program)
}

/// Programs that reach every kernel, for shader tests.
pub(super) fn samples(profile: &DeviceProfile) -> Result<Vec<Program>> {
    Ok(vec![
        draw(DType::U32, 5000, 300, 7, profile)?,
        bounds(DType::F32, 5000, 300, true, profile)?,
        bounds(DType::I32, 5000, 30, false, profile)?,
    ])
}
