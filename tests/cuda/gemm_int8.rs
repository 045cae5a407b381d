//! Products of bytes on CUDA against the reference.

use crate::support::cuda::cuda;
use crate::support::{Random, assert_close, numbers};
use half::f16;
use tilework::cuda::{CudaOp, CudaProfile};
use tilework::dense::Activation;
use tilework::prelude::*;
use tilework::quantize::GemmInt8;
use tilework::reference::{gemm_int8, gemm_int8_bound, gemm_int8_scaled};
use tilework::{DType, Element, ErrorKind};

/// Every tile and chunk, and one beyond; k of whole 16 bytes, and others.
const SHAPES: [[usize; 3]; 9] = [
    [1, 1, 1],
    [5, 7, 9],
    [64, 64, 64],
    [33, 300, 65],
    [130, 257, 129],
    [128, 256, 512],
    [257, 130, 1000],
    [16, 520, 4096],
    [3, 5, 0],
];

fn bytes(random: &mut Random, n: usize) -> Vec<i8> {
    (0..n).map(|_| random.next() as i8).collect()
}

fn check(op: &GemmInt8, [m, n, k]: [usize; 3]) {
    let Some(cuda) = cuda() else { return };
    let mut random = Random::new((m * 31 + n * 7 + k) as u64);
    let (a, b) = (bytes(&mut random, m * k), bytes(&mut random, k * n));
    let (to_a, to_b) = (cuda.upload(&a).unwrap(), cuda.upload(&b).unwrap());
    let (c, stream) = (cuda.alloc::<i32>(m * n).unwrap(), cuda.stream().unwrap());
    op.plan::<i32>(cuda).unwrap().run(&stream, &to_a, &to_b, &c).unwrap();
    assert_eq!(c.read().unwrap(), gemm_int8(op, &a, &b), "{op:?}");

    let mut scales = |n| -> Vec<f32> { (0..n).map(|_| random.unit() as f32 / 128.0).collect() };
    let (a_scale, b_scale, bias) = (scales(m), scales(n), scales(n));
    let [s, t, u] = [&a_scale, &b_scale, &bias].map(|x| cuda.upload(x).unwrap());
    let given = ([&a[..], &b[..]], [&a_scale[..], &b_scale[..]]);
    let layer = op.clone().scaled().activation(Activation::Gelu);
    let c = cuda.alloc::<f16>(m * n).unwrap();
    let plan = layer.plan::<f16>(cuda).unwrap();
    plan.with_scales(&s, &t).run(&stream, &to_a, &to_b, &c).unwrap();
    let want = gemm_int8_scaled(&layer, given.0, given.1, None);
    // Divisions of activations err by two units more than the bound's.
    let wider = |bound: Vec<f64>| -> Vec<f64> { bound.iter().map(|b| 4.0 * b).collect() };
    let bound = wider(gemm_int8_bound::<f16>(&layer, given.0, given.1, None));
    assert_close(&format!("{layer:?} f16"), &numbers(&c.read().unwrap()), &want, &bound);

    let biased = op.clone().scaled().with_bias();
    let c = cuda.alloc::<f32>(m * n).unwrap();
    let plan = biased.plan::<f32>(cuda).unwrap();
    plan.with_scales(&s, &t).with_bias(&u).run(&stream, &to_a, &to_b, &c).unwrap();
    let want = gemm_int8_scaled(&biased, given.0, given.1, Some(&bias));
    let bound = gemm_int8_bound::<f32>(&biased, given.0, given.1, Some(&bias));
    assert_close(&format!("{biased:?} f32"), &numbers(&c.read().unwrap()), &want, &bound);
}

#[test]
fn products_of_bytes_match_reference() {
    for variant in ["auto", "mma", "wgmma"] {
        for shape in SHAPES {
            let [m, n, k] = shape;
            let op = GemmInt8::new(m, n, k).variant(variant);
            check(&op, shape);
            check(&op.trans_b(), shape);
        }
    }
}

#[test]
fn factors_that_tensor_cores_cannot_read_are_copied_first() {
    let h100 = CudaProfile::h100();
    let launches = |op: GemmInt8| {
        let program = CudaOp::<i32>::lower(&op, &h100).unwrap();
        program.check(&h100).unwrap();
        (program.variant(), program.launches.len())
    };
    assert_eq!(launches(GemmInt8::new(4096, 4096, 4096).trans_b()), ("wgmma", 1));
    assert_eq!(launches(GemmInt8::new(4096, 4096, 4096)), ("wgmma", 2));
    assert_eq!(launches(GemmInt8::new(100, 100, 4000).trans_b()), ("mma", 1));
    assert_eq!(launches(GemmInt8::new(100, 100, 4001).trans_b()), ("mma", 3));
    assert_eq!(launches(GemmInt8::new(100, 0, 4001).trans_b()), ("mma", 0));
}

fn refusal<T: Element>(op: &GemmInt8, profile: &CudaProfile) -> ErrorKind
where
    GemmInt8: CudaOp<T>,
{
    CudaOp::<T>::lower(op, profile).unwrap_err().kind()
}

#[test]
fn products_of_bytes_that_no_kernel_computes_are_refused() {
    let (op, h100) = (GemmInt8::new(64, 64, 64).trans_b(), CudaProfile::h100());
    assert_eq!(refusal::<i32>(&op, &CudaProfile::sm(75)), ErrorKind::Unsupported);
    assert_eq!(refusal::<i32>(&op.clone().variant("wgmma"), &CudaProfile::sm(80)), ErrorKind::Unsupported);
    assert_eq!(refusal::<i32>(&op.clone().variant("wmma"), &h100), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<i32>(&op.clone().scaled(), &h100), ErrorKind::Unsupported);
    assert_eq!(refusal::<f32>(&op, &h100), ErrorKind::Unsupported);
    assert_eq!(refusal::<i32>(&GemmInt8::new(64, 64, 131_072), &h100), ErrorKind::TooLarge);
    let text = CudaOp::<f32>::lower(&op, &h100).unwrap_err().to_string();
    assert!(text.contains(DType::F32.name()), "{text}");
}
