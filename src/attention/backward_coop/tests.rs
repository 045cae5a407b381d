use super::*;
use crate::program::{DeviceProfile, Op};
use crate::shader::Target;
use half::f16;

#[test]
fn kernels_use_the_memory_of_their_tiles() {
    for (head_size, max) in [(16, 48 << 10), (64, 48 << 10), (80, 32 << 10), (128, 48 << 10), (128, 32 << 10)] {
        let op = AttentionBackward::new([1, 2, 70, head_size], [2, 70]).variant("coop");
        let mut profile = DeviceProfile::h100();
        profile.limits.max_workgroup_bytes = max;
        let program = Op::<f16>::lower(&op, &profile).unwrap();
        for (kernel, (tile, bytes)) in program.kernels.iter().zip(CoopPassTile::of_passes(head_size, max)) {
            let module = kernel.expand(Target::Naga).unwrap().validate().unwrap();
            let interface = module.interface(kernel.entry).unwrap();
            assert!(bytes <= max);
            assert_eq!(interface.workgroup_size, [2 * tile.pairs * LANES, 1, 1], "{tile:?}");
            assert_eq!(interface.workgroup_bytes, bytes, "{tile:?}");
        }
    }
}
