use super::super::OPS;
use super::*;
use crate::program::Op;
use crate::shader::Target;
use half::f16;

#[test]
fn kernels_use_the_memory_of_their_tile() {
    for (teams, rows, keys, dims) in [(4, 32, 16, 64), (8, 16, 32, 128), (1, 16, 48, 80), (2, 32, 64, 16)] {
        let tile = CoopTile { teams, rows, keys };
        let op = Attention::new([1, 2, 70, dims], [2, 70]).variant("coop").coop_tile(tile);
        let program = Op::<f16>::lower(&op, &DeviceProfile::h100()).unwrap();
        let module = program.kernels[0].expand(Target::Naga).unwrap().validate().unwrap();
        let interface = module.interface("attention_coop").unwrap();
        assert_eq!(interface.workgroup_size, [tile.threads(), 1, 1], "{tile:?}");
        assert_eq!(interface.workgroup_bytes, tile.workgroup_bytes(dims as u32), "{tile:?}");
    }
}

#[test]
fn samples_are_valid_and_short() {
    for program in (OPS[0].samples)(&DeviceProfile::h100(), "coop").unwrap() {
        for kernel in &program.kernels {
            let text = kernel.expand(Target::Naga).unwrap();
            text.validate().unwrap();
            // The driver compiles long kernels slowly.
            assert!(text.text().lines().count() < 1000);
        }
    }
}
