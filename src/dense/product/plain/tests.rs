use crate::dense::Gemm;
use crate::dense::ProductTile;
use crate::dense::product::trial::{lower, refusal};
use crate::error::ErrorKind;
use crate::program::DeviceProfile;
use crate::program::When;
use crate::shader::Target;

#[test]
fn workgroup_memory_matches_the_check() {
    for (tile, trans_b, bytes) in [
        ((16, 16, 16), false, 2048),
        ((16, 16, 16), true, 2112),
        ((4, 32, 8), true, 1184),
        ((3, 5, 7), true, 224),
        ((64, 4, 50), false, 13600),
    ] {
        let gemm =
            Gemm::new(9, 9, 99).tile(ProductTile { m: tile.0, n: tile.1, k: tile.2 }).when(trans_b, |op| op.trans_b());
        let program = lower(&gemm, &DeviceProfile::webgpu_defaults()).unwrap();
        let module = program.kernels[0].expand(Target::Naga).unwrap().validate().unwrap();
        let interface = module.interface("gemm_tiled").unwrap();
        assert_eq!(interface.workgroup_bytes, bytes);
        assert_eq!(interface.workgroup_size, [tile.1, tile.0, 1]);
        let mut profile = DeviceProfile::webgpu_defaults();
        profile.limits.max_workgroup_bytes = bytes;
        assert!(lower(&gemm, &profile).is_ok());
        profile.limits.max_workgroup_bytes = bytes - 1;
        let (kind, text) = refusal(&gemm, &profile);
        assert_eq!(kind, ErrorKind::TooLarge);
        assert!(text.contains(&format!("{bytes} bytes of workgroup memory")), "{text}");
    }
}

#[test]
fn rejects_a_tile_above_the_limits_with_the_numbers() {
    let webgpu = DeviceProfile::webgpu_defaults();
    let gemm = Gemm::new(100, 100, 100);
    let (kind, text) = refusal(&gemm.clone().tile(ProductTile { m: 32, n: 16, k: 8 }), &webgpu);
    assert!(kind == ErrorKind::TooLarge && text.contains("512 threads"), "{text}");
    assert!(text.contains("256 in all"), "{text}");
    assert!(lower(&gemm.clone().tile(ProductTile { m: 32, n: 16, k: 8 }), &DeviceProfile::h100()).is_ok());
    let (kind, text) = refusal(&gemm.clone().tile(ProductTile { m: 16, n: 16, k: 129 }), &webgpu);
    assert!(kind == ErrorKind::TooLarge && text.contains("16512 bytes"), "{text}");
    for tile in [(0, 16, 16), (16, 0, 16), (16, 16, 0)] {
        let (kind, _) = refusal(&gemm.clone().tile(ProductTile { m: tile.0, n: tile.1, k: tile.2 }), &webgpu);
        assert_eq!(kind, ErrorKind::InvalidArgument);
    }
    let most = u32::MAX;
    assert_eq!(refusal(&gemm.tile(ProductTile { m: most, n: most, k: most }), &webgpu).0, ErrorKind::TooLarge);
}
