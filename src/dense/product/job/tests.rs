use super::*;
use crate::dense::product::plain::TILED;
use crate::dense::product::trial::lower;
use crate::dense::{Gemm, GemmBatched};

#[test]
fn long_work_is_cut_into_chunks_that_cover_every_tile_once() {
    for (profile, gemm, dispatches) in [
        (DeviceProfile::h100(), Gemm::new(4096, 4096, 4096), 1),
        (DeviceProfile::h100(), Gemm::new(8192, 8192, 8192), 4),
        (DeviceProfile::mesa(), Gemm::new(2048, 2048, 2048), 2),
        (DeviceProfile::webgpu_defaults(), Gemm::new(2048, 2048, 2049).tile(ProductTile { m: 10, n: 20, k: 3 }), 3),
    ] {
        let gemm = gemm.variant("tiled");
        let program = lower(&gemm, &profile).unwrap();
        assert_eq!(program.dispatches.len(), dispatches);
        let tile = gemm.product.tile.unwrap_or(TILED.tile);
        let mut next = 0;
        for i in 0..program.dispatches.len() {
            assert_eq!(program.param(i, "first_tile"), next);
            let tiles = program.param(i, "tiles");
            assert_eq!(program.dispatches[i].grid, Grid::fold(tiles));
            let flop = 2 * tiles * u64::from(tile.m * tile.n) * gemm.product.k as u64;
            assert!(flop <= dispatch_flop(profile.class));
            next += tiles;
        }
        let all = gemm.product.m.div_ceil(tile.m as usize) * gemm.product.n.div_ceil(tile.n as usize);
        assert_eq!(next, all as u64);
    }
}

#[test]
fn a_long_k_is_cut_into_slices_that_carry_their_sums() {
    let h100 = DeviceProfile::h100();
    let s = slice_k(&h100);
    let program = lower(&Gemm::new(3, 5, 2 * s + 5).variant("double"), &h100).unwrap();
    assert_eq!(program.scratch, [4 * 15]);
    let slices: Vec<_> = (0..3).map(|i| (program.param(i, "first_k"), program.param(i, "end_k"))).collect();
    assert!(lower(&Gemm::new(3, 5, s).variant("double"), &h100).unwrap().scratch.is_empty());
    let s = s as u64;
    assert_eq!(slices, [(0, s), (s, 2 * s), (2 * s, 2 * s + 5)]);
    assert_eq!(program.dispatches.len(), 3);
    for variant in ["naive", "small", "register"] {
        let batch = GemmBatched::new(7, 3, 5, 2 * s as usize + 5).variant(variant);
        let program = lower(&batch, &h100).unwrap();
        assert_eq!((program.scratch.clone(), program.dispatches.len()), (vec![7 * 4 * 15], 3), "{variant}");
    }
}
