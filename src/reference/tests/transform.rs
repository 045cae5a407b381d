use super::*;

#[test]
fn functions_by_hand() {
    let each = |x: &'static [f64]| (x, DType::F32, Broadcast::Each);
    let bytes = |x: &'static [f64]| (x, DType::U8, Broadcast::Each);
    let words = |x: &'static [f64]| (x, DType::I32, Broadcast::Each);
    let of = |function, inputs: &[_], to| transform(&function, [2, 2], inputs, &[2.0, 0.5], to).unwrap();
    let x = each(&[-1.5, 300.25, f64::NAN, 7.0]);
    assert_eq!(of(TransformFn::Convert, &[x], DType::U8), [0.0, 255.0, 0.0, 7.0]);
    assert_eq!(of(TransformFn::Convert, &[each(&[4e9, -1.0, 256.0, 1.0])], DType::U8), [255.0, 0.0, 255.0, 1.0]);
    assert_eq!(of(TransformFn::Convert, &[words(&[-1.0, 257.0, 255.0, 128.0])], DType::I8), [-1.0, 1.0, -1.0, -128.0]);
    let row = (&[5.0, 6.0][..], DType::F32, Broadcast::Row);
    let column = (&[8.0, 9.0][..], DType::F32, Broadcast::Column);
    let one = (&[2.0][..], DType::F32, Broadcast::Scalar);
    assert_eq!(
        of(TransformFn::Where, &[each(&[0.0, 1.0, f64::NAN, 0.0]), row, column], DType::F32),
        [8.0, 6.0, 5.0, 9.0]
    );
    assert_eq!(of(TransformFn::Less, &[x, one], DType::U32), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(of(TransformFn::NotEqual, &[x, x], DType::U32), [0.0, 0.0, 1.0, 0.0]);
    assert_eq!(of(TransformFn::GreaterEqual, &[x, x], DType::U32), [1.0, 1.0, 0.0, 1.0]);
    assert_eq!(of(TransformFn::Affine, &[bytes(&[0.0, 1.0, 2.0, 255.0])], DType::F32), [0.5, 2.5, 4.5, 510.5]);
    let (a, b) = (bytes(&[250.0, 7.0, 0.0, 9.0]), bytes(&[10.0, 8.0, 0.0, 2.0]));
    assert_eq!(of(TransformFn::Add, &[a, b], DType::U8), [4.0, 15.0, 0.0, 11.0]);
    assert_eq!(of(TransformFn::Sub, &[a, b], DType::U32), [240.0, 4294967295.0, 0.0, 7.0]);
    assert_eq!(of(TransformFn::Div, &[a, b], DType::U8), [25.0, 0.0, 0.0, 4.0]);
    assert!(of(TransformFn::Max, &[x, one], DType::F32)[2].is_nan());
    assert_eq!(of(TransformFn::Silu, &[each(&[0.0; 4])], DType::F32), [0.0; 4]);
    let custom = TransformFn::custom("");
    assert!(transform(&custom, [1, 1], &[], &[], DType::F32).is_err());
}

#[test]
fn gradients_match_finite_differences() {
    let of = |function: TransformFn, inputs: &[f64]| {
        let inputs: Vec<_> = inputs.iter().map(|x| (std::slice::from_ref(x), DType::F32, Broadcast::Scalar)).collect();
        transform(&function, [1, 1], &inputs, &[], DType::F32).unwrap()[0]
    };
    for x in (-40..40).map(|i| f64::from(i) * 0.21) {
        let wanted = |f: TransformFn| (of(f.clone(), &[x + 1e-6]) - of(f, &[x - 1e-6])) / 2e-6;
        assert!((of(TransformFn::SiluBackward, &[x, 3.0]) - 3.0 * wanted(TransformFn::Silu)).abs() < 1e-7);
        let got = of(TransformFn::GeluTanhBackward, &[x, 3.0]);
        assert!((got - 3.0 * wanted(TransformFn::GeluTanh)).abs() < 1e-7);
        let got = of(TransformFn::SwiGluBackward, &[x, 2.0, 3.0]);
        assert!((got - 6.0 * wanted(TransformFn::Silu)).abs() < 1e-7);
    }
    // The published value of PyTorch's tanh form at 1.
    assert!((of(TransformFn::GeluTanh, &[1.0]) - 0.841_191_990_6).abs() < 1e-9);
}
