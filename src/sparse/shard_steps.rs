//! The programs of conjugate gradients on shards: what one rank does between messages.

use crate::program::prelude::*;

const WORKGROUP_SIZE: u32 = 256;
/// The maximum number of partial sums, which one workgroup adds up.
const MAX_PARTS: u64 = 1024;

/// Words of the state on the device: see `shaders/sparse/cg_shard_state.wgsl`.
pub(crate) mod state {
    pub(crate) const WORDS: usize = 64;
    pub(crate) const STATUS: usize = 0;
    pub(crate) const COUNT: usize = 4;
    pub(crate) const CURVATURE: usize = 7;
    pub(crate) const HISTORY: usize = 16;
    pub(crate) const HISTORY_LEN: usize = 48;

    pub(crate) const GOING: u32 = 0;
    pub(crate) const CONVERGED: u32 = 1;
    pub(crate) const LIMIT: u32 = 2;
    #[cfg(test)]
    pub(crate) const NOT_FINITE: u32 = 3;
    pub(crate) const NOT_POSITIVE: u32 = 4;

    /// The state before the first step: the sum `r r` at which to stop, and the steps that may follow.
    pub(crate) fn first(threshold: f32, left: u32) -> [u32; 8] {
        [GOING, 0, 0, 0, 0, threshold.to_bits(), left, 0]
    }

    /// The state of a step whose lengths the host found.
    pub(crate) fn with_lengths(alpha: f32, beta: f32) -> [u32; 3] {
        [GOING, alpha.to_bits(), beta.to_bits()]
    }
}

kernel_params! { struct ShardDotsParams { n: u32, parts: u32 } }
kernel_params! { struct ShardTotalParams { parts: u32 } }
kernel_params! { struct ShardStepParams { parts: u32 } }
kernel_params! { struct ShardUpdateParams { n: u32, stride: u32 } }

fn operand(name: &'static str, len: usize, access: Access) -> Operand {
    Operand { name, dtype: DType::F32, len, access }
}

fn words(name: &'static str, len: usize, access: Access) -> Operand {
    Operand { name, dtype: DType::U32, len, access }
}

fn spec() -> Spec {
    Spec::new().constant("WORKGROUP_SIZE", WORKGROUP_SIZE)
}

fn program(op: &'static str, operands: Vec<Operand>, profile: &DeviceProfile) -> Result<Program> {
    let mut program = Program::new(op, Decision::policy("fused", ""));
    program.operands = operands;
    profile.check_bindings(op, &program.operands, "use more ranks")?;
    Ok(program)
}

/// Adds a dispatch that binds all operands in order.
fn dispatch<P: KernelParams>(program: &mut Program, kernel: Kernel, params: &P, groups: u64) {
    let kernel = program.kernel(kernel);
    let all = (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
    program.dispatch(kernel, params, all, Grid::fold(groups));
}

/// The number of partial sums of `n` elements.
fn parts_of(n: usize) -> u64 {
    (n as u64).div_ceil(4 * u64::from(WORKGROUP_SIZE)).clamp(1, MAX_PARTS)
}

/// Elements of the partial sums of `n` rows: pairs.
pub(crate) fn partials_len(n: usize) -> usize {
    2 * parts_of(n) as usize
}

/// Partial sums of `r r` and `w r` over `n` elements: operands `r`, `w`, `partials`.
pub(crate) fn dots(n: usize, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-dots";
    let count = index_u32(OP, "rows", n)?;
    let operands = vec![
        operand("r", n, Access::Read),
        operand("w", n, Access::Read),
        operand("partials", partials_len(n), Access::Write),
    ];
    let mut program = program(OP, operands, profile)?;
    program.cost = Cost::of(4.0 * n as f64, &program.operands);
    let parts = parts_of(n);
    let params = ShardDotsParams { n: count, parts: parts as u32 };
    dispatch(&mut program, Kernel::of_file("sparse/cg_shard_dots", spec()), &params, parts);
    Ok(program)
}

/// Adds up partial sums of `n` rows: operands `partials`, and `sums` of two elements.
pub(crate) fn total(n: usize, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-total";
    let operands = vec![operand("partials", partials_len(n), Access::Read), operand("sums", 2, Access::Write)];
    let mut program = program(OP, operands, profile)?;
    let params = ShardTotalParams { parts: parts_of(n) as u32 };
    dispatch(&mut program, Kernel::of_file("sparse/cg_shard_total", spec()), &params, 1);
    Ok(program)
}

/// Adds up partial sums of `n` rows of the only rank, and finds the lengths of the next step: operands `partials`,
/// `state`.
pub(crate) fn step(n: usize, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-step";
    let operands =
        vec![operand("partials", partials_len(n), Access::Read), words("state", state::WORDS, Access::ReadWrite)];
    let mut program = program(OP, operands, profile)?;
    let params = ShardStepParams { parts: parts_of(n) as u32 };
    dispatch(&mut program, Kernel::of_file("sparse/cg_shard_step", spec()), &params, 1);
    Ok(program)
}

/// A step along the next direction: operands `state`, `w`, `p`, `s`, `x`, `r`.
pub(crate) fn update(n: usize, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-update";
    let count = index_u32(OP, "rows", n)?;
    let operands = vec![
        words("state", state::WORDS, Access::Read),
        operand("w", n, Access::Read),
        operand("p", n, Access::ReadWrite),
        operand("s", n, Access::ReadWrite),
        operand("x", n, Access::ReadWrite),
        operand("r", n, Access::ReadWrite),
    ];
    let mut program = program(OP, operands, profile)?;
    program.cost = Cost::of(8.0 * n as f64, &program.operands);
    if n > 0 {
        // A processor walks; a card has a thread for every four elements.
        let items = if profile.quirks.serial_workgroups { 256 } else { 4 };
        let groups = (n as u64).div_ceil(u64::from(WORKGROUP_SIZE) * items);
        let params = ShardUpdateParams { n: count, stride: (groups * u64::from(WORKGROUP_SIZE)) as u32 };
        dispatch(&mut program, Kernel::of_file("sparse/cg_shard_update", spec()), &params, groups);
    }
    Ok(program)
}

/// Programs that reach every kernel, for shader tests.
pub(super) fn samples(profile: &DeviceProfile) -> Result<Vec<Program>> {
    Ok(vec![dots(5000, profile)?, total(5000, profile)?, step(5000, profile)?, update(5000, profile)?])
}

#[cfg(test)]
mod tests;
