//! The programs of conjugate gradients on shards: what one rank does between messages.

use crate::element::DType;
use crate::error::Result;
use crate::program::{
    Access, Binding, Cost, Decision, DeviceProfile, Grid, Kernel, Operand, Program, kernel_params,
};
use crate::shader::Spec;
use crate::shape::index_u32;

const WORKGROUP_SIZE: u32 = 256;
/// The maximum number of partial sums, which one workgroup adds up.
const MAX_PARTS: u64 = 1024;

kernel_params! { struct ShardDotsParams { n: u32, parts: u32 } }
kernel_params! { struct ShardTotalParams { parts: u32 } }
kernel_params! { struct ShardDirectionsParams { n: u32, stride: u32 } }
kernel_params! { struct ShardResidualParams { n: u32, parts: u32 } }

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
    let parts = parts_of(n);
    let partials = program.scratch(8 * parts);
    let kernel = program.kernel(Kernel::of_file("sparse/cg_shard_dots", spec()));
    let params = ShardDotsParams { n: count, parts: parts as u32 };
    program.dispatch(kernel, &params, vec![r, w, partials], Grid::fold(parts));
    total(&mut program, parts, [partials, sums]);
    Ok(program)
}

/// The number of partial sums of `n` elements.
fn parts_of(n: usize) -> u64 {
    (n as u64).div_ceil(4 * u64::from(WORKGROUP_SIZE)).clamp(1, MAX_PARTS)
}

/// Adds up partial sums.
fn total(program: &mut Program, parts: u64, [partials, sums]: [Binding; 2]) {
    let kernel = program.kernel(Kernel::of_file("sparse/cg_shard_total", spec()));
    let params = ShardTotalParams { parts: parts as u32 };
    program.dispatch(kernel, &params, vec![partials, sums], Grid::fold(1));
}

/// The part of a step that needs no sum of `w r`: operands `turn` (beta, and alpha of the step before), `r`, `w`, `p`,
/// `s`, `x`.
pub(crate) fn directions(n: usize, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-directions";
    let count = index_u32(OP, "rows", n)?;
    let mut program = Program::new(OP, Decision::policy("fused", ""));
    program.operands = vec![
        operand("turn", 2, Access::Read),
        operand("r", n, Access::Read),
        operand("w", n, Access::Read),
        operand("p", n, Access::ReadWrite),
        operand("s", n, Access::ReadWrite),
        operand("x", n, Access::ReadWrite),
    ];
    profile.check_bindings(OP, &program.operands, "use more ranks")?;
    program.cost = Cost::of(6.0 * n as f64, &program.operands);
    if n > 0 {
        // A processor walks; a card has a thread for every four elements.
        let items = if profile.quirks.serial_workgroups { 256 } else { 4 };
        let groups = (n as u64).div_ceil(u64::from(WORKGROUP_SIZE) * items);
        let kernel = program.kernel(Kernel::of_file("sparse/cg_shard_directions", spec()));
        let params = ShardDirectionsParams { n: count, stride: (groups * u64::from(WORKGROUP_SIZE)) as u32 };
        let all = (0..6).map(|i| Binding::operand(i, &program.operands)).collect();
        program.dispatch(kernel, &params, all, Grid::fold(groups));
    }
    Ok(program)
}

/// The end of a step: operands `alpha`, `s`, `r`, and `sums` of two elements, of which the first gets the sum of the new
/// `r r`.
pub(crate) fn residual(n: usize, profile: &DeviceProfile) -> Result<Program> {
    const OP: &str = "sharded-cg-residual";
    let count = index_u32(OP, "rows", n)?;
    let mut program = Program::new(OP, Decision::policy("fused", ""));
    program.operands = vec![
        operand("alpha", 1, Access::Read),
        operand("s", n, Access::Read),
        operand("r", n, Access::ReadWrite),
        operand("sums", 2, Access::Write),
    ];
    profile.check_bindings(OP, &program.operands, "use more ranks")?;
    program.cost = Cost::of(4.0 * n as f64, &program.operands);
    let [alpha, s, r, sums] = [0, 1, 2, 3].map(|i| Binding::operand(i, &program.operands));
    let parts = parts_of(n);
    let partials = program.scratch(8 * parts);
    let kernel = program.kernel(Kernel::of_file("sparse/cg_shard_residual", spec()));
    let params = ShardResidualParams { n: count, parts: parts as u32 };
    program.dispatch(kernel, &params, vec![alpha, s, r, partials], Grid::fold(parts));
    total(&mut program, parts, [partials, sums]);
    Ok(program)
}

/// Programs that reach every kernel, for shader tests.
pub(super) fn samples(profile: &DeviceProfile) -> Result<Vec<Program>> {
    Ok(vec![dots(5000, profile)?, directions(5000, profile)?, residual(5000, profile)?])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;
    use crate::{Gpu, Slice};

    /// A dispatch that is folded has more workgroups than it needs: they must change nothing.
    #[test]
    fn surplus_workgroups_change_nothing() {
        let Some(gpu) = (!Gpu::adapters().is_empty()).then(|| Gpu::new().unwrap()) else { return };
        let n = 70_000;
        let vector = |k: usize| -> Vec<f32> { (0..n).map(|i| ((i * k) % 17) as f32).collect() };
        let run = |surplus: u32| {
            let mut program = directions(n, gpu.profile()).unwrap();
            for dispatch in &mut program.dispatches {
                let Grid::Direct(grid) = &mut dispatch.grid else { panic!("a direct dispatch") };
                grid[0] += surplus;
            }
            let ready = gpu.prepare_lowered(program).unwrap();
            let turn = gpu.upload(&[0.5f32, 2.0]).unwrap();
            let vectors = [3, 5, 7, 11, 13].map(|k| gpu.upload(&vector(k)).unwrap());
            let operands: Vec<_> =
                [&turn].into_iter().chain(&vectors).map(|v| Slice::from(v).untyped()).collect();
            let mut rec = gpu.recorder();
            ready.record(&mut rec, &operands).unwrap();
            rec.submit().unwrap();
            vectors.map(|v| v.read().unwrap())
        };
        assert_eq!(run(0), run(300));
    }
}
