use super::*;
use crate::ErrorKind;
use crate::program::Determinism;

#[test]
fn sums_of_floats_repeat_their_bits_on_request() {
    let profile = DeviceProfile::h100();
    let add = Scatter::new(ScatterOp::Add, [9, 2], 100);
    let lower = |op: &Scatter, dtype| {
        let program = op.lower_as(dtype, &profile).unwrap();
        (program.variant(), program.determinism)
    };
    assert_eq!(lower(&add, DType::F32), ("atomic", Determinism::RoundingVaries));
    assert_eq!(lower(&add, DType::I8), ("atomic", Determinism::SameBits));
    assert_eq!(lower(&add.deterministic(), DType::F16), ("sorted", Determinism::SameBits));
    let max = Scatter::new(ScatterOp::Max, [9, 2], 100).deterministic();
    assert_eq!(lower(&max, DType::F32), ("atomic", Determinism::SameBits));
}

#[test]
fn long_runs_take_several_dispatches() {
    let op = Scatter::new(ScatterOp::Add, [2, 1], 100_000).variant("sorted");
    let program = op.lower_as(DType::F32, &DeviceProfile::mesa()).unwrap();
    let skips = program.dispatches.iter().filter_map(|d| d.param("skip"));
    assert_eq!(skips.collect::<Vec<_>>(), (0..7).map(|i| i << 14).collect::<Vec<_>>());
}

#[test]
fn rejects_invalid_requests() {
    let profile = DeviceProfile::webgpu_defaults();
    let kind = |op: Scatter| op.lower_as(DType::F32, &profile).unwrap_err().kind();
    let add = |rows, n, m| Scatter::new(ScatterOp::Add, [rows, n], m);
    assert_eq!(kind(add(9, 9, 9).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(add(9, 9, 9).variant("atomic").deterministic()), ErrorKind::Unsupported);
    assert_eq!(kind(add(usize::MAX, 2, 1)), ErrorKind::TooLarge);
    assert_eq!(kind(add(1, 0, usize::MAX)), ErrorKind::TooLarge);
    assert_eq!(kind(add(1 << 26, 1, 1)), ErrorKind::TooLarge);
}
