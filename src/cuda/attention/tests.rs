use super::*;
use crate::ErrorKind;
use crate::attention::ScoreStage;

#[test]
fn samples_are_valid() {
    for (profile, count) in [(CudaProfile::sm(75), 0), (CudaProfile::sm(80), 21), (CudaProfile::h100(), 25)] {
        let programs = samples(&profile).unwrap();
        assert_eq!(programs.len(), count);
        for program in programs {
            program.check(&profile).unwrap();
        }
    }
}

#[test]
fn head_size_and_device_determine_the_variant() {
    let of = |head, profile: &CudaProfile| {
        CudaOp::<f16>::lower(&Attention::new([2, 8, 1000, head], [2, 3000]), profile)
            .map(|p| (p.variant(), p.launches[0].grid))
    };
    assert_eq!(of(128, &CudaProfile::h100()).unwrap(), ("wgmma", [8, 16, 1]));
    assert_eq!(of(64, &CudaProfile::h100()).unwrap(), ("wgmma", [6, 16, 1]));
    assert_eq!(of(256, &CudaProfile::h100()).unwrap(), ("mma", [16, 16, 1]));
    assert_eq!(of(64, &CudaProfile::sm(80)).unwrap(), ("mma", [16, 16, 1]));
    let none = Attention::new([2, 8, 0, 64], [2, 300]);
    assert!(CudaOp::<f16>::lower(&none, &CudaProfile::h100()).unwrap().launches.is_empty());
    assert_eq!(of(64, &CudaProfile::sm(75)).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn few_queries_split_the_keys_to_fill_the_device() {
    let h100 = CudaProfile::h100();
    let of = |op: Attention| {
        let program = CudaOp::<f16>::lower(&op, &h100).unwrap();
        program.check(&h100).unwrap();
        (program.variant(), program.launches[0].grid, program.launches.len())
    };
    // A block for nearly each of 132 multiprocessors.
    assert_eq!(of(Attention::new([8, 32, 1, 128], [8, 2048])), ("split-kv", [2, 64, 1], 2));
    assert_eq!(of(Attention::new([64, 32, 1, 128], [8, 2048])).0, "split-kv");
    let (variant, [parts, pairs, _], _) = of(Attention::new([1, 32, 1, 128], [8, 131_072]));
    assert!(variant == "split-kv" && pairs == 8 && (16..=66).contains(&parts), "{parts}");
    // One part needs no second kernel.
    assert_eq!(of(Attention::new([64, 32, 1, 128], [8, 60])).2, 1);
    assert_eq!(of(Attention::new([2, 16, 4096, 128], [16, 4096])).0, "wgmma");
    // No more parts than the window has rounds of keys.
    let windowed = Attention::new([1, 8, 1, 128], [1, 100_000]).causal().window(64).variant("split-kv");
    assert!(of(windowed).1[0] <= 3);
}

#[test]
fn unsupported_options_name_the_remedy() {
    let refusal = |op: Attention| {
        let e = CudaOp::<f16>::lower(&op, &CudaProfile::h100()).unwrap_err();
        (e.kind(), e.to_string())
    };
    let op = Attention::new([1, 2, 8, 64], [2, 8]);
    for op in [
        op.clone().masked([1, 1]),
        op.clone().kv(KvType::F32),
        op.clone().kv(KvType::Fp8),
        Attention::new([1, 2, 8, 24], [2, 8]).kv(KvType::Int8),
        op.clone().value_size(32),
        op.clone().softcap(2.0),
        op.clone().scores(ScoreStage::Weights),
        Attention::new([1, 2, 8, 36], [2, 8]),
    ] {
        let (kind, text) = refusal(op);
        assert!(kind == ErrorKind::Unsupported && text.contains("plan it on a `Gpu`"), "{text}");
    }
    let (kind, text) = refusal(Attention::new([1, 2, 8, 256], [2, 8]).variant("wgmma"));
    assert!(kind == ErrorKind::Unsupported && text.contains("use `mma`"), "{text}");
    for op in [op.clone().lengths(), op.clone().kv(KvType::Int8), op.clone().paged(Paging { tokens: 16, pages: 4 })] {
        assert_eq!(CudaOp::<f16>::lower(&op, &CudaProfile::h100()).unwrap().variant(), "split-kv");
        let (kind, text) = refusal(op.variant("mma"));
        assert!(kind == ErrorKind::Unsupported && text.contains("use `auto` or `split-kv`"), "{text}");
    }
    let (kind, _) = refusal(Attention::new([70000, 1, 1, 8], [1, 1]));
    assert_eq!(kind, ErrorKind::TooLarge);
    let (kind, text) = refusal(op.variant("flash"));
    assert!(kind == ErrorKind::InvalidArgument && text.contains("auto, mma, wgmma, split-kv"), "{text}");
}
