//! Every variant of `ConvTranspose2d` against the reference.

use crate::support::coverage::turn;
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::prelude::*;
use tilework::reference::{conv_transpose, conv_transpose_bound};
use tilework::{ErrorKind, Result};

fn run(device: &Device, op: &ConvTranspose2d, x: &[f32], w: &[f32], bias: Option<&[f32]>) -> Result<Vec<f32>> {
    let gpu = &device.gpu;
    let (dx, dw) = (gpu.upload(x)?, gpu.upload(w)?);
    let y = gpu.alloc::<f32>(op.output_shape()?.iter().product())?;
    let mut rec = gpu.recorder();
    match bias {
        Some(bias) => {
            op.clone().with_bias().plan::<f32>(gpu)?.with_bias(&gpu.upload(bias)?).record(&mut rec, &dx, &dw, &y)?;
        }
        None => op.plan::<f32>(gpu)?.record(&mut rec, &dx, &dw, &y)?,
    }
    rec.submit()?;
    y.read()
}

fn check(
    device: &Device, (shape, filters, kernel): ([usize; 4], usize, [usize; 2]),
    form: impl Fn(ConvTranspose2d) -> ConvTranspose2d,
) {
    let op = form(ConvTranspose2d::new(shape, filters, kernel));
    let mut random = Random::new(filters as u64);
    let x = random.elements::<f32>(shape.iter().product());
    let w = random.elements::<f32>(op.weights_shape().iter().product());
    let bias = random.elements::<f32>(filters);
    let bias = (filters % 2 == 0).then_some(&bias[..]);
    let want = conv_transpose(&op, &x, &w, bias).unwrap();
    let names = std::iter::once("auto").chain(ConvTranspose2d::variants().iter().map(|v| v.name));
    // In the short run a layer meets every other variant.
    for name in names.enumerate().filter(|(v, _)| turn(v + filters, 2)).map(|(_, name)| name) {
        let op = op.clone().variant(name);
        let got = match run(device, &op, &x, &w, bias) {
            Err(e) if name != "auto" && e.kind() == ErrorKind::Unsupported => continue,
            got => got.unwrap(),
        };
        let bound = conv_transpose_bound(&op, &x, &w, bias).unwrap();
        assert_close(&format!("{}: {op:?}", device.label), &numbers(&got), &numbers(&want), &bound);
    }
}

#[test]
fn conv_transpose_matches_reference_for_every_layer() {
    for device in devices() {
        check(device, ([2, 3, 5, 4], 4, [3, 3]), |op| op);
        check(device, ([1, 5, 4, 6], 8, [3, 3]), |op| op.stride([2, 2]).pad([1, 1]).output_padding([1, 1]));
        check(device, ([2, 4, 3, 5], 6, [2, 4]), |op| op.stride([3, 2]).groups(2).activation(Activation::Relu));
        check(device, ([1, 2, 4, 4], 5, [3, 2]), |op| op.dilation([2, 3]).pad_each([1, 0, 2, 1]));
        check(device, ([1, 3, 6, 8], 3, [3, 3]), |op| op.groups(3).pad([1, 1]));
        check(device, ([1, 1, 1, 1], 2, [1, 1]), |op| op.stride([4, 4]).output_padding([3, 3]));
        check(device, ([1, 1, 2, 2], 1, [3, 3]), |op| op.dilation([3, 1]).output_padding([2, 0]));
    }
}

#[test]
fn conv_transpose_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: ConvTranspose2d| op.plan::<f32>(gpu).unwrap_err().kind();
    let of = |kernel| ConvTranspose2d::new([1, 4, 4, 4], 4, kernel);
    assert_eq!(kind(of([2, 2]).groups(3)), ErrorKind::Shape);
    assert_eq!(kind(of([0, 2])), ErrorKind::Shape);
    assert_eq!(kind(of([2, 2]).stride([0, 1])), ErrorKind::Shape);
    assert_eq!(kind(of([1, 1]).pad([2, 0])), ErrorKind::Shape);
    assert_eq!(kind(of([2, 2]).stride([2, 2]).output_padding([0, 2])), ErrorKind::Shape);
    assert_eq!(kind(ConvTranspose2d::new([1, 4, 0, 4], 4, [2, 2])), ErrorKind::Shape);
    assert_eq!(kind(of([2, 2]).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(ConvTranspose2d::new([1, 1, usize::MAX, 4], 1, [2, 2])), ErrorKind::TooLarge);
}
