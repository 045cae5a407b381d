use super::*;
use crate::conv::Layer;

#[test]
fn tiles_follow_channels_and_fill_the_device() {
    let h100 = DeviceProfile::h100();
    let of = |shape: [usize; 4], filters, kernel: [usize; 2]| {
        let layer = Layer { pads: [kernel[0] / 2; 4], ..Layer::new("conv", shape, filters, kernel) };
        let c = layer.forward().unwrap();
        let ProductTile { m, n, .. } = LayerProduct::windows(&c, shape[0], None, &h100).form.tile;
        [m, n]
    };
    assert_eq!(of([32, 256, 28, 28], 256, [3, 3]), [128, 128]);
    assert_eq!(of([64, 64, 56, 56], 64, [3, 3]), [64, 128]);
    assert_eq!(of([128, 16, 80, 80], 32, [7, 7]), [32, 128]);
    assert_eq!(of([1, 64, 14, 14], 64, [3, 3]), [16, 64]);
}

#[test]
fn every_division_shares_its_loads() {
    for rows in [CARD, GPU, CPU] {
        for division in rows {
            for (kind, vec) in
                [(ProductKind::Windows, false), (ProductKind::Weights, false), (ProductKind::Weights, true)]
            {
                let profile = DeviceProfile::h100();
                let mut product = LayerProduct::new(("conv", 4), kind, [1, 1, 1, 1], (vec, 0.0, None), &profile);
                product.form.tile = division.tile;
                product.form.thread = division.thread;
                assert!(product.form.walks(), "{division:?} {kind:?}");
            }
        }
    }
}
