use super::*;
use crate::attention::Attention;
use crate::program::Op;
use crate::shader::Target;

#[test]
fn tiles_of_every_head_size_fit_every_device() {
    let mut of_32_kib = DeviceProfile::webgpu_defaults();
    of_32_kib.limits.max_workgroup_bytes = 32 << 10;
    let profiles = [
        DeviceProfile::webgpu_defaults(),
        DeviceProfile::swiftshader(),
        DeviceProfile::mesa(),
        DeviceProfile::h100(),
        of_32_kib,
    ];
    for profile in profiles {
        for vec4s in (2..=64).step_by(2) {
            let tile = policy(&profile, vec4s);
            let limits = &profile.limits;
            assert!(tile.is_valid(), "{tile:?}");
            assert!(tile.threads() <= limits.max_invocations, "{tile:?}");
            assert!(tile.workgroup_bytes(vec4s, &profile) <= limits.max_workgroup_bytes, "{tile:?}");
        }
    }
}

#[test]
fn swizzles_are_constant_in_a_thread_and_spread_neighbours() {
    for (chunk, groups) in [(4, 8), (8, 8), (8, 16), (16, 8), (2, 8), (4, 4), (8, 2), (16, 1)] {
        let lanes = groups.clamp(4, 8);
        let tile = FlashTile::new([4 * groups, 32, lanes, 4], [4 * chunk, 32, 8]);
        let op = Attention::new([1, 1, 64, 64], [1, 64]).variant("flash").tile(tile);
        let program = Op::<f32>::lower(&op, &DeviceProfile::h100()).unwrap();
        let module = program.kernels[0].expand(Target::Naga).unwrap().validate().unwrap();
        let (module, _) = module.naga();
        let constant = |name: &str| {
            let of_name = |c: &&naga::Constant| c.name.as_deref() == Some(name);
            let (_, constant) = module.constants.iter().find(|(_, c)| of_name(c)).unwrap();
            match module.global_expressions[constant.init] {
                naga::Expression::Literal(naga::Literal::U32(value)) => value,
                ref other => panic!("{name} is {other:?}"),
            }
        };
        for (what, vec4s, apart) in [("Q", chunk, groups), ("K", chunk, lanes), ("P", 8, groups)] {
            let shift = constant(&format!("SHIFT_{what}"));
            let mask = constant(&format!("MASK_{what}"));
            let of = |row: u32| row >> shift & mask;
            let is_valid = |row: u32| of(row) == of(row + apart) && of(row) < vec4s;
            assert!((0..64).all(is_valid), "{what} {vec4s} {apart}");
            // Eight vec4s of 16 bytes are as wide as the banks.
            let banks: std::collections::BTreeSet<_> =
                (0..apart.min(8)).map(|row| (row * vec4s + of(row)) % 8).collect();
            assert_eq!(banks.len() as u32, apart.min(8), "{what} {vec4s} {apart}");
        }
    }
}
