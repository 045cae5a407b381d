use super::*;

mod quantize {
    use super::*;
    use crate::quantize::Scales;

    #[test]
    fn matches_rows_and_scales_by_hand() {
        let x = [1.0f32, -127.0, 2.5, 3.5, 0.0, -0.0, 0.0, 0.0];
        let op = Quantize::<i8>::new(2, 4);
        assert_eq!(quantize(&op, &x), (vec![1, -127, 2, 4, 0, 0, 0, 0], vec![1.0, 0.0]));
        let op = Quantize::<u8>::new(2, 4).scales(Scales::Tensor);
        let (codes, scale) =
            quantize(&op, &[448.0f32, 1.0, -2.0, 0.0, 464.0, f32::NAN, 1.0, 1.0].map(|x| x / 464.0 * 448.0));
        assert!((scale[0] - 1.0).abs() < 1e-6);
        assert_eq!((codes[4], codes[5], codes[3]), (0x7e, 0x7f, 0));
        let (codes, scale) = quantize(&Quantize::<i8>::new(1, 4), &[f32::INFINITY, f32::NAN, -f32::INFINITY, 12.7]);
        assert_eq!((codes, scale[0]), (vec![127, 0, -127, 127], 12.7 / 127.0));
        assert_eq!(quantize(&Quantize::<i8>::new(1, 2), &[1e-38f32, -1e-38]), (vec![0, 0], vec![0.0]));
    }
}

mod dequantize {
    use super::*;

    #[test]
    fn numbers_are_codes_times_scales() {
        let op = Dequantize::<i8>::new(2, 2);
        assert_eq!(dequantize::<i8, f32>(&op, &[1, -128, 0, 127], &[0.5, 2.0]), [0.5, -64.0, 0.0, 254.0]);
        let op = Dequantize::<u8>::new(1, 3);
        let got = dequantize::<u8, f32>(&op, &[0x38, 0xfe, 0xff], &[2.0]);
        assert!(got[..2] == [2.0, -896.0] && got[2].is_nan(), "{got:?}");
        assert!(dequantize_bound::<u8, f32>(&op, &[0x38, 0xfe, 0], &[0.1])[0] < 1e-7);
    }
}

mod cast {
    use super::*;
    use half::f16;

    #[test]
    fn halves_are_the_nearest() {
        let half = |x: f32| cast::<f32, f16>(&[x])[0];
        assert_eq!((half(1.0).to_bits(), half(65504.0), half(65520.0)), (0x3c00, f16::MAX, f16::INFINITY));
        // The middle between 1 and the next number, which is odd.
        assert_eq!((half(1.000_488_3), half(2f32.powi(-25)).to_bits()), (f16::ONE, 0));
        assert!(half(f32::NAN).is_nan());
        assert_eq!(cast::<f16, f32>(&[f16::from_bits(1)]), [2f32.powi(-24)]);
    }
}

mod gemm_int8 {
    use super::*;
    use crate::Activation;

    #[test]
    fn matches_sums_and_scales_by_hand() {
        // [1 -2; 3 4] [5 6; 7 -8]
        let (a, b) = ([1, -2, 3, 4], [5, 6, 7, -8]);
        let op = GemmInt8::new(2, 2, 2);
        assert_eq!(gemm_int8(&op, &a, &b), [-9, 22, 43, -14]);
        assert_eq!(gemm_int8(&op.clone().trans_b(), &a, &b), [-7, 23, 39, -11]);
        let layer = op.scaled().activation(Activation::Relu);
        let scales = [&[0.5, 2.0][..], &[1.0, 0.25]];
        let got = gemm_int8_scaled(&layer, [&a, &b], scales, Some(&[5.0, -1.0]));
        assert_eq!(got, [0.5, 1.75, 91.0, 0.0]);
        let bound = gemm_int8_bound::<f32>(&layer, [&a, &b], scales, None);
        assert!(bound.iter().all(|x| (1e-9..1e-3).contains(x)), "{bound:?}");
        assert_eq!(gemm_int8(&GemmInt8::new(1, 1, 0), &[], &[]), [0]);
    }
}
