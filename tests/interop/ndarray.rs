//! ndarray arrays.

use super::dense::round_trip;
use crate::support::devices;
use ::ndarray::{Array1, Array2, Array3, Axis, s};
use half::f16;
use tilework::ErrorKind;
use tilework::interop::Copied;

#[test]
fn arrays_and_views_round_trip() {
    for device in devices() {
        let gpu = &device.gpu;
        let a = Array2::from_shape_fn((9, 8), |(i, j)| (10 * i + j) as f32);
        assert_eq!(round_trip(gpu, &a), Copied::Whole);
        assert_eq!(round_trip(gpu, &a.t()), Copied::Whole);
        assert_eq!(round_trip(gpu, &a.slice(s![2..7, 1..4])), Copied::Lines);
        assert_eq!(round_trip(gpu, &a.slice(s![2..7, 1..4]).t()), Copied::Lines);
        assert_eq!(round_trip(gpu, &a.slice(s![..;-1, ..])), Copied::Lines);
        assert_eq!(round_trip(gpu, &a.slice(s![..;-2, ..;3])), Copied::Elements);
        assert_eq!(round_trip(gpu, &a.slice(s![4, ..])), Copied::Whole);
        assert_eq!(round_trip(gpu, &a.slice(s![.., 4])), Copied::Elements);
        round_trip(gpu, &a.map(|x| f16::from_f32(*x)).slice(s![..;-1, ..;-1]));
        round_trip(gpu, &a.map(|x| *x as u8).slice(s![..;-1, 1..4]));
        for (rows, cols) in [(0, 0), (0, 3), (3, 0), (1, 1), (1, 7), (7, 1)] {
            let a = Array2::from_elem((rows, cols), 3i32);
            round_trip(gpu, &a);
            round_trip(gpu, &a.t());
            assert_eq!(gpu.upload_dense(&a.t()).unwrap().read_as::<Array2<i32>>().unwrap(), a.t());
        }
        round_trip(gpu, &Array1::<f32>::zeros(0));
        let back: Array2<f32> = gpu.upload_dense(&a.slice(s![1..5;2, ..]).t()).unwrap().read_as().unwrap();
        assert_eq!(back, a.slice(s![1..5;2, ..]).t());
    }
}

#[test]
fn arrays_of_any_number_of_axes_round_trip() {
    for device in devices().iter().filter(|device| device.main) {
        let a = Array3::from_shape_fn((2, 3, 5), |(i, j, k)| (100 * i + 10 * j + k) as u32);
        let mut turned = a.view();
        turned.invert_axis(Axis(1));
        turned.swap_axes(0, 2);
        let buffer = device.gpu.upload_ndarray(&turned).unwrap();
        assert_eq!(buffer.read_ndarray((5, 3, 2)).unwrap(), turned);
        for shape in [(5, 3, 3), (usize::MAX, 2, 2)] {
            assert_eq!(buffer.read_ndarray(shape).unwrap_err().kind(), ErrorKind::Shape);
        }
        assert!(device.gpu.upload_ndarray(&Array3::<f32>::zeros((2, 0, 3))).unwrap().is_empty());
    }
}
