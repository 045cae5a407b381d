//! `Iamax` and `Iamin` against the reference.

/// The tests of an op that finds a magnitude's position.
macro_rules! position_tests {
    ($Op:ident, $op:ident) => {
        use crate::nn::training::refusal;
        use crate::support::{Device, Random, Sample, devices, gpu};
        use half::f16;
        use tilework::ErrorKind;
        use tilework::prelude::*;
        use tilework::program::Op;
        use tilework::reference::$op;

        fn check<T: Sample>(device: &Device, x: &[T])
        where
            $Op: Op<T>,
        {
            let got = device.gpu.$op(&device.gpu.upload(x).unwrap()).unwrap().read().unwrap();
            assert_eq!(got, [$op(x)], "{}: {} {}", device.label, x.len(), T::DTYPE);
        }

        #[test]
        fn matches_reference_for_every_length() {
            let mut random = Random::new(3);
            for device in devices() {
                for n in [1, 3, 255, 1000, 4097, 70_001] {
                    check(device, &random.elements::<f32>(n));
                    check(device, &random.elements::<f16>(n));
                }
            }
        }

        #[test]
        fn special_numbers_are_as_documented() {
            for device in devices() {
                check(device, &[1.0f32, -3.0, 3.0, f32::NEG_INFINITY, f32::INFINITY]);
                check(device, &[1.0f32, f32::NAN, f32::INFINITY, f32::NAN]);
                check(device, &[0.0f32, -0.0, 0.0]);
                check(device, &vec![0.0f32; 5000]);
            }
        }

        #[test]
        fn rejects_invalid_arguments() {
            let Some(gpu) = gpu() else { return };
            assert_eq!(refusal::<f32>(gpu, &$Op::new(4).variant("fast")), ErrorKind::InvalidArgument);
            assert_eq!(refusal::<f32>(gpu, &$Op::new(usize::MAX)), ErrorKind::TooLarge);
            assert_eq!(refusal::<f32>(gpu, &$Op::new(0)), ErrorKind::Shape);
        }
    };
}
pub(super) use position_tests;

position_tests!(Iamax, iamax);
