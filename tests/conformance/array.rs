//! Tensors on the host: operations that only move elements.

/// Elements as f64, row-major, with their error bounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Array {
    pub(super) dims: Vec<usize>,
    pub(super) values: Vec<f64>,
    pub(super) bound: Vec<f64>,
}

impl Array {
    pub(super) fn exact(dims: Vec<usize>, values: Vec<f64>) -> Self {
        let bound = vec![0.0; values.len()];
        Self { dims, values, bound }
    }

    /// The same elements in another shape of equal size.
    pub(super) fn reshaped(self, dims: Vec<usize>) -> Self {
        Self { dims, ..self }
    }

    /// Axis `i` of the result is axis `order[i]` of this one.
    pub(super) fn permuted(&self, order: &[usize]) -> Self {
        let strides = strides(&self.dims);
        let dims = order.iter().map(|&axis| self.dims[axis]).collect();
        self.gathered(dims, &order.iter().map(|&axis| strides[axis]).collect::<Vec<_>>())
    }

    /// Moves an axis last. Also returns the order that moves it back.
    pub(super) fn axis_last(&self, axis: usize) -> (Self, Vec<usize>) {
        let rank = self.dims.len();
        let order: Vec<usize> = (0..rank).filter(|a| *a != axis).chain([axis]).collect();
        let back = (0..rank).map(|a| order.iter().position(|o| *o == a).unwrap()).collect();
        (self.permuted(&order), back)
    }

    /// Replicated to a shape that [`broadcast_dims`] gave.
    pub(super) fn broadcast(&self, dims: &[usize]) -> Self {
        let new_axes = dims.len() - self.dims.len();
        let own = strides(&self.dims);
        let stride = |axis: usize| match axis.checked_sub(new_axes) {
            Some(own_axis) if self.dims[own_axis] != 1 => own[own_axis],
            _ => 0,
        };
        self.gathered(dims.to_vec(), &(0..dims.len()).map(stride).collect::<Vec<_>>())
    }

    /// The element at an index is at the sum of index times stride.
    fn gathered(&self, dims: Vec<usize>, strides: &[usize]) -> Self {
        let position = |flat: usize| {
            let mut rest = flat;
            let axes = dims.iter().zip(strides).rev();
            axes.fold(0, |position, (size, stride)| {
                let index = rest % size;
                rest /= size;
                position + index * stride
            })
        };
        let positions: Vec<usize> = (0..dims.iter().product()).map(position).collect();
        let take = |from: &[f64]| positions.iter().map(|&i| from[i]).collect();
        Self { values: take(&self.values), bound: take(&self.bound), dims }
    }
}

/// An axis counted from the front.
pub(super) fn from_front(axis: i64, rank: usize) -> usize {
    if axis < 0 { rank.wrapping_add_signed(axis as isize) } else { axis as usize }
}

fn strides(dims: &[usize]) -> Vec<usize> {
    (0..dims.len()).map(|axis| dims[axis + 1..].iter().product()).collect()
}

/// The broadcast of two shapes, by NumPy's rule: aligned at the last axis, an extent of 1 matches any. `None`
/// if they do not match.
pub(super) fn broadcast_dims(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let extent = |dims: &[usize], axis: usize| match (axis + dims.len()).checked_sub(rank) {
        Some(own_axis) => dims[own_axis],
        None => 1,
    };
    let merged = |axis| match (extent(a, axis), extent(b, axis)) {
        (1, size) | (size, 1) => Some(size),
        (x, y) => (x == y).then_some(x),
    };
    (0..rank).map(merged).collect()
}

#[test]
fn permuted_and_broadcast_arrays_match_known_values() {
    let x = Array::exact(vec![2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(x.permuted(&[1, 0]), Array::exact(vec![3, 2], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    let row = Array::exact(vec![1, 2], vec![7.0, 8.0]);
    assert_eq!(row.broadcast(&[2, 2]).values, [7.0, 8.0, 7.0, 8.0]);
    let column = Array::exact(vec![2, 1], vec![7.0, 8.0]);
    assert_eq!(column.broadcast(&[2, 2, 2]).values, [7.0, 7.0, 8.0, 8.0, 7.0, 7.0, 8.0, 8.0]);
    assert_eq!(Array::exact(vec![], vec![9.0]).broadcast(&[3]).values, [9.0; 3]);
}

#[test]
fn broadcast_dims_follow_numpy() {
    assert_eq!(broadcast_dims(&[3, 4, 5], &[5]), Some(vec![3, 4, 5]));
    assert_eq!(broadcast_dims(&[3, 1], &[1, 2]), Some(vec![3, 2]));
    assert_eq!(broadcast_dims(&[], &[0, 2]), Some(vec![0, 2]));
    assert_eq!(broadcast_dims(&[3], &[2]), None);
}
