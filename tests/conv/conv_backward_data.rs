//! Every variant of `Conv2dBackwardData` against the reference.

use super::layers::{layers, lengths, shape};
use crate::support::coverage::turn;
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::Conv2dBackwardData;
use tilework::prelude::*;
use tilework::reference::{conv_backward_data, conv_backward_data_bound};
use tilework::{ErrorKind, Result};

fn run(device: &Device, op: &Conv2dBackwardData, dy: &[f32], w: &[f32], len: usize) -> Result<Vec<f32>> {
    let gpu = &device.gpu;
    let (gradient, weights) = (gpu.upload(dy)?, gpu.upload(w)?);
    let dx = gpu.alloc::<f32>(len)?;
    let mut rec = gpu.recorder();
    op.plan::<f32>(gpu)?.record(&mut rec, &gradient, &weights, &dx)?;
    rec.submit()?;
    dx.read()
}

#[test]
fn conv_backward_data_matches_reference_for_every_layer() {
    for device in devices() {
        for (number, layer) in layers(device) {
            let [x, w, y] = lengths(&layer, shape(number));
            let mut random = Random::new(number);
            let (w, dy) = (random.elements::<f32>(w), random.elements::<f32>(y));
            let op = Conv2dBackwardData::new(&layer);
            let want = conv_backward_data(&op, &dy, &w).unwrap();
            let names = Conv2dBackwardData::variants().iter().map(|v| v.name);
            // In the short run a layer meets every third variant.
            let names = std::iter::once("auto").chain(names).enumerate();
            for name in names.filter(|(v, _)| turn(v + number as usize, 3)).map(|(_, name)| name) {
                let op = op.clone().variant(name);
                let got = match run(device, &op, &dy, &w, x) {
                    Err(e) if name != "auto" && e.kind() == ErrorKind::Unsupported => continue,
                    got => got.unwrap(),
                };
                let bound = conv_backward_data_bound(&op, &dy, &w).unwrap();
                assert_close(&format!("{}: {op:?}", device.label), &numbers(&got), &numbers(&want), &bound);
            }
        }
    }
}

#[test]
fn conv_backward_data_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let refusal =
        |layer: &Conv2d, variant: &str| Conv2dBackwardData::new(layer).variant(variant).plan::<f32>(gpu).unwrap_err();
    let layer = Conv2d::new([1, 4, 4, 4], 4, [2, 2]);
    assert_eq!(refusal(&layer.clone().groups(3), "auto").kind(), ErrorKind::Shape);
    assert_eq!(refusal(&layer.clone().stride([0, 1]), "auto").kind(), ErrorKind::Shape);
    let e = refusal(&layer, "winograd");
    assert!(e.kind() == ErrorKind::Unsupported && e.to_string().starts_with("conv-backward-data"), "{e}");
    let strided = Conv2d::new([1, 4, 4, 4], 4, [2, 2]).groups(4).stride([2, 2]);
    assert_eq!(refusal(&strided, "depthwise").kind(), ErrorKind::Unsupported);
}
