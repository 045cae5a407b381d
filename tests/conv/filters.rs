//! Filters along one, two and three axes by name: every element type, filters of the host and of an operand, and
//! filters larger than their input. And an operand that changes, or is learnt.

use crate::support::coverage::{all, sample, turn};
use crate::support::{Random, devices, gpu};
use half::f16;
use tilework::prelude::*;
use tilework::program::{Ask, Settings};
use tilework::{Conv2dBackwardWeights, DType, ErrorKind, HostArray, HostData, nn, reference};

/// Extents, and those of a filter: smaller, larger along some axis, and larger than two periods along all.
type Shapes = (&'static str, &'static [(&'static [usize], &'static [usize])]);

const CASES: [Shapes; 3] = [
    ("filter1d", &[(&[1001], &[9]), (&[64], &[5]), (&[3], &[9]), (&[1], &[7]), (&[4], &[27]), (&[10], &[301])]),
    (
        "filter2d",
        &[(&[33, 20], &[3, 5]), (&[18, 67], &[5, 3]), (&[3, 8], &[7, 19]), (&[2, 3], &[9, 5]), (&[1, 1], &[3, 3])],
    ),
    ("filter3d", &[(&[5, 6, 8], &[3, 3, 3]), (&[4, 3, 7], &[1, 5, 3]), (&[2, 1, 4], &[5, 3, 11])]),
];

fn array(random: &mut Random, dtype: DType, shape: &[usize]) -> HostArray {
    let n = shape.iter().product();
    let data: HostData = match dtype {
        DType::F16 => random.elements::<f16>(n).into(),
        DType::U8 => random.elements::<u8>(n).into(),
        _ => random.elements::<f32>(n).into(),
    };
    HostArray::new(shape, data).unwrap()
}

#[test]
fn filters_of_every_type_and_form_match_reference() {
    let Some(device) = devices().first() else { return };
    let mut ran = 0;
    for (name, shapes) in CASES {
        let op = tilework::operations().find(|op| op.name == name).unwrap();
        let mut random = Random::new(11);
        let boundaries = Boundary::ALL.iter().flat_map(|b| [false, true].map(|operand| (b.name(), operand)));
        let calls: Vec<_> =
            shapes.iter().flat_map(|s| boundaries.clone().map(move |(b, operand)| (s, b, operand))).collect();
        for (i, &(&(extents, shape), boundary, operand)) in sample(&calls, 2).iter().enumerate() {
            for (_, &dtype) in op.types.iter().enumerate().filter(|(t, _)| turn(i + t, 2)) {
                let x = array(&mut random, dtype, extents);
                // Multiples of 1/8: sums of bytes are exact.
                let weights = (0..shape.iter().product()).map(|_| (random.next() % 9) as f32 / 8.0 - 0.5);
                let filter = HostArray::new(shape, weights.collect::<Vec<_>>()).unwrap();
                let mut settings = Settings::new(op);
                settings.text("boundary", boundary).unwrap();
                if operand {
                    settings.flag("filter-operand").unwrap();
                }
                for variant in std::iter::once("auto").chain((op.variants)().iter().map(|v| v.name)) {
                    let what = format!(
                        "{name} by {variant}, {dtype} {extents:?} under {shape:?}, {boundary}, operand {operand}"
                    );
                    let ask = Ask::new(&settings).input(x.clone()).input(filter.clone()).variant(variant);
                    let call = op.build(ask).unwrap_or_else(|e| panic!("{what}: {e}"));
                    let wanted = reference::wanted(op, &call).unwrap().unwrap();
                    let ready = match device.gpu.ready(call) {
                        Err(e) if e.kind() == ErrorKind::Unsupported && variant != "auto" => continue,
                        ready => ready.unwrap_or_else(|e| panic!("{what}: {e}")),
                    };
                    let mut rec = device.gpu.recorder();
                    ready.record(&mut rec).unwrap_or_else(|e| panic!("{what}: {e}"));
                    rec.submit().unwrap();
                    let wrong = wanted[0].difference(&ready.results().unwrap()[0]);
                    assert_eq!(wrong, None, "{what}");
                    ran += 1;
                }
            }
        }
    }
    assert!(ran >= if all() { 100 } else { 30 }, "{ran}");
}

#[test]
fn an_operand_filter_changes_without_planning_again() {
    for device in devices() {
        let gpu = &device.gpu;
        let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        for variant in Filter1d::variants().iter().map(|v| v.name) {
            let plan = Filter1d::with_filter(4, 3).variant(variant).plan::<f32>(gpu).unwrap();
            let (filter, y) = (gpu.uniform(&[0.0f32, 1.0, 0.0]).unwrap(), gpu.alloc::<f32>(4).unwrap());
            let filtered = || {
                let mut rec = gpu.recorder();
                plan.with_filter(&filter).record(&mut rec, &x, &y).unwrap();
                rec.submit().unwrap();
                y.read().unwrap()
            };
            let what = format!("{}: {variant}", device.label);
            assert_eq!(filtered(), [1.0, 2.0, 3.0, 4.0], "{what}");
            // A part of it.
            filter.slice(..1).unwrap().write(&[10.0]).unwrap();
            assert_eq!(filtered(), [1.0, 12.0, 23.0, 34.0], "{what}");
            filter.write(&[0.0, 0.0, 0.5]).unwrap();
            assert_eq!(filtered(), [1.0, 1.5, 2.0, 0.0], "{what}");
            filter.write(&[f32::NAN, 0.0, 0.0]).unwrap();
            assert!(filtered().iter().all(|v| v.is_nan()), "{what}");
        }
    }
}

