//! faer matrices.

use super::dense::round_trip;
use crate::support::devices;
use ::faer::Mat;
use half::f16;
use tilework::interop::{Copied, Order};

#[test]
fn matrices_and_views_round_trip() {
    for device in devices() {
        let gpu = &device.gpu;
        let a = Mat::from_fn(9, 8, |i, j| (10 * i + j) as f32);
        assert_eq!(round_trip(gpu, &a), Copied::Lines);
        assert_eq!(round_trip(gpu, &a.transpose()), Copied::Lines);
        assert_eq!(round_trip(gpu, &a.as_ref().submatrix(2, 1, 5, 3)), Copied::Lines);
        assert_eq!(round_trip(gpu, &a.as_ref().reverse_rows()), Copied::Elements);
        assert_eq!(round_trip(gpu, &a.as_ref().reverse_cols()), Copied::Lines);
        round_trip(gpu, &Mat::from_fn(3, 5, |i, j| f16::from_f32((i * j) as f32)));
        for (rows, cols) in [(0, 0), (0, 3), (3, 0), (1, 1), (1, 7), (7, 1)] {
            let a = Mat::from_fn(rows, cols, |i, j| (i + 2 * j) as f32);
            round_trip(gpu, &a);
            for view in [a.as_ref(), a.as_ref().reverse_rows().reverse_cols()] {
                assert_eq!(gpu.upload_dense(&view).unwrap().read_as::<Mat<f32>>().unwrap(), view);
                let turned = gpu.upload_dense(&view.transpose()).unwrap();
                assert_eq!(turned.read_as::<Mat<f32>>().unwrap(), view.transpose());
            }
        }
        let up = gpu.upload_dense(&a).unwrap();
        assert_eq!((up.order(), up.leading_dimension()), (Order::ColumnMajor, 9));
    }
}
