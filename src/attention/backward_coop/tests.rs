use super::*;
use crate::program::{DeviceProfile, Kernel, Op};
use crate::shader::Target;
use half::f16;

#[test]
fn kernels_use_the_memory_of_their_tiles() {
    for (head_size, max) in [(16, 48 << 10), (64, 48 << 10), (80, 32 << 10), (128, 48 << 10), (128, 32 << 10)] {
        let op = AttentionBackward::new([1, 2, 70, head_size], [2, 70]).variant("coop");
        let mut profile = DeviceProfile::h100();
        profile.limits.max_workgroup_bytes = max;
        let interface = |kernel: &Kernel| {
            let module = kernel.expand(Target::Naga).unwrap().validate().unwrap();
            module.interface(kernel.entry).unwrap()
        };
        let stored = Op::<f16>::lower(&op.clone().variant("coop-stored"), &profile).unwrap();
        let (tile, of_product) = (SlopeTile::of(head_size, max), interface(&stored.kernels[2]));
        assert!(of_product.workgroup_bytes <= max);
        assert_eq!(of_product.workgroup_size, [tile.teams * LANES, 1, 1], "{tile:?}");
        assert_eq!(of_product.workgroup_bytes, tile.workgroup_bytes(head_size as u32), "{tile:?}");
        let program = Op::<f16>::lower(&op, &profile).unwrap();
        for (kernel, (tile, bytes)) in program.kernels.iter().zip(CoopPassTile::of_passes(head_size, max)) {
            let interface = interface(kernel);
            assert!(bytes <= max);
            assert_eq!(interface.workgroup_size, [2 * tile.pairs * LANES, 1, 1], "{tile:?}");
            assert_eq!(interface.workgroup_bytes, bytes, "{tile:?}");
        }
    }
}

#[test]
fn slopes_bound_what_coop_stored_takes() {
    let lower = |t: usize, heads: usize, variant: &str| {
        let op = AttentionBackward::new([1, heads, t, 64], [1, t]).variant(variant);
        Op::<f16>::lower(&op, &DeviceProfile::h100())
    };
    // 1 GiB of slopes, and more.
    assert!(lower(16 << 10, 2, "coop-stored").is_ok());
    assert_eq!(lower(16 << 10, 3, "coop-stored").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(lower(16 << 10, 2, "auto").unwrap().variant(), "coop-stored");
    assert_eq!(lower(16 << 10, 3, "auto").unwrap().variant(), "coop");
    let whole = AttentionBackward::new([4, 16, 4096, 64], [16, 4096]).saved();
    let whole = Op::<f16>::lower(&whole, &DeviceProfile::h100()).unwrap();
    // Two steps of 32 heads: statistics, keys, product.
    assert_eq!(whole.dispatches.len(), 6);
}
