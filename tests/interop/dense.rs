//! Views of plain slices, and products in every storage order.

use crate::support::devices;
use half::f16;
use tilework::interop::{Copied, DenseMatrix, HostDense, HostView, Order};
use tilework::{Element, ErrorKind, Gpu};

/// The elements, row-major, through `get`.
pub(super) fn by_rows<M: HostDense>(matrix: &M) -> Vec<M::Elem> {
    let [rows, cols] = matrix.shape();
    (0..rows).flat_map(|row| (0..cols).map(move |col| matrix.get(row, col))).collect()
}

/// Uploads, compares with `get`, and returns how it was copied.
pub(super) fn round_trip<M: HostDense>(gpu: &Gpu, matrix: &M) -> Copied {
    let uploaded = gpu.upload_dense(matrix).unwrap();
    assert_eq!([uploaded.rows(), uploaded.cols()], matrix.shape());
    assert_eq!(uploaded.read_as::<Vec<M::Elem>>().unwrap(), by_rows(matrix));
    let turned: Vec<M::Elem> = uploaded.transposed().transposed().read_as().unwrap();
    assert_eq!(turned, by_rows(matrix));
    uploaded.copied()
}

#[test]
fn views_of_slices_round_trip() {
    for device in devices() {
        let values: Vec<f32> = (0..2000).map(|x| x as f32).collect();
        let copied = |shape, first, strides| {
            round_trip(&device.gpu, &HostView::strided(&values, shape, first, strides).unwrap())
        };
        assert_eq!(copied([7, 9], 5, [9, 1]), Copied::Whole);
        assert_eq!(copied([7, 9], 5, [1, 7]), Copied::Whole);
        assert_eq!(copied([7, 9], 5, [18, 1]), Copied::Whole);
        assert_eq!(copied([7, 9], 5, [19, 1]), Copied::Lines);
        assert_eq!(copied([7, 9], 500, [-9, 1]), Copied::Lines);
        assert_eq!(copied([7, 9], 500, [1, -50]), Copied::Lines);
        assert_eq!(copied([7, 9], 500, [-9, -1]), Copied::Elements);
        assert_eq!(copied([7, 9], 3, [40, 2]), Copied::Elements);
        assert_eq!(copied([7, 9], 3, [0, 0]), Copied::Elements);
        for shape in [[0, 0], [0, 5], [5, 0], [1, 1], [1, 9], [9, 1], [40, 33]] {
            copied(shape, 0, [shape[1] as isize, 1]);
            copied(shape, 0, [1, shape[0] as isize]);
            copied(shape, 1900, [-(shape[1] as isize), -1]);
        }
        let bytes: Vec<u8> = (0..250).collect();
        round_trip(&device.gpu, &HostView::strided(&bytes, [7, 9], 249, [-21, -2]).unwrap());
        let halves: Vec<f16> = (0..250).map(|x| f16::from_f32(x as f32)).collect();
        round_trip(&device.gpu, &HostView::strided(&halves, [7, 9], 249, [-21, -2]).unwrap());
    }
}

#[test]
fn rejects_views_beyond_their_slice() {
    let values = [0.0f32; 10];
    let extents = [([2, 6], 0, [6, 1]), ([2, 2], 0, [-1, 1]), ([2, 2], 9, [1, 1])];
    let huge = [([usize::MAX, 1], 0, [1, 1]), ([3, 1], 0, [isize::MAX, 1])];
    for (shape, first, strides) in extents.into_iter().chain(huge) {
        let e = HostView::strided(&values, shape, first, strides).unwrap_err();
        assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("slice of 10 elements"), "{e}");
    }
    assert!(HostView::row_major(&values, usize::MAX, 2).is_err());
}

#[test]
fn products_in_every_order_are_equal() {
    for device in devices() {
        let gpu = &device.gpu;
        let (m, n, k) = (5, 6, 7);
        let values: Vec<f32> = (0..200).map(|x| (x % 11) as f32 - 5.0).collect();
        let views = |rows: usize, cols: usize| {
            let (r, c) = (rows as isize, cols as isize);
            [[c, 1], [1, r], [c + 3, 1], [1, r + 2], [c * 3, 1], [-c, 1], [2 * c, 2]]
                .map(|strides| HostView::strided(&values, [rows, cols], 50, strides).unwrap())
        };
        for a in views(m, k) {
            for b in views(k, n) {
                let (left, right) = (gpu.upload_dense(&a).unwrap(), gpu.upload_dense(&b).unwrap());
                let c = gpu.matmul(&left, &right).unwrap();
                let element = |i, j| (0..k).map(|l| a.get(i, l) * b.get(l, j)).sum::<f32>();
                let want: Vec<f32> = (0..m).flat_map(|i| (0..n).map(move |j| element(i, j))).collect();
                assert_eq!(c.read_as::<Vec<f32>>().unwrap(), want, "{}", device.label);
                let columns = left.order() == Order::ColumnMajor && right.order() == Order::ColumnMajor;
                assert_eq!(c.order() == Order::ColumnMajor, columns);
            }
        }
        let a = gpu.upload_dense(&views(m, k)[0]).unwrap();
        let e = gpu.matmul(&a, &a).unwrap_err();
        assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("a is 5 x 7, b is 5 x 7"), "{e}");
        let e = DenseMatrix::from_buffer(a.buffer().clone(), [5, 6], Order::RowMajor).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Shape);
        let none = gpu.upload_dense(&HostView::<f32>::row_major(&[], 0, 5).unwrap()).unwrap();
        assert!(gpu.matmul(&none, &a).unwrap().buffer().is_empty());
        let empty = gpu.matmul(&none.transposed(), &none).unwrap();
        assert_eq!(empty.read_as::<Vec<f32>>().unwrap(), [0.0; 25]);
    }
}

/// A matrix whose slices have the wrong lengths.
struct Wrong<T>(Vec<T>, bool);

impl<T: Element> HostDense for Wrong<T> {
    type Elem = T;
    fn shape(&self) -> [usize; 2] {
        [3, 4]
    }
    fn get(&self, _: usize, _: usize) -> T {
        self.0[0]
    }
    fn stored(&self) -> Option<tilework::interop::Stored<'_, T>> {
        let stored = tilework::interop::Stored { values: &self.0, order: Order::RowMajor, leading_dimension: 4 };
        self.1.then_some(stored)
    }
    fn row(&self, _: usize) -> Option<&[T]> {
        Some(&self.0)
    }
}

#[test]
fn rejects_slices_of_the_wrong_length() {
    for device in devices().iter().filter(|device| device.main) {
        for whole in [false, true] {
            let e = device.gpu.upload_dense(&Wrong(vec![1u32; 11], whole)).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Shape, "{e}");
        }
    }
}