/// A filter is a layer of one channel, whose gradient is that of the layer's weights.
#[test]
fn a_filter_is_learnt_from_its_outputs() {
    let Some(gpu) = gpu() else { return };
    let (h, w) = (24, 20);
    let secret = [0.25f32, -0.5, 1.0, 0.0, 2.0, -1.0, 0.125, 0.75, -0.25];
    let x = gpu.upload(&Random::new(1).elements::<f32>(h * w)).unwrap();
    let want = gpu.filter2d(&x, [h, w], [3, 3], &secret).unwrap();
    let filter = gpu.uniform(&[0.0f32; 9]).unwrap();
    let alloc = |n| gpu.alloc::<f32>(n).unwrap();
    let (y, dy, slope, loss) = (alloc(h * w), alloc(h * w), alloc(9), alloc(1));
    let forward = Filter2d::with_filter([h, w], [3, 3]).variant("constant").plan::<f32>(gpu).unwrap();
    let error = nn::SquaredError::new(h * w).with_gradient().plan::<f32>(gpu).unwrap();
    let layer = Conv2d::new([1, 1, h, w], 1, [3, 3]).pad([1, 1]);
    let backward = Conv2dBackwardWeights::new(&layer).plan::<f32>(gpu).unwrap();
    let step = nn::Sgd::new(9, 0.3).plan::<f32>(gpu).unwrap();
    let mut losses = Vec::new();
    for _ in 0..80 {
        let mut rec = gpu.recorder();
        forward.with_filter(&filter).record(&mut rec, &x, &y).unwrap();
        error.with_dx(&dy).record(&mut rec, &y, &want, &loss).unwrap();
        backward.record(&mut rec, &x, &dy, &slope).unwrap();
        step.record(&mut rec, &filter, &slope).unwrap();
        rec.submit().unwrap();
        losses.push(loss.read().unwrap()[0]);
    }
    assert!(losses[79] < 1e-6 * losses[0], "{losses:?}");
    for (got, want) in filter.read().unwrap().iter().zip(secret) {
        assert!((got - want).abs() < 1e-3, "{got} {want}");
    }
}

#[test]
fn operand_filters_reject_bad_extents_and_variants() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Filter2d| op.plan::<f32>(gpu).unwrap_err().kind();
    assert_eq!(kind(Filter2d::with_filter([9, 9], [2, 3])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Filter2d::with_filter([9, 9], [0, 3])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Filter2d::with_filter([9, 9], [usize::MAX, 3])), ErrorKind::TooLarge);
    assert_eq!(kind(Filter2d::with_filter([9, 9], [3, 3]).variant("separable")), ErrorKind::Unsupported);
    assert_eq!(kind(Filter2d::with_filter([999, 999], [129, 129]).variant("constant")), ErrorKind::Unsupported);
    assert_eq!(kind(Filter2d::with_filter([1, 9], [(1 << 31) - 1, 1])), ErrorKind::TooLarge);
    let (x, y) = (gpu.upload(&[1.0f32; 81]).unwrap(), gpu.alloc::<f32>(81).unwrap());
    let plan = Filter2d::with_filter([9, 9], [3, 3]).variant("constant").plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    let missing = plan.record(&mut rec, &x, &y).unwrap_err();
    assert!(missing.kind() == ErrorKind::InvalidArgument && missing.to_string().contains("filter"), "{missing}");
    let long = gpu.uniform(&[1.0f32; 10]).unwrap();
    assert_eq!(plan.with_filter(&long).record(&mut rec, &x, &y).unwrap_err().kind(), ErrorKind::Shape);
    // A buffer of the caller's without the usage, and one that is too short for whole vec4s.
    let raw = |size, more| {
        let usage = tilework::wgpu::BufferUsages::STORAGE | more;
        let desc = tilework::wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        gpu.wrap::<f32>(gpu.device().create_buffer(&desc)).unwrap()
    };
    for (size, more, word) in
        [(36, tilework::wgpu::BufferUsages::COPY_DST, "UNIFORM"), (36, tilework::wgpu::BufferUsages::UNIFORM, "vec4s")]
    {
        let e = plan.with_filter(&raw(size, more)).record(&mut rec, &x, &y).unwrap_err();
        assert!(e.kind() == ErrorKind::Buffer && e.to_string().contains(word), "{e}");
    }
    let plan = Filter2d::with_filter([9, 9], [3, 3]).plan::<f32>(gpu).unwrap();
    plan.with_filter(&raw(36, tilework::wgpu::BufferUsages::COPY_DST)).record(&mut rec, &x, &y).unwrap();
    rec.submit().unwrap();
}
