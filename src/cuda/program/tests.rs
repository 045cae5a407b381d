use super::*;
use crate::ErrorKind;
use crate::program::Access;

/// A launch that copies 64 x 64 tiles of 256 x 128 f16 elements, after `change`.
fn program(change: impl FnOnce(&mut Launch, &mut TensorMap)) -> CudaProgram {
    let mut map = TensorMap {
        of: ArgMemory::Operand(0),
        offset: 0,
        dtype: DType::F16,
        rounds_to_tf32: false,
        dims: vec![128, 256],
        strides: vec![256],
        box_dims: vec![64, 64],
        swizzle: Swizzle::B128,
    };
    let mut program = CudaProgram::new("test", Decision::policy("only", ""));
    let operand = Operand { name: "x", dtype: DType::F16, len: 256 * 128, access: Access::Read };
    program.operands.push(operand);
    let kernel = program.kernel(CudaKernel::new("elementwise/zip", "zip", Arch::Sm90a));
    let mut launch = Launch::new(kernel, [8, 1, 1], 128, Vec::new());
    change(&mut launch, &mut map);
    launch.args.push(Arg::Tensor(map));
    program.launches.push(launch);
    program
}

#[test]
fn check_rejects_inconsistent_and_oversized_programs() {
    let h100 = CudaProfile::h100();
    program(|_, _| ()).check(&h100).unwrap();
    program(|launch, _| launch.cluster = [2, 1, 1]).check(&h100).unwrap();
    let kind = |program: CudaProgram| program.check(&h100).unwrap_err().kind();
    let launch = |change: fn(&mut Launch)| kind(program(|launch, _| change(launch)));
    assert_eq!(launch(|l| l.kernel = 1), ErrorKind::InvalidArgument);
    assert_eq!(launch(|l| l.args.push(Arg::Scratch(0))), ErrorKind::InvalidArgument);
    assert_eq!(launch(|l| l.cluster = [3, 1, 1]), ErrorKind::InvalidArgument);
    assert_eq!(launch(|l| l.block = 2048), ErrorKind::TooLarge);
    assert_eq!(launch(|l| l.shared = 228 << 10), ErrorKind::TooLarge);
    assert_eq!(launch(|l| l.grid = [1, 65536, 1]), ErrorKind::TooLarge);
    assert_eq!(launch(|l| l.grid = [0, 1, 1]), ErrorKind::TooLarge);
    let map = |change: fn(&mut TensorMap)| kind(program(|_, map| change(map)));
    assert_eq!(map(|m| m.of = ArgMemory::Operand(1)), ErrorKind::InvalidArgument);
    assert_eq!(map(|m| m.offset = 16), ErrorKind::InvalidArgument, "its end");
    assert_eq!(map(|m| m.offset = 8), ErrorKind::InvalidArgument);
    assert_eq!(map(|m| m.strides = vec![264]), ErrorKind::InvalidArgument);
    assert_eq!(map(|m| m.strides.push(16)), ErrorKind::InvalidArgument);
    assert_eq!(map(|m| m.box_dims[0] = 128), ErrorKind::InvalidArgument, "wider than its swizzle");
    assert_eq!(map(|m| m.box_dims[1] = 257), ErrorKind::InvalidArgument);
    let refused = program(|_, _| ()).check(&CudaProfile::sm(80)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.to_string().contains("is sm_80"), "{refused}");
    let zeroed = CudaProgram { zeroed: vec![0], ..program(|_, _| ()) };
    assert_eq!(kind(zeroed), ErrorKind::InvalidArgument);
}

#[test]
fn targets_follow_the_architecture() {
    let targets = [75, 80, 86, 90, 100].map(|sm| CudaProfile::sm(sm).target());
    assert_eq!(targets, ["sm_75", "sm_80", "sm_86", "sm_90a", "sm_100"]);
    assert!(CudaProfile::sm(86).runs(Arch::Sm80) && !CudaProfile::sm(75).runs(Arch::Sm80));
    assert!(CudaProfile::h100().runs(Arch::Sm90a) && !CudaProfile::sm(100).runs(Arch::Sm90a));
}
