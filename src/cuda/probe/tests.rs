use super::*;

#[test]
fn probes_cover_their_operands() {
    let profile = CudaProfile::h100();
    for bytes in [0, 16, 16 * 1025, COPIED] {
        let program = copy(bytes);
        let threads = u64::from(program.launches[0].grid[0]) * u64::from(BLOCK);
        assert!(4 * threads >= bytes / 16 && program.cost.bytes == 2.0 * bytes as f64);
    }
    let program = multiply_add(&profile);
    let launch = &program.launches[0];
    assert_eq!(program.operands[0].len as u32, launch.grid[0] * launch.block);
    assert_eq!(program.cost.flop, 2.0 * 16.0 * 256.0 * program.operands[0].len as f64);
    for program in samples(&profile).unwrap() {
        assert_eq!(program.check(&profile), Ok(()));
    }
}
