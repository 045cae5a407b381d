use super::*;
use crate::dense::Gemm;
use crate::dense::ThreadTile;
use crate::dense::product::samples::samples;
use crate::dense::product::trial::{lower, refusal};
use crate::error::ErrorKind;
use crate::program::Op;
use crate::shader::Target;
use half::f16;

#[test]
fn kernels_match_their_forms() {
    let ends = [CoopEnd::Whole, CoopEnd::Direct, CoopEnd::Staged];
    for (tile, part, side) in [([128, 64, 32], [64, 32], 16), ([32, 64, 32], [16, 32], 8)] {
        let [m, n, k] = tile;
        for how in 0..12 {
            let form = CoopForm {
                tile: ProductTile { m, n, k },
                part,
                side,
                lanes: 32,
                trans_a: how & 1 != 0,
                trans_b: how & 2 != 0,
                split: how & 1 != 0,
                fresh: how & 2 != 0,
                loads: [FactorLoad::Packed, FactorLoad::InPlace([1, 2, 4][how / 4], DType::F16)],
                one_step: how == 5,
                slices: 1,
                end: ends[how / 4],
            };
            assert_eq!(form.wrong(), None);
            // The bindings after the two halves and the magnitudes of the factors.
            let kernel = form.kernel(Spec::new().constant("C_BINDING", 6u32));
            let module = kernel.expand(Target::Naga).unwrap().validate().unwrap();
            let interface = module.interface(kernel.entry).unwrap();
            assert_eq!(u64::from(interface.workgroup_size[0]), form.threads(), "{form:?}");
            assert_eq!(u64::from(interface.workgroup_bytes), form.workgroup_bytes(), "{form:?}");
        }
    }
}

#[test]
fn samples_on_cooperative_matrices_validate_and_stay_short() {
    let profile = DeviceProfile::h100();
    let mut longest = 0;
    for program in samples(&profile, "coop").unwrap() {
        for kernel in &program.kernels {
            let text = kernel.expand(Target::Naga).unwrap();
            text.validate().unwrap();
            // Drivers compile long texts slowly.
            longest = longest.max(text.text().lines().count());
        }
    }
    assert!(longest < 1000, "{longest} lines");
}

#[test]
fn precision_chooses_cooperative_matrices_or_is_refused() {
    let h100 = DeviceProfile::h100();
    let gemm = Gemm::new(512, 512, 512);
    for (precision, said) in [
        (Precision::Tensor, "A and B are rounded to f16"),
        (Precision::Split, "each element of A and B is split into two of f16"),
    ] {
        let program = lower(&gemm.clone().precision(precision), &h100).unwrap();
        assert!(program.variant() == "coop" && program.decision.why.contains(said), "{}", program.decision.why);
        let (kind, text) = refusal(&gemm.clone().precision(precision), &DeviceProfile::mesa());
        assert_eq!(kind, ErrorKind::Unsupported);
        assert!(text.contains("COOPERATIVE") && text.contains("Precision::Strict"), "{text}");
        let (kind, text) = refusal(&gemm.clone().precision(precision).variant("double"), &h100);
        assert_eq!(kind, ErrorKind::InvalidArgument);
        assert!(text.contains("`double`") && text.contains(precision.name()), "{text}");
    }
    // `coop` by name means Tensor; f16 factors are not rounded.
    let named = gemm.clone().variant("coop");
    assert!(lower(&named, &h100).unwrap().decision.why.contains("rounded"));
    assert!(!Op::<f16>::lower(&named, &h100).unwrap().decision.why.contains("rounded"));
    let (kind, text) = refusal(&named, &DeviceProfile::mesa());
    assert!(kind == ErrorKind::Unsupported && text.contains("cooperative matrices"), "{text}");
    let halves = Op::<f16>::lower(&gemm.precision(Precision::Split), &h100).unwrap_err();
    assert_eq!(halves.kind(), ErrorKind::InvalidArgument);
    assert!(halves.to_string().contains("take Precision::Tensor"), "{halves}");
}

#[test]
fn tiles_of_cooperative_matrices_are_checked() {
    let h100 = DeviceProfile::h100();
    let coop = |tile: [u32; 3], part: [u32; 2]| {
        let gemm = Gemm::new(4096, 4096, 4096).variant("coop").tile(ProductTile { m: tile[0], n: tile[1], k: tile[2] });
        lower(&gemm.thread_tile(ThreadTile { rows: part[0], columns: part[1] }), &h100)
    };
    for (tile, part) in [
        ([128, 128, 24], [64, 64]),
        ([128, 128, 32], [24, 64]),
        ([128, 128, 32], [0, 64]),
        ([96, 128, 32], [64, 64]),
        ([0, 128, 32], [64, 64]),
        ([48, 32, 16], [16, 32]),
    ] {
        assert_eq!(coop(tile, part).unwrap_err().kind(), ErrorKind::InvalidArgument, "{tile:?} {part:?}");
    }
    for (tile, part) in [([256, 256, 64], [64, 64]), ([256, 256, 128], [32, 32])] {
        assert_eq!(coop(tile, part).unwrap_err().kind(), ErrorKind::TooLarge, "{tile:?} {part:?}");
    }
    let program = coop([128, 256, 48], [64, 64]).unwrap();
    let module = program.kernels[1].expand(Target::Naga).unwrap().validate().unwrap();
    let interface = module.interface("gemm_coop").unwrap();
    assert_eq!((interface.workgroup_size, interface.workgroup_bytes), ([256, 1, 1], 39_680));
    let most = u32::MAX;
    let (kind, _) = refusal(&Gemm::new(1, 1, 1).tile(ProductTile { m: most, n: most, k: most }).variant("coop"), &h100);
    assert_eq!(kind, ErrorKind::InvalidArgument);
}
