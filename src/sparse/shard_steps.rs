//! The programs of conjugate gradients on shards: what one rank does between messages.

use crate::element::DType;
use crate::error::Result;
use crate::program::{
    Access, Binding, Cost, Decision, DeviceProfile, Grid, Kernel, Operand, Program, kernel_params,
};
use crate::shader::Spec;
use crate::shape::index_u32;

/// Numbers of the state before the history.
pub(crate) const HEAD: usize = 8;
/// Places of the state that the host reads: whether an iteration failed, and its curvature.
pub(crate) const FAILED: usize = 4;
pub(crate) const CURVATURE: usize = 5;

const WORKGROUP_SIZE: u32 = 256;
/// The maximum number of partial sums, which one workgroup adds up.
const MAX_PARTS: u64 = 1024;

kernel_params! { struct ShardDotsParams { n: u32, parts: u32 } }
kernel_params! { struct ShardTotalParams { parts: u32 } }
kernel_params! { struct ShardScalarsParams { slots: u32 } }
kernel_params! { struct ShardStepParams { n: u32, stride: u32 } }

fn operand(name: &'static str, len: usize, access: Access) -> Operand {
    Operand { name, dtype: DType::F32, len, access }
}

fn spec() -> Spec {
    Spec::new().constant("WORKGROUP_SIZE", WORKGROUP_SIZE)
}

/// Sums of `r r` and `w r` over `n` elements: operands `r`, `w`, `sums` of two elements.
pub(crate) fn dots(n: usize, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-dots";
    let count = index_u32(OP, "rows", n)?;
    let mut program = Program::new(OP, Decision::policy("fused", ""));
    program.operands =
        vec![operand("r", n, Access::Read), operand("w", n, Access::Read), operand("sums", 2, Access::Write)];
    profile.check_bindings(OP, &program.operands, "use more ranks")?;
    program.cost = Cost::of(4.0 * n as f64, &program.operands);
    let [r, w, sums] = [0, 1, 2].map(|i| Binding::operand(i, &program.operands));
    let parts = (n as u64).div_ceil(4 * u64::from(WORKGROUP_SIZE)).clamp(1, MAX_PARTS);
    let partials = program.scratch(8 * parts);
    let kernel = program.kernel(Kernel::of_file("sparse/cg_shard_dots", spec()));
    let params = ShardDotsParams { n: count, parts: parts as u32 };
    program.dispatch(kernel, &params, vec![r, w, partials], Grid::fold(parts));
    let kernel = program.kernel(Kernel::of_file("sparse/cg_shard_total", spec()));
    let params = ShardTotalParams { parts: parts as u32 };
    program.dispatch(kernel, &params, vec![partials, sums], Grid::fold(1));
    Ok(program)
}

/// A step of `n` elements after the sums of all ranks are known, which keeps the last `slots` squares of residuals:
/// operands `sums`, `state` of [`HEAD`] `+ slots` elements, `w`, `r`, `p`, `s`, `x`.
pub(crate) fn step(n: usize, slots: usize, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-step";
    let (count, slots_word) = (index_u32(OP, "rows", n)?, index_u32(OP, "slots", slots)?);
    let mut program = Program::new(OP, Decision::policy("fused", ""));
    program.operands = vec![
        operand("sums", 2, Access::Read),
        operand("state", HEAD + slots, Access::ReadWrite),
        operand("w", n, Access::Read),
        operand("r", n, Access::ReadWrite),
        operand("p", n, Access::ReadWrite),
        operand("s", n, Access::ReadWrite),
        operand("x", n, Access::ReadWrite),
    ];
    profile.check_bindings(OP, &program.operands, "use more ranks")?;
    program.cost = Cost::of(8.0 * n as f64, &program.operands);
    let all: Vec<_> = (0..7).map(|i| Binding::operand(i, &program.operands)).collect();
    let kernel = program.kernel(Kernel::of_file("sparse/cg_shard_scalars", Spec::new()));
    let params = ShardScalarsParams { slots: slots_word };
    program.dispatch(kernel, &params, all[..2].to_vec(), Grid::fold(1));
    if n > 0 {
        // A processor walks; a card has a thread for every four elements.
        let items = if profile.quirks.serial_workgroups { 256 } else { 4 };
        let groups = (n as u64).div_ceil(u64::from(WORKGROUP_SIZE) * items);
        let kernel = program.kernel(Kernel::of_file("sparse/cg_shard_step", spec()));
        let params = ShardStepParams { n: count, stride: (groups * u64::from(WORKGROUP_SIZE)) as u32 };
        program.dispatch(kernel, &params, all[1..].to_vec(), Grid::fold(groups));
    }
    Ok(program)
}

/// Programs that reach every kernel, for shader tests.
pub(super) fn samples(profile: &DeviceProfile) -> Result<Vec<Program>> {
    Ok(vec![dots(5000, profile)?, step(5000, 4, profile)?])
}
