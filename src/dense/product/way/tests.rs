use super::*;
use crate::dense::product::trial::lower;
use crate::dense::{Gemm, GemmBatched};
use crate::program::DeviceProfile;

#[test]
fn every_variant_has_kernels_of_its_own() {
    let h100 = DeviceProfile::h100();
    let of_one = [
        "gemm_naive",
        "gemm_tiled",
        "gemm_coarsened",
        "gemm_register_direct",
        "gemm_register_staged",
        "gemm_unstaged",
        "gemm_register",
        "gemm_double",
        "gemm_slabs",
        "gemm_clear",
        "gemm_coop",
    ];
    let of_batch = ["gemm_batched_naive", "gemm_small", "gemm_unstaged", "gemm_double", "gemm_coop"];
    assert_eq!((VARIANTS.len(), BATCHED_VARIANTS.len()), (of_one.len(), of_batch.len()));
    let has = |program: Program, entry| program.kernels.iter().any(|kernel| kernel.entry == entry);
    for (variant, entry) in VARIANTS.iter().zip(of_one) {
        let gemm = Gemm::new(64, 64, 64).variant(variant.name);
        assert!(has(lower(&gemm, &h100).unwrap(), entry), "{}", variant.name);
    }
    for (variant, entry) in BATCHED_VARIANTS.iter().zip(of_batch) {
        let gemm = GemmBatched::new(2, 64, 64, 64).variant(variant.name);
        assert!(has(lower(&gemm, &h100).unwrap(), entry), "{}", variant.name);
    }
}
