use super::*;
use crate::ErrorKind;
use crate::program::facts::Subject;

fn image(h: usize, w: usize, fh: usize, fw: usize) -> Stencil {
    Stencil::new("filter2d", 2, [1, h, w], [1, fh, fw], Some(vec![1.0; fh * fw]))
}

fn by(stencil: &Stencil, variant: &str) -> Stencil {
    Stencil { variant: variant.into(), ..stencil.clone() }
}

fn why(stencil: &Stencil, variant: &str) -> (String, f64) {
    let program = by(stencil, variant).lower(DType::F32, &DeviceProfile::h100()).unwrap();
    (program.decision.why.clone(), program.traffic.unwrap())
}

#[test]
fn reports_state_the_reuse_of_the_formulas() {
    let stencil = image(160, 160, 9, 9);
    let bytes = 4.0 * 160.0 * 160.0;
    let (text, traffic) = why(&stencil, "strategy1");
    assert!(text.ends_with("tile of 16 x 16 outputs and its halo: reuse 36.00"), "{text}");
    assert_eq!(traffic, bytes * (1.0 + 576.0 / 256.0));
    let (text, _) = why(&image(160, 160, 9, 5), "strategy3");
    assert!(text.ends_with("tile of 16 x 16, 9176 of 11520 reads in it: reuse 4.43"), "{text}");
    assert_eq!(why(&image(160, 160, 3, 3), "strategy3").1, bytes * (1.0 + 444.0 / 256.0));
    assert_eq!(why(&image(160, 160, 3, 3), "naive").1, bytes * 10.0);
    // The line and the table agree, also for a filter as large as the image.
    let op = Stencil { variant: "strategy3".into(), ..image(150, 140, 65, 63) };
    let program = op.lower(DType::F32, &DeviceProfile::h100()).unwrap();
    let subject = Subject { program: &program, interfaces: &[], subgroup: 32 };
    let reuse = facts(&subject).unwrap()[0].value;
    let text = &program.decision.why;
    assert!(text.ends_with(&format!("reuse {reuse:.2}")), "{reuse}: {text}");
    // 1024 threads: 32 x 32, of which 30 x 30 compute.
    let (text, _) = why(&image(160, 160, 3, 3), "strategy2");
    assert!(text.contains("tile of 30 x 30 outputs"), "{text}");
}

#[test]
fn the_choice_follows_device_and_filter() {
    let (h100, portable) = (DeviceProfile::h100(), DeviceProfile::webgpu_defaults());
    let chosen = |s: &Stencil, p: &DeviceProfile| s.lower(DType::F32, p).unwrap().variant();
    assert_eq!(chosen(&image(500, 500, 5, 5), &h100), "register");
    assert_eq!(chosen(&image(500, 500, 31, 31), &h100), "strategy1");
    assert_eq!(chosen(&image(500, 500, 101, 101), &portable), "constant");
    assert_eq!(chosen(&image(500, 500, 129, 129), &portable), "naive");
    assert_eq!(chosen(&image(500, 500, 5, 5), &DeviceProfile::mesa()), "register");
    assert_eq!(chosen(&image(500, 500, 9, 9), &DeviceProfile::mesa()), "constant");
    let space = |extents, weights| Stencil::new("filter3d", 3, extents, [5; 3], weights);
    for (extents, on_card, on_processor, of_operand) in [
        ([2, 3, 4], "strategy1", "constant", "naive"),
        ([20, 30, 40], "strategy1", "register", "register"),
        ([60, 64, 64], "register", "register", "register"),
    ] {
        let given = space(extents, Some(vec![1.0; 125]));
        let found = [chosen(&given, &h100), chosen(&given, &DeviceProfile::mesa())];
        assert_eq!(found, [on_card, on_processor], "{extents:?}");
        assert_eq!(chosen(&space(extents, None), &DeviceProfile::mesa()), of_operand, "{extents:?}");
    }
}

#[test]
fn rejects_variants_beyond_the_device_with_the_numbers() {
    let portable = DeviceProfile::webgpu_defaults();
    for (side, variant, number) in [
        (129, "constant", "66564 bytes of uniform"),
        (51, "strategy1", "17424 bytes"),
        (17, "strategy2", "289 threads"),
        (17, "register", "289 products"),
    ] {
        let stencil = by(&image(500, 500, side, side), variant);
        let e = stencil.lower(DType::F32, &portable).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
        assert!(e.to_string().contains(number), "{e}");
    }
}

#[test]
fn tiles_of_inputs_hold_the_most_outputs() {
    let volume = Stencil::new("filter3d", 3, [64; 3], [3; 3], Some(vec![1.0; 27]));
    assert_eq!(volume.inner_tile(DType::F32, 256), Some([4, 4, 5]));
    let line = Stencil::new("filter1d", 1, [1, 1, 999], [1, 1, 5], None);
    assert_eq!(line.inner_tile(DType::F32, 256), Some([1, 1, 252]));
    assert_eq!(image(99, 99, 5, 5).inner_tile(DType::U8, 256), Some([1, 12, 12]));
}
