use super::*;
use crate::ErrorKind;
use crate::dense::ProductTile;
use crate::dense::ThreadTile;

fn args(program: &CudaProgram) -> &[Arg] {
    &program.launches[0].args
}

fn defined(program: &CudaProgram, name: &str) -> Option<String> {
    let kernel = &program.kernels[0];
    kernel.defines.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
}

fn refusal<T: Element>(op: &impl CudaOp<T>, profile: &CudaProfile) -> (ErrorKind, String) {
    let e = op.lower(profile).unwrap_err();
    (e.kind(), e.to_string())
}

#[test]
fn a_grid_covers_all_tiles_once() {
    for profile in [CudaProfile::sm(75), CudaProfile::sm(80), CudaProfile::h100()] {
        for program in samples(&profile).unwrap() {
            program.check(&profile).unwrap();
        }
        let variant = if profile.runs(Arch::Sm80) { "mma" } else { "wmma" };
        let batch = GemmBatched::new(5, 1000, 304, 72).with_row_bias().variant(variant);
        let program = CudaOp::<f16>::lower(&batch, &profile).unwrap();
        program.check(&profile).unwrap();
        let side = |name| defined(&program, name).unwrap().parse::<usize>().unwrap();
        let blocks = 5 * 1000usize.div_ceil(side("TILE_M")) * 304usize.div_ceil(side("TILE_N"));
        assert_eq!(program.launches[0].grid, [blocks as u32, 1, 1]);
        assert_eq!(args(&program)[2], Arg::Operand(2));
        assert_eq!(args(&program)[3], Arg::Operand(3));
    }
}

#[test]
fn strides_determine_the_chunk_size() {
    let lines = |product: &Product, factor: TileFactor| {
        let layouts = product.layouts("test").unwrap();
        let (types, memory) = (ProductTypes::MIXED, [0, 1].map(ArgMemory::Operand));
        CudaProduct { name: "test".into(), product, layouts, types, memory }.lines(0, factor)
    };
    for (ld, unit) in [(64, 16), (68, 8), (66, 4), (65, 2)] {
        let product = Gemm::new(50, 50, 60).lda(ld).product;
        assert_eq!(lines(&product, TileFactor::F16).unit, unit);
        let row = Gemm::new(1, 50, 60).lda(ld).product;
        assert_eq!(lines(&row, TileFactor::F16).unit, 16, "a single row starts where A does");
    }
    let batch = GemmBatched::new(3, 8, 8, 64).strides(512 + 4, 512, 64).product;
    assert_eq!(lines(&batch, TileFactor::Bf16).unit, 8);
    for (k, partial) in [(61, true), (56, false)] {
        assert_eq!(lines(&Gemm::new(50, 50, k).lda(64).product, TileFactor::F16).partial, partial);
    }
    assert_eq!(lines(&Gemm::new(50, 50, 61).product, TileFactor::Tf32).unit, 4);
}

/// The first launch of the product itself, past copies of factors.
fn product_launch(program: &CudaProgram) -> (usize, &Launch) {
    let is_product = |launch: &&Launch| program.kernels[launch.kernel].source.contains("gemm_w");
    let launch = program.launches.iter().find(is_product).unwrap();
    (program.launches.len(), launch)
}

#[test]
fn unaligned_factors_are_copied_where_that_pays() {
    let h100 = CudaProfile::h100();
    let why = |m, n, k| {
        let program = CudaOp::<f16>::lower(&Gemm::new(m, n, k).variant("mma"), &h100).unwrap();
        program.check(&h100).unwrap();
        program.decision.why
    };
    let large = why(1999, 1999, 1999);
    assert!(large.contains("A is copied") && large.contains("B is copied"), "{large}");
    let small = why(33, 33, 33);
    assert!(!small.contains("is copied into") && small.contains("in chunks of 2 bytes"), "{small}");
}

