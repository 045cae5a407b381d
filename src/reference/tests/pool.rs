use super::*;

const X: [f32; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];

fn of(kind: PoolKind) -> Pool2d {
    Pool2d::new(kind, [1, 1, 3, 3], [2, 2]).stride([1, 1])
}

#[test]
fn windows_of_a_square_are_known() {
    assert_eq!(pool(&of(PoolKind::Max), &X, None).unwrap(), [5.0, 6.0, 8.0, 9.0]);
    assert_eq!(pool(&of(PoolKind::Average), &X, None).unwrap(), [3.0, 4.0, 6.0, 7.0]);
    let corners = PoolKind::Weighted(vec![1.0, 0.0, 0.0, -1.0]);
    assert_eq!(pool(&of(corners), &X, Some(&[0.5])).unwrap(), [-3.5; 4]);
    let l2 = Pool2d::new(PoolKind::L2, [1, 1, 1, 2], [1, 2]);
    assert_eq!(pool(&l2, &[3.0f32, -4.0], None).unwrap(), [5.0]);
    // The stride skips the last row and column.
    assert_eq!(pool(&of(PoolKind::Max).stride([2, 2]), &X, None).unwrap(), [5.0]);
}

#[test]
fn padding_is_ignored_unless_counted() {
    let op = of(PoolKind::Average).stride([2, 2]).pad([1, 1]);
    assert_eq!(pool(&op, &X, None).unwrap(), [1.0, 2.5, 5.5, 7.0]);
    assert_eq!(pool(&op.count_include_pad(), &X, None).unwrap(), [0.25, 1.25, 2.75, 7.0]);
    let op = of(PoolKind::Max).stride([2, 2]).pad([1, 1]);
    assert_eq!(pool(&op, &X.map(|x| -x), None).unwrap(), [-1.0, -2.0, -4.0, -5.0]);
}

#[test]
fn dilation_and_padding_of_each_side_follow_the_formula() {
    let op = Pool2d::new(PoolKind::Max, [1, 1, 3, 3], [2, 2]).stride([1, 1]).dilation([2, 2]);
    assert_eq!(pool(&op, &X, None).unwrap(), [9.0]);
    let right = of(PoolKind::Max).pad_each([0, 0, 0, 1]);
    assert_eq!(pool(&right, &X, None).unwrap(), [5.0, 6.0, 6.0, 8.0, 9.0, 9.0]);
}

#[test]
fn the_maximum_is_the_first_and_nan_wins() {
    assert_eq!(largest(&[1.0, 3.0, 3.0]), Some(1));
    assert_eq!(largest(&[f64::NAN, 3.0]), Some(0));
    assert_eq!(largest(&[]), None);
}
