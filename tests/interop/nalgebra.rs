//! nalgebra matrices.

use super::dense::round_trip;
use crate::support::devices;
use ::nalgebra::{DMatrix, DVector, Matrix2x3};
use half::f16;
use tilework::interop::{Copied, Order};

#[test]
fn matrices_and_views_round_trip() {
    for device in devices() {
        let gpu = &device.gpu;
        let a = DMatrix::from_fn(9, 8, |i, j| (10 * i + j) as f32);
        assert_eq!(round_trip(gpu, &a), Copied::Whole);
        assert_eq!(round_trip(gpu, &a.view((2, 1), (5, 3))), Copied::Lines);
        assert_eq!(round_trip(gpu, &a.view_with_steps((0, 0), (3, 3), (1, 1))), Copied::Elements);
        assert_eq!(round_trip(gpu, &a.rows(1, 4)), Copied::Lines);
        round_trip(gpu, &a.columns(1, 4));
        round_trip(gpu, &a.row(3));
        round_trip(gpu, &a.column(3));
        assert_eq!(round_trip(gpu, &DVector::from_vec(vec![1u8, 2, 3])), Copied::Whole);
        assert_eq!(round_trip(gpu, &Matrix2x3::new(1, 2, 3, 4, 5, 6)), Copied::Whole);
        round_trip(gpu, &DMatrix::from_fn(3, 5, |i, j| f16::from_f32((i * j) as f32)));
        for (rows, cols) in [(0, 0), (0, 3), (3, 0), (1, 1), (1, 7), (7, 1), (70, 40)] {
            let a = DMatrix::from_fn(rows, cols, |i, j| (i + 2 * j) as f32);
            round_trip(gpu, &a);
            let up = gpu.upload_dense(&a).unwrap();
            assert_eq!(up.read_as::<DMatrix<f32>>().unwrap(), a);
            assert_eq!(up.transposed().read_as::<DMatrix<f32>>().unwrap(), a.transpose());
        }
        let a = gpu.upload_dense(&a).unwrap();
        let c = gpu.matmul(&a.transposed(), &a).unwrap();
        assert_eq!(c.order(), Order::RowMajor);
    }
}
