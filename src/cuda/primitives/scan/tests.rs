use super::*;
use crate::ErrorKind;
use crate::primitives::ArgMin;

fn lower<T: Element>(scan: &impl CudaOp<T>) -> Result<CudaProgram> {
    scan.lower(&CudaProfile::h100())
}

#[test]
fn only_several_blocks_use_the_barrier() {
    for (n, blocks, waits) in
        [(1, 1, false), (2048, 1, false), (2049, 2, true), (1 << 20, 256, true), (1 << 28, 264, true)]
    {
        let program = lower::<f32>(&Scan::new(Sum, n)).unwrap();
        let launch = &program.launches[0];
        assert_eq!((launch.grid, launch.cooperative), ([blocks, 1, 1], waits), "{n}");
        program.check(&CudaProfile::h100()).unwrap();
    }
    let without = CudaProfile { cooperative_launch: false, ..CudaProfile::sm(75) };
    assert_eq!(CudaOp::<f32>::lower(&Scan::new(Sum, 9), &without).unwrap().variant(), "rows");
    assert!(lower::<f32>(&Scan::new(Sum, 0)).unwrap().launches.is_empty());
}

#[test]
fn rejects_unsupported_scans() {
    let kind = |r: Result<CudaProgram>| r.unwrap_err().kind();
    assert_eq!(kind(lower::<u32>(&Scan::new(ArgMin, 9))), ErrorKind::Unsupported);
    assert_eq!(kind(lower::<half::f16>(&Scan::new(Sum, 9))), ErrorKind::Unsupported);
    assert_eq!(kind(lower::<f32>(&Scan::rows(Sum, 2, 9).variant("grid"))), ErrorKind::InvalidArgument);
    assert_eq!(kind(lower::<f32>(&Scan::new(Sum, 9).variant("lookback"))), ErrorKind::InvalidArgument);
    assert_eq!(kind(lower::<f32>(&Scan::rows(Sum, usize::MAX, 2))), ErrorKind::TooLarge);
}
