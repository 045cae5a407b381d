use crate::cuda::{Arg, ArgMemory, CudaOp, CudaProfile, CudaProgram, TensorMap};
use crate::dense::ProductTile;
use crate::dense::{Gemm, GemmBatched, Precision};
use crate::program::When;
use half::f16;

fn maps(program: &CudaProgram) -> Vec<TensorMap> {
    let args = program.launches.last().unwrap().args.iter();
    args.filter_map(|arg| if let Arg::Tensor(map) = arg { Some(map.clone()) } else { None }).collect()
}

#[test]
fn auto_takes_wgmma_for_large_products_on_hopper() {
    let variant =
        |m, n, k, profile: &CudaProfile| CudaOp::<f16>::lower(&Gemm::new(m, n, k), profile).unwrap().variant();
    let h100 = CudaProfile::h100();
    assert_eq!(variant(4096, 4096, 4096, &h100), "wgmma");
    assert_eq!(variant(512, 512, 4096, &h100), "wgmma");
    assert_eq!(variant(16384, 16, 4096, &h100), "mma");
    assert_eq!(variant(4096, 4096, 4096, &CudaProfile::sm(80)), "mma");
    let asked = Gemm::new(4096, 4096, 4096).tile(ProductTile { m: 128, n: 128, k: 32 });
    assert_eq!(CudaOp::<f16>::lower(&asked, &h100).unwrap().variant(), "mma");
    assert!(CudaOp::<f16>::lower(&asked.variant("wgmma"), &h100).is_err());
    let strict = CudaOp::<f32>::lower(&Gemm::new(4096, 4096, 4096), &h100).unwrap();
    assert_eq!(strict.variant(), "fma");
}

#[test]
fn unaligned_factors_are_copied_first() {
    let h100 = CudaProfile::h100();
    let launches = |gemm: Gemm| {
        let program = CudaOp::<f16>::lower(&gemm.variant("wgmma"), &h100).unwrap();
        program.check(&h100).unwrap();
        (program.launches.len(), maps(&program)[0].of, program.scratch.len())
    };
    assert_eq!(launches(Gemm::new(200, 304, 96)), (1, ArgMemory::Operand(0), 0));
    assert_eq!(launches(Gemm::new(200, 304, 96).trans_a().trans_b()), (1, ArgMemory::Operand(0), 0));
    assert_eq!(launches(Gemm::new(200, 304, 97)), (2, ArgMemory::Scratch(0), 1));
    assert_eq!(launches(Gemm::new(200, 304, 0)), (1, ArgMemory::Scratch(0), 1));

    let single = |precision, trans_b| {
        let gemm =
            Gemm::new(256, 256, 256).when(trans_b, |op| op.trans_b()).precision(precision).slices(1).variant("wgmma");
        let program = CudaOp::<f32>::lower(&gemm, &h100).unwrap();
        program.check(&h100).unwrap();
        (program.launches.len(), maps(&program)[0].rounds_to_tf32)
    };
    assert_eq!(single(Precision::Tensor, true), (1, true));
    assert_eq!(single(Precision::Tensor, false), (2, true));
    assert_eq!(single(Precision::Split, true), (3, false));
}

#[test]
fn rows_across_sectors_take_clusters() {
    let h100 = CudaProfile::h100();
    let cluster = |m, n, k| {
        let program = CudaOp::<f16>::lower(&Gemm::new(m, n, k).variant("wgmma"), &h100).unwrap();
        program.check(&h100).unwrap();
        program.launches[0].cluster.iter().product::<u32>()
    };
    assert_eq!(cluster(4096, 4096, 4096), 1);
    assert_eq!(cluster(3000, 3000, 3000), 2);
    assert_eq!(cluster(3000, 3000, 200), 2);
}

#[test]
fn a_shared_factor_is_fetched_as_one() {
    let batch = GemmBatched::new(7, 128, 256, 64).strides(128 * 64, 0, 128 * 256).variant("wgmma");
    let program = CudaOp::<f16>::lower(&batch, &CudaProfile::h100()).unwrap();
    program.check(&CudaProfile::h100()).unwrap();
    let maps = maps(&program);
    assert_eq!((maps[0].dims[2], maps[1].dims[2]), (7, 1));
    // Seven products of 128 x 256, in tiles of 128 x 64.
    assert_eq!(program.launches[0].grid, [28, 1, 1]);
}
