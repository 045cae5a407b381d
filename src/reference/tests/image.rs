use super::*;

mod grey {
    use super::*;
    use crate::image::Image;

    #[test]
    fn known_pixels() {
        let rgb = [255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9u8];
        assert_eq!(grey(&Grey::new([1, 6, 3]), &rgb), [255.0, 0.0, 76.0, 150.0, 29.0, 9.0]);
        // 76 + 153 + 25, and 2 + 5 + 0.
        let source = Grey::new([1, 6, 3]).weights(GreyWeights::Source);
        assert_eq!(grey(&source, &rgb), [254.0, 0.0, 76.0, 153.0, 25.0, 7.0]);
        // Two pixels with opacity, side by side and in planes; of floats nothing is rounded.
        assert_eq!(grey(&Grey::new([1, 2, 4]), &[1.0f32, 0.0, 0.0, 9.0, 0.0, 1.0, 0.0, 9.0]), [0.299, 0.587]);
        let planes = Grey::new(Image::rgba([1, 2]).planar());
        assert_eq!(grey(&planes, &[1.0f32, 0.0, 0.0, 1.0, 0.0, 0.0, 9.0, 9.0]), [0.299, 0.587]);
    }
}

mod blur {
    use super::*;
    use crate::image::Image;

    #[test]
    fn known_means() {
        let x = [0u8, 10, 20, 30, 40, 50, 60, 70, 81];
        // The corner is a mean of four; 361 / 9 is 40.1; half goes up: 50.25, 12.5 has no place here.
        let inside = Blur::new([3, 3], 1);
        assert_eq!(blur(&inside, &x), [20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0]);
        let window = inside.divide(Divide::Window);
        assert_eq!(blur(&window, &x), [8.0, 16.0, 13.0, 23.0, 40.0, 30.0, 22.0, 36.0, 26.0]);
        assert_eq!(blur(&Blur::new([1, 2], 9), &[0u8, 1]), [1.0, 1.0]);
        assert_eq!(blur(&Blur::new([1, 2], 9), &[0f32, 1.0]), [0.5, 0.5]);
        assert_eq!(blur(&Blur::new([1, 2], 0), &[3u8, 4]), [3.0, 4.0]);
        // Two channels, side by side and in planes.
        assert_eq!(blur(&Blur::new([1, 2, 2], 1), &[0u8, 8, 4, 6]), [2.0, 7.0, 2.0, 7.0]);
        assert_eq!(blur(&Blur::new(Image::new([1, 2], 2).planar(), 1), &[0u8, 4, 8, 6]), [2.0, 2.0, 7.0, 7.0]);
    }
}

mod gaussian {
    use super::*;
    use crate::conv::Boundary;
    use crate::image::Image;

    #[test]
    fn known_curves() {
        // exp(-1/2) twice and 1: 0.2741, 0.4519, 0.2741.
        let side = (-0.5f64).exp() / (1.0 + 2.0 * (-0.5f64).exp());
        let middle = 1.0 - 2.0 * side;
        let op = Gaussian::new([1, 3], 1.0).radius(1);
        let near = |got: &[f64], want: &[f64]| got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-12);
        assert!(near(&gaussian(&op, &[0u8, 1, 0]), &[side, middle, side]));
        // The rows above and below are the same row.
        assert!(near(&gaussian(&op, &[1u8, 0, 0]), &[side + middle, side, 0.0]));
        let zero = op.clone().boundary(Boundary::Zero);
        assert!(near(&gaussian(&zero, &[1u8, 0, 0]), &[middle * middle, middle * side, 0.0]));
        let wrap = Gaussian::new([3, 3], 1.0).radius(1).boundary(Boundary::Wrap);
        let corner = gaussian(&wrap, &[0u8, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert!(near(&corner[..2], &[side * side, side * side]) && near(&corner[8..], &[middle * middle]));
        // Channels do not mix, in both layouts.
        let pair = Gaussian::new(Image::new([1, 2], 2), 1.0).radius(1);
        assert!(near(&gaussian(&pair, &[0u8, 8, 0, 8]), &[0.0, 8.0, 0.0, 8.0]));
        let planes = Gaussian::new(Image::new([1, 2], 2).planar(), 1.0).radius(1);
        assert!(near(&gaussian(&planes, &[0u8, 0, 8, 8]), &[0.0, 0.0, 8.0, 8.0]));
        assert_eq!((op.reach(), Gaussian::new([1, 1], 1.5).reach()), (1, 6));
    }
}

mod median {
    use super::*;
    use crate::conv::Boundary;
    use crate::image::Image;