#[test]
fn few_tiles_cut_k_into_slices() {
    let h100 = CudaProfile::h100();
    let slices = |gemm: Gemm| {
        let program = CudaOp::<f16>::lower(&gemm, &h100).unwrap();
        program.check(&h100).unwrap();
        let (launches, launch) = product_launch(&program);
        let blocks = launch.grid[0];
        (launches, blocks, program.scratch_bytes())
    };
    // A tile of 64 x 64 alone would leave all multiprocessors but one without work.
    let (launches, blocks, bytes) = slices(Gemm::new(64, 64, 1_000_000));
    assert!(launches == 2 && blocks >= 60 && bytes >= 60 * 4 * 64 * 64, "{launches} {blocks} {bytes}");
    assert_eq!(slices(Gemm::new(4096, 4096, 4096)), (1, 132, 0));
    assert_eq!(slices(Gemm::new(512, 512, 64)).0, 1);
    let (launches, blocks, _) = slices(Gemm::new(64, 64, 4096).slices(5).variant("mma"));
    assert!(launches == 2 && blocks >= 5);
    assert_eq!(slices(Gemm::new(64, 64, 4096).slices(1)).0, 1);
    // No slice is empty, and none is shorter than a step of k.
    let (_, blocks, bytes) = slices(Gemm::new(16, 16, 100).slices(1000).variant("mma"));
    assert_eq!((blocks, bytes), (2, 2 * 16 * 16 * 4));
}

#[test]
fn narrow_products_read_the_large_factor_once() {
    let h100 = CudaProfile::h100();
    let variant = |gemm: Gemm| {
        let program = CudaOp::<f16>::lower(&gemm, &h100).unwrap();
        program.check(&h100).unwrap();
        program.variant()
    };
    // Rows that start anywhere, in either order; tensor cores want them aligned.
    assert_eq!(variant(Gemm::new(1, 4095, 4097).trans_b()), "narrow");
    assert_eq!(variant(Gemm::new(4097, 2, 4095)), "narrow");
    assert_eq!(variant(Gemm::new(16, 4096, 4096)), "mma");
    let (kind, text) = refusal::<f16>(&Gemm::new(9, 90, 9).variant("narrow"), &h100);
    assert!(kind == ErrorKind::InvalidArgument && text.contains("use `auto`"), "{text}");
    let (kind, _) = refusal::<f32>(&Gemm::new(2, 90, 9).variant("narrow").precision(Precision::Tensor), &h100);
    assert_eq!(kind, ErrorKind::InvalidArgument);
}

#[test]
fn a_column_is_read_as_a_row() {
    let h100 = CudaProfile::h100();
    let program = CudaOp::<f16>::lower(&Gemm::new(300, 1, 1001), &h100).unwrap();
    program.check(&h100).unwrap();
    assert!(!program.decision.why.contains("B is copied"), "{}", program.decision.why);
}

#[test]
fn zero_factors_skip_reads_and_empty_results_skip_launches() {
    let h100 = CudaProfile::h100();
    for gemm in [Gemm::new(40, 50, 0), Gemm::new(40, 50, 60).alpha(0.0)] {
        let program = CudaOp::<f16>::lower(&gemm.beta(2.0), &h100).unwrap();
        assert!(program.decision.why.contains("A and B are not read"), "{}", program.decision.why);
        let (_, launch) = product_launch(&program);
        assert!(launch.args.contains(&Arg::U32(0)));
        assert_eq!(defined(&program, "READ_C").unwrap(), "1");
    }
    for gemm in [Gemm::new(0, 50, 60), Gemm::new(50, 0, 60)] {
        assert!(CudaOp::<f16>::lower(&gemm, &h100).unwrap().launches.is_empty());
    }
    assert!(CudaOp::<f16>::lower(&GemmBatched::new(0, 5, 5, 5), &h100).unwrap().launches.is_empty());
}

