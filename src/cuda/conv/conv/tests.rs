use super::*;
use crate::ErrorKind;

#[test]
fn large_batches_are_split_into_chunks() {
    for profile in [CudaProfile::sm(75), CudaProfile::sm(80), CudaProfile::h100()] {
        for program in samples(&profile).unwrap() {
            program.check(&profile).unwrap();
            // Packing of weights and x, then the product.
            assert_eq!(program.launches.len(), 3);
        }
    }
    let h100 = CudaProfile::h100();
    let op = Conv2d::new([300, 30, 512, 512], 16, [3, 3]).groups(2);
    let program = CudaOp::<f16>::lower(&op, &h100).unwrap();
    program.check(&h100).unwrap();
    // Fifteen channels of a group become sixteen.
    let image = 512 * 512 * 32;
    let chunk = MAX_PACKED / image;
    assert_eq!(program.scratch, [2 * 16 * 9 * 16, 2 * (chunk * image) as u64]);
    assert_eq!(program.launches.len(), 1 + 2 * 300usize.div_ceil(chunk));
    assert_eq!(program.launches[3].args[1], Arg::U64((chunk * 30 * 512 * 512) as u64));
    assert_eq!(program.launches[4].args[5], Arg::U32(chunk as u32));
}

#[test]
fn unsupported_convolutions_name_the_remedy() {
    let op = Conv2d::new([1, 8, 8, 8], 8, [3, 3]);
    let named = op.clone().variant("mma");
    let e = CudaOp::<f32>::lower(&named, &CudaProfile::h100()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("use `auto`"), "{e}");
    let e = CudaOp::<bf16>::lower(&op, &CudaProfile::sm(75)).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("sm_75"), "{e}");
    let e = CudaOp::<f16>::lower(&op.clone().variant("winograd"), &CudaProfile::h100()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("auto, fma, wmma"), "{e}");
    let wide = Conv2d::new([1, 8, 1 << 14, 1 << 14], 8, [3, 3]);
    let e = CudaOp::<f16>::lower(&wide, &CudaProfile::h100()).unwrap_err();
    assert!(e.kind() == ErrorKind::TooLarge && e.to_string().contains("cells of an image"), "{e}");
}
