use super::*;
use crate::ErrorKind;

#[test]
fn axes_that_stay_together_merge() {
    assert_eq!(merged(&[2, 3, 4], &[0, 1, 2]), (vec![24], vec![0]));
    assert_eq!(merged(&[2, 3, 4], &[2, 0, 1]), (vec![6, 4], vec![1, 0]));
    assert_eq!(merged(&[2, 1, 4, 5], &[3, 1, 0, 2]), (vec![8, 5], vec![1, 0]));
    assert_eq!(merged(&[2, 3, 4, 5], &[1, 0, 2, 3]), (vec![2, 3, 20], vec![1, 0, 2]));
    assert_eq!(merged(&[1, 1], &[1, 0]), (vec![], vec![]));
}

#[test]
fn the_kernel_follows_the_last_axis() {
    let label = |shape: &[usize], axes: &[usize]| {
        let program = Op::<f32>::lower(&PermuteAxes::new(shape, axes), &DeviceProfile::h100()).unwrap();
        program.kernels[0].label()
    };
    assert!(label(&[50, 60, 70], &[2, 0, 1]).contains("transpose"));
    assert!(label(&[50, 60, 70], &[2, 1, 0]).contains("permute_axes_tiled"));
    assert!(label(&[50, 60, 70], &[1, 0, 2]).ends_with("permute_axes"));
}

#[test]
fn rejects_axes_that_are_no_permutation() {
    let kind = |shape: &[usize], axes: &[usize]| {
        Op::<f32>::lower(&PermuteAxes::new(shape, axes), &DeviceProfile::mesa()).unwrap_err().kind()
    };
    for axes in [&[0, 0][..], &[0], &[1, 2], &[0, 1, 2], &[]] {
        assert_eq!(kind(&[2, 3], axes), ErrorKind::InvalidArgument, "{axes:?}");
    }
    assert_eq!(kind(&[1; 7], &[0, 1, 2, 3, 4, 5, 6]), ErrorKind::InvalidArgument);
    assert_eq!(kind(&[], &[]), ErrorKind::InvalidArgument);
    assert_eq!(kind(&[usize::MAX, 2], &[1, 0]), ErrorKind::TooLarge);
}
