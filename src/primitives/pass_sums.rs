//! A step of an all-reduce between two devices: see `shaders/primitives/pass_sums.wgsl`.

use crate::elementwise::ZipFn;
use crate::program::Decision;
use crate::program::prelude::*;
use crate::shape::index_u32;
use std::ops::Range;

kernel_params! {
    struct PassSumsParams {
        send: u32, sending: u32, sum: u32, summing: u32, take: u32, taking: u32, stride: u32
    }
}

/// Copies the elements `send` of `data` to `sent`, combines those of `sum` with `arrived` to `data` and `sums`, and
/// takes those of `take` from `taken`: operands `data` of `n` elements, and the four of `unit` words.
pub(crate) fn pass_sums(
    dtype: DType, function: &ZipFn, (n, unit): (usize, usize), [send, sum, take]: [Range<usize>; 3],
    profile: &DeviceProfile,
) -> Result<Program> {
    const OP: &str = "pass-sums";
    const WORKGROUP_SIZE: u64 = 256;
    /// Enough to fill a card and its bus.
    const MAX_GROUPS: u64 = 1024;
    let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
    let words = |name, access| operand(name, DType::U32, unit, access);
    let mut program = Program::new(OP, Decision::policy("both-ways", ""));
    program.operands = vec![
        operand("data", dtype, n, Access::ReadWrite),
        words("sent", Access::ReadWrite),
        words("arrived", Access::Read),
        words("sums", Access::ReadWrite),
        words("taken", Access::Read),
    ];
    profile.check_bindings(OP, &program.operands, "reduce parts in separate calls")?;
    let longest = send.len().max(sum.len()).max(take.len()) as u64;
    let groups = longest.div_ceil(WORKGROUP_SIZE).clamp(1, MAX_GROUPS);
    let at = |value: usize| index_u32(OP, "elements", value);
    let params = PassSumsParams {
        send: at(send.start)?,
        sending: at(send.len())?,
        sum: at(sum.start)?,
        summing: at(sum.len())?,
        take: at(take.start)?,
        taking: at(take.len())?,
        stride: (groups * WORKGROUP_SIZE) as u32,
    };
    let spec = function.specialise(Spec::new().slot("element", element_fragment(dtype)));
    let kernel = program.kernel(Kernel::of_file("primitives/pass_sums", spec));
    let all = (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
    program.dispatch(kernel, &params, all, Grid::fold(groups));
    Ok(program)
}

/// Programs that reach every form, for shader tests.
pub(super) fn samples(profile: &DeviceProfile) -> Result<Vec<Program>> {
    let ranges = || [0..100, 1000..1300, 500..700];
    [(DType::F32, ZipFn::Min), (DType::U32, ZipFn::Add), (DType::I32, ZipFn::Mul)]
        .iter()
        .map(|(dtype, function)| pass_sums(*dtype, function, (2000, 512), ranges(), profile))
        .collect()
}
