//! `SelectColumns` against the selection of each column.

use crate::nn::training::{names, refusal};
use crate::support::{Random, devices, gpu, supported};
use half::f16;
use tilework::prelude::*;
use tilework::{DType, ErrorKind};

/// The rows whose flag is not 0.
fn kept<T: Copy>(x: &[T], flags: &[u32], width: usize) -> Vec<T> {
    let rows = flags.iter().enumerate().filter(|(_, flag)| **flag != 0);
    rows.flat_map(|(i, _)| &x[i * width..(i + 1) * width]).copied().collect()
}

#[test]
fn columns_of_every_type_are_selected_together() {
    for device in devices() {
        let gpu = &device.gpu;
        for n in [0, 1, 700, 5001] {
            let mut random = Random::new(n as u64);
            let flags: Vec<u32> = random.elements::<u32>(n).iter().map(|x| x % 3 / 2 * x).collect();
            let (a, b): (Vec<f32>, Vec<u8>) = (random.elements(3 * n), random.elements(n));
            let (c, d): (Vec<f16>, Vec<i32>) = (random.elements(5 * n), random.elements(4 * n));
            for variant in names(SelectColumns::variants()) {
                let op = SelectColumns::new(n).variant(variant);
                let op = op.column(DType::F32, 3).column(DType::U8, 1).column(DType::F16, 5).column(DType::I32, 4);
                let given = gpu.upload(&flags).unwrap();
                let (da, db) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap());
                let (dc, dd) = (gpu.upload(&c).unwrap(), gpu.upload(&d).unwrap());
                let (oa, ob) = (gpu.alloc::<f32>(3 * n).unwrap(), gpu.alloc::<u8>(n).unwrap());
                let (oc, od) = (gpu.alloc::<f16>(5 * n).unwrap(), gpu.alloc::<i32>(4 * n).unwrap());
                let count = gpu.alloc::<u32>(1).unwrap();
                let Some(plan) = supported(op.plan::<u32>(gpu)) else { continue };
                let mut rec = gpu.recorder();
                let call = plan.with_a(&da, &oa).with_b(&db, &ob).with_c(&dc, &oc).with_d(&dd, &od);
                call.record(&mut rec, &given, &count).unwrap();
                rec.submit().unwrap();
                let what = format!("{}: {variant} of {n}", device.label);
                let k = count.read().unwrap()[0] as usize;
                assert_eq!(k, flags.iter().filter(|flag| **flag != 0).count(), "{what}");
                assert_eq!(oa.slice(..3 * k).unwrap().read().unwrap(), kept(&a, &flags, 3), "{what}");
                assert_eq!(ob.slice(..k).unwrap().read().unwrap(), kept(&b, &flags, 1), "{what}");
                assert_eq!(oc.slice(..5 * k).unwrap().read().unwrap(), kept(&c, &flags, 5), "{what}");
                assert_eq!(od.slice(..4 * k).unwrap().read().unwrap(), kept(&d, &flags, 4), "{what}");
            }
        }
    }
}

#[test]
fn select_columns_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = || SelectColumns::new(9);
    assert_eq!(refusal::<u32>(gpu, &op()), ErrorKind::InvalidArgument);
    let five = (0..5).fold(op(), |op, _| op.column(DType::F32, 1));
    assert_eq!(refusal::<u32>(gpu, &five), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u32>(gpu, &op().column(DType::U64, 1)), ErrorKind::Unsupported);
    assert_eq!(refusal::<u32>(gpu, &op().column(DType::F32, 1).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u32>(gpu, &op().column(DType::F32, usize::MAX)), ErrorKind::TooLarge);
}