    #[test]
    fn known_medians() {
        let x = [9u8, 2, 3, 4, 5, 6, 7, 8, 1];
        let op = Median::new([3, 3], 3);
        assert_eq!(median(&op, &x), [5, 4, 3, 7, 5, 3, 7, 6, 5]);
        assert_eq!(median(&op.clone().boundary(Boundary::Zero), &x), [0, 3, 0, 4, 5, 2, 0, 4, 0]);
        assert_eq!(median(&op.boundary(Boundary::Wrap), &x), [5; 9]);
        assert_eq!(median(&Median::new([3, 3], 1), &x), x);
        // A window that is larger than the image: the pixels at its ends count most.
        assert_eq!(median(&Median::new([1, 3], 9), &[3u8, 7, 5]), [3, 5, 5]);
        // Channels do not mix, in both layouts.
        assert_eq!(median(&Median::new(Image::new([1, 3], 2), 3), &[1u8, 30, 2, 10, 3, 20]), [1, 30, 2, 20, 3, 20]);
        let planes = Median::new(Image::new([1, 3], 2).planar(), 3);
        assert_eq!(median(&planes, &[1u8, 2, 3, 30, 10, 20]), [1, 2, 3, 30, 20, 20]);
    }

    #[test]
    fn negative_zero_lies_below_zero_and_nan_above_infinity() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let middle = |row: [f32; 3]| median(&Median::new([1, 3], 3), &row)[1];
        assert_eq!(middle([0.0, -0.0, -0.0]).to_bits(), (-0.0f32).to_bits());
        assert_eq!(middle([0.0, -0.0, 1.0]).to_bits(), 0);
        assert_eq!(middle([-nan, inf, 1.0]), inf);
        assert_eq!(middle([nan, -inf, 1.0]), 1.0);
        assert!(middle([nan, -nan, 1.0]).is_nan());
    }
}

mod sobel {
    use super::*;
    use crate::image::Image;

    #[test]
    fn known_gradients() {
        // A step to the right, and one downwards on the left.
        let x = [0u8, 0, 10, 0, 0, 10, 3, 0, 10];
        let of = |gradient| sobel(&Sobel::new([3, 3]).gradient(gradient), &x);
        assert_eq!(of(Gradient::X), [0.0, 40.0, 40.0, -3.0, 37.0, 40.0, -9.0, 31.0, 40.0]);
        assert_eq!(of(Gradient::Y)[3..6], [9.0, 3.0, 0.0]);
        assert_eq!(of(Gradient::Magnitude)[3], 90f64.sqrt());
        // Two channels, side by side and in planes.
        let pair = Sobel::new(Image::new([1, 2], 2)).gradient(Gradient::X);
        assert_eq!(sobel(&pair, &[0u8, 5, 1, 7]), [4.0, 8.0, 4.0, 8.0]);
        let planes = Sobel::new(Image::new([1, 2], 2).planar()).gradient(Gradient::X);
        assert_eq!(sobel(&planes, &[0u8, 1, 5, 7]), [4.0, 4.0, 8.0, 8.0]);
    }
}

mod equalize {
    use super::*;

    #[test]
    fn known_images() {
        // 2 of the least; then 3, 5 and 6 of 6: 1/4, 3/4 and 4/4 of 255.
        let op = Equalize::new([2, 3]);
        assert_eq!(equalize(&op, &[7u8, 7, 9, 20, 20, 200]).unwrap(), [0.0, 0.0, 64.0, 191.0, 191.0, 255.0]);
        assert_eq!(equalize(&op, &[7u8; 6]).unwrap(), [7.0; 6]);
        // Opacity stays.
        let pair = Equalize::new([1, 2, 2]);
        assert_eq!(equalize(&pair, &[3u8, 9, 5, 8]).unwrap(), [0.0, 9.0, 255.0, 8.0]);
        // The first half of the bins holds 3 of 4 elements; 0.25 is the middle of no bin.
        let floats = Equalize::new([2, 2]);
        let got = equalize(&floats, &[0.0f32, 0.1, 0.25, 1.0]).unwrap();
        assert_eq!((got[0], got[3]), (0.25, 1.0));
        assert!((got[2] - 0.625).abs() < 1e-12, "{got:?}");
        assert!(equalize(&floats, &[f32::NAN; 4]).unwrap()[0].is_nan());
    }
}
