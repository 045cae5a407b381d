//! Programs that measure a device's peak rates.

use super::{Access, Binding, Cost, Decision, DeviceProfile, Grid, Kernel, Operand, Program, kernel_params};
use crate::element::DType;
use crate::shader::Spec;

kernel_params! { struct CopyParams { vectors: u32 } }
kernel_params! { struct FmaParams { a: f32, b: f32 } }

/// Copies a buffer far larger than any cache (smaller on software adapters).
pub(crate) fn copy(profile: &DeviceProfile) -> Program {
    let wanted: u64 = if profile.quirks.few_cores { 8 << 20 } else { 512 << 20 };
    let bytes =
        wanted.min(profile.limits.max_storage_binding / 2).min(profile.limits.max_buffer_size / 2) / 4096 * 4096;
    let mut program = Program::new("probe-copy", Decision::policy("copy", "measures copy bandwidth"));
    let operand = |name, access| Operand { name, dtype: DType::U32, len: (bytes / 4) as usize, access };
    program.operands = vec![operand("input", Access::Read), operand("output", Access::Write)];
    let kernel = program.kernel(Kernel::of_file("probe/probe_copy", Spec::new()));
    let bindings = vec![Binding::operand(0, &program.operands), Binding::operand(1, &program.operands)];
    let vectors = (bytes / 16) as u32;
    program.dispatch(kernel, &CopyParams { vectors }, bindings, Grid::fold(u64::from(vectors).div_ceil(1024)));
    program.cost = Cost { flop: 0.0, bytes: 2.0 * bytes as f64 };
    program
}

/// Runs chains of multiply-adds in every thread.
pub(crate) fn fma(profile: &DeviceProfile) -> Program {
    let invocations: u32 = if profile.quirks.few_cores { 256 * 64 } else { 256 * 16384 };
    let mut program = Program::new("probe-fma", Decision::policy("fma", "measures the rate of multiply-adds"));
    program.operands =
        vec![Operand { name: "output", dtype: DType::F32, len: invocations as usize, access: Access::Write }];
    let kernel = program.kernel(Kernel::of_file("probe/probe_fma", Spec::new()));
    let bindings = vec![Binding::operand(0, &program.operands)];
    program.dispatch(kernel, &FmaParams { a: 0.999, b: 0.001 }, bindings, Grid::Direct([invocations / 256, 1, 1]));
    program.cost = Cost { flop: f64::from(invocations) * 16.0 * 256.0 * 2.0, bytes: 0.0 };
    program
}