#[test]
fn unsupported_products_name_the_remedy() {
    let (t4, h100) = (CudaProfile::sm(75), CudaProfile::h100());
    let gemm = Gemm::new(64, 64, 64);
    for (variant, precision) in [("mma", Precision::Strict), ("fma", Precision::Tensor)] {
        let (kind, text) = refusal::<f32>(&gemm.clone().variant(variant).precision(precision), &h100);
        assert!(kind == ErrorKind::InvalidArgument && text.contains("use `auto`"), "{text}");
    }
    let (kind, text) = refusal::<f32>(&gemm.clone().precision(Precision::Tensor), &t4);
    assert!(kind == ErrorKind::Unsupported && text.contains("Precision::Strict"), "{text}");
    assert!(CudaOp::<f32>::lower(&gemm, &t4).is_ok_and(|program| program.variant() == "fma"));
    let (kind, text) = refusal::<bf16>(&gemm, &t4);
    assert!(kind == ErrorKind::Unsupported && text.contains("sm_75"), "{text}");
    let (kind, text) = refusal::<f16>(&gemm.clone().precision(Precision::Split), &h100);
    assert!(kind == ErrorKind::InvalidArgument && text.contains("use Precision::Tensor"), "{text}");
    let volta = CudaProfile { compute: [7, 0], ..t4.clone() };
    let (kind, text) = refusal::<f16>(&gemm, &volta);
    assert!(kind == ErrorKind::Unsupported && text.contains("need sm_75") && text.contains("sm_70"), "{text}");
    let (kind, text) = refusal::<f16>(&gemm.clone().variant("tiled"), &h100);
    assert!(kind == ErrorKind::InvalidArgument && text.contains("auto, fma, wmma"), "{text}");
    let (kind, text) = refusal::<f16>(&gemm.clone().variant("mma"), &t4);
    assert!(kind == ErrorKind::Unsupported && text.contains("Sm80"), "{text}");
    let (kind, text) = refusal::<f16>(&gemm.clone().lda(63), &h100);
    assert!(kind == ErrorKind::InvalidArgument && text.contains("lda = 63"), "{text}");
    let (kind, text) = refusal::<f16>(&Gemm::new(1, 1 << 31, 1), &h100);
    assert!(kind == ErrorKind::TooLarge && text.contains("n = 2147483648"), "{text}");
    for tile in [[128, 128, 8], [24, 128, 32], [0, 128, 32], [256, 256, 256]] {
        let (kind, _) = refusal::<f16>(&gemm.clone().tile(ProductTile { m: tile[0], n: tile[1], k: tile[2] }), &h100);
        assert_eq!(kind, ErrorKind::InvalidArgument, "{tile:?}");
    }
    let asked = gemm.tile(ProductTile { m: 64, n: 128, k: 32 }).thread_tile(ThreadTile { rows: 32, columns: 64 });
    let program = CudaOp::<f16>::lower(&asked, &h100).unwrap();
    assert_eq!((program.launches[0].block, program.launches[0].grid), (128, [1, 1, 1]));
}

#[test]
fn small_products_use_small_tiles() {
    let h100 = CudaProfile::h100();
    let tile = |side| {
        let program = CudaOp::<f16>::lower(&Gemm::new(side, side, side).variant("mma"), &h100).unwrap();
        let side = |name| defined(&program, name).unwrap().parse::<usize>().unwrap();
        side("TILE_M") * side("TILE_N")
    };
    assert_eq!(tile(4096), 128 * 256);
    assert_eq!(tile(2048), 128 * 256);
    let tile = |m, n| {
        let program = CudaOp::<f16>::lower(&Gemm::new(m, n, 4096).variant("mma"), &h100).unwrap();
        [defined(&program, "TILE_M").unwrap(), defined(&program, "TILE_N").unwrap()]
    };
    assert_eq!(tile(16, 4096)[0], "16");
    assert_eq!(tile(4096, 16)[1], "16");
}
