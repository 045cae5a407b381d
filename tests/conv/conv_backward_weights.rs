//! Every variant of `Conv2dBackwardWeights` against the reference.

use super::layers::{layers, lengths, shape};
use crate::support::coverage::turn;
use crate::support::{Random, assert_close, devices, gpu, numbers};
use tilework::Conv2dBackwardWeights;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::{
    conv_backward_bias, conv_backward_bias_bound, conv_backward_weights, conv_backward_weights_bound,
};

#[test]
fn conv_backward_weights_matches_reference_for_every_layer() {
    for device in devices() {
        for (number, layer) in layers(device) {
            let [x, w, y] = lengths(&layer, shape(number));
            let mut random = Random::new(number);
            let (x, dy) = (random.elements::<f32>(x), random.elements::<f32>(y));
            let op = Conv2dBackwardWeights::new(&layer);
            let want = numbers(&conv_backward_weights(&op, &x, &dy).unwrap());
            let gpu = &device.gpu;
            let (input, gradient) = (gpu.upload(&x).unwrap(), gpu.upload(&dy).unwrap());
            let names = Conv2dBackwardWeights::variants().iter().map(|v| v.name);
            // In the short run a layer meets every other variant.
            let names = std::iter::once("auto").chain(names).enumerate();
            for name in names.filter(|(v, _)| turn(v + number as usize, 2)).map(|(_, name)| name) {
                let (dw, db) = (gpu.alloc::<f32>(w).unwrap(), gpu.alloc(layer.weights_shape()[0]).unwrap());
                let op = op.clone().variant(name);
                match op.plan::<f32>(gpu) {
                    Err(e) if name != "auto" && e.kind() == ErrorKind::Unsupported => continue,
                    plan => drop(plan.unwrap()),
                }
                let bound = conv_backward_weights_bound(&op, &x, &dy).unwrap();
                let what = format!("{}: {op:?}", device.label);
                let mut rec = gpu.recorder();
                if number % 2 == 0 {
                    let plan = op.clone().with_bias().plan::<f32>(gpu).unwrap();
                    plan.with_db(&db).record(&mut rec, &input, &gradient, &dw).unwrap();
                } else {
                    op.plan::<f32>(gpu).unwrap().record(&mut rec, &input, &gradient, &dw).unwrap();
                }
                rec.submit().unwrap();
                assert_close(&what, &numbers(&dw.read().unwrap()), &want, &bound);
                if number % 2 == 0 {
                    let want = numbers(&conv_backward_bias(&op, &dy).unwrap());
                    let bound = conv_backward_bias_bound(&op, &dy).unwrap();
                    assert_close(&what, &numbers(&db.read().unwrap()), &want, &bound);
                }
            }
        }
    }
}

#[test]
fn conv_backward_weights_sums_slices_in_order() {
    // Long enough for several slices of every variant; the bits are the same each time.
    let Some(gpu) = gpu() else { return };
    let layer = Conv2d::new([5, 2, 40, 40], 3, [3, 3]).pad([1, 1]);
    let mut random = Random::new(3);
    let (x, dy) = (random.elements::<f32>(5 * 2 * 1600), random.elements::<f32>(5 * 3 * 1600));
    let (input, gradient) = (gpu.upload(&x).unwrap(), gpu.upload(&dy).unwrap());
    for variant in ["direct", "implicit", "winograd"] {
        let op = Conv2dBackwardWeights::new(&layer).variant(variant);
        let want = numbers(&conv_backward_weights(&op, &x, &dy).unwrap());
        let bound = conv_backward_weights_bound(&op, &x, &dy).unwrap();
        let plan = op.plan::<f32>(gpu).unwrap();
        assert!(plan.program().dispatches.len() > 1, "{variant}");
        let runs = [0, 1].map(|_| {
            let dw = gpu.alloc::<f32>(54).unwrap();
            let mut rec = gpu.recorder();
            plan.record(&mut rec, &input, &gradient, &dw).unwrap();
            rec.submit().unwrap();
            dw.read().unwrap()
        });
        assert_close(variant, &numbers(&runs[0]), &want, &bound);
        assert_eq!(runs[0].map_bits(), runs[1].map_bits(), "{variant}");
    }
}

/// Bits of floats.
trait Bits {
    fn map_bits(&self) -> Vec<u32>;
}

impl Bits for Vec<f32> {
    fn map_bits(&self) -> Vec<u32> {
        self.iter().map(|x| x.to_bits()).collect()
    }
}

#[test]
fn conv_backward_weights_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |layer: &Conv2d, name: &str| {
        Conv2dBackwardWeights::new(layer).variant(name).plan::<f32>(gpu).unwrap_err().kind()
    };
    let layer = Conv2d::new([1, 4, 4, 4], 4, [2, 2]);
    assert_eq!(kind(&layer.clone().groups(3), "auto"), ErrorKind::Shape);
    assert_eq!(kind(&layer.clone().stride([0, 1]), "auto"), ErrorKind::Shape);
    assert_eq!(kind(&layer, "im2col"), ErrorKind::InvalidArgument);
    assert_eq!(kind(&layer, "winograd"), ErrorKind::Unsupported);
}
