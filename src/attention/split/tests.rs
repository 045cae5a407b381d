use crate::attention::Attention;
use crate::program::{DeviceProfile, Op};
use half::f16;

#[test]
fn parts_respect_the_loop_limit() {
    let mut mesa = DeviceProfile::mesa();
    mesa.features.subgroups = false;
    for d in [8, 128, 256] {
        let op = Attention::new([16, 1, 1, d], [1, 1 << 17]).variant("split-kv");
        let part = Op::<f16>::lower(&op, &mesa).unwrap().param(0, "part_keys");
        // 64 threads form teams with a lane for each eight elements; a team takes four keys at a time.
        let lanes = (d as u64 / 8).next_power_of_two();
        let rounds = part / (4 * 64 / lanes) * (lanes + 2);
        assert!(rounds <= 65535, "{rounds} rounds for {part} keys of {d}");
    }
}
