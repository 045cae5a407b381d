use super::super::ProductTypes;
use super::super::way::VARIANTS;
use super::*;
use crate::dense::Gemm;
use crate::program::Op;
use crate::program::When;

/// The fastest way of a variant for a product of f32.
fn of(variant: &str, product: &Product, profile: &DeviceProfile) -> ProductPrediction {
    let layouts = product.layouts("test").unwrap();
    let types = ProductTypes::all(DType::F32);
    fastest(variant, &ProductJob { product, name: "test", layouts, types, profile })
}

fn tile(side: usize, profile: &DeviceProfile) -> [u32; 3] {
    let ProductTile { m, n, k } = of("double", &Product::new(side, side, side), profile).division.tile;
    [m, n, k]
}

#[test]
fn tiles_shrink_until_they_fill_the_device() {
    let h100 = DeviceProfile::h100();
    assert_eq!(tile(8192, &h100), [128, 128, 8]);
    let size = |side| tile(side, &h100)[..2].iter().product::<u32>();
    assert!(size(4096) >= size(1024) && size(1024) > size(256));
    assert_eq!(tile(4096, &DeviceProfile::mesa()), [16, 16, 4]);
}

#[test]
fn a_card_with_default_limits_has_a_tile_for_every_variant() {
    let class = DeviceClass::Discrete;
    let card = DeviceProfile { class, ..DeviceProfile::webgpu_defaults() };
    for profile in [card, DeviceProfile::webgpu_defaults(), DeviceProfile::swiftshader()] {
        for variant in VARIANTS.iter().filter(|v| v.requires.missing(&profile).is_none()) {
            for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
                let gemm = Gemm::new(1021, 1023, 1025)
                    .when(a, |op| op.trans_a())
                    .when(b, |op| op.trans_b())
                    .variant(variant.name);
                Op::<f32>::lower(&gemm, &profile).unwrap();
            }
        }
    }
}

#[test]
fn processors_get_short_kernels() {
    for profile in [DeviceProfile::mesa(), DeviceProfile::swiftshader()] {
        for variant in VARIANTS.iter().filter(|v| v.requires.missing(&profile).is_none()) {
            let gemm = Gemm::new(4000, 4000, 4000).variant(variant.name);
            for kernel in Op::<f32>::lower(&gemm, &profile).unwrap().kernels {
                let text = kernel.expand(crate::shader::Target::Naga).unwrap();
                assert!(text.text().lines().count() < 600, "{}", kernel.label());
            }
        }
    }
}

#[test]
fn slices_fill_the_device_and_are_long_enough() {
    let h100 = DeviceProfile::h100();
    for [m, n, k] in [[512, 512, 32768], [128, 8192, 8192], [64, 64, 2048], [4, 4096, 11008]] {
        let product = Product::new(m, n, k);
        let ProductPrediction { division, slices, .. } = of("split-k", &product, &h100);
        let workgroups = division.tiles(m, n) as usize * slices;
        assert!((50..=132 * ROUNDS).contains(&workgroups), "{m} x {n} x {k}: {workgroups}");
        assert!(k / slices >= MIN_SLICE, "{m} x {n} x {k}: {slices} slices");
    }
    let chosen = |m, n, k| Op::<f32>::lower(&Gemm::new(m, n, k), &h100).unwrap().variant().to_owned();
    assert_eq!(chosen(512, 512, 32768), "split-k");
    assert_eq!(chosen(4096, 4096, 4096), "double");
}
