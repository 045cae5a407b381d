use super::*;

#[test]
fn blocks_cover_all_rows_and_elements() {
    let profile = CudaProfile::h100();
    for n in [0, 1, 31, 33, 4097, 27_000_000] {
        let rows = SlicedRows { first: 0, rows: n, slots: 0 };
        assert!(rows.parts(&profile) <= BLOCKS * profile.multiprocessors);
        assert_eq!(rows.parts(&profile) == 0, n == 0);
        let program = update(n, n).unwrap();
        let threads: u32 = program.launches.iter().map(|l| l.grid[0] * l.block).sum();
        assert!(4 * threads as usize >= n);
    }
    for program in samples(&profile).unwrap() {
        assert_eq!(program.check(&profile), Ok(()));
    }
}
