use super::*;
use crate::ErrorKind;

#[test]
fn rejects_invalid_images() {
    let kind = |e: Equalize| Op::<f32>::lower(&e, &DeviceProfile::h100()).unwrap_err().kind();
    assert_eq!(kind(Equalize::new([4, 4]).range(1.0, 1.0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Equalize::new([4, 4]).range(0.0, f64::INFINITY)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Equalize::new([4, 4, 5])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Equalize::new([4, 4, 0])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Equalize::new([usize::MAX, 4, 2])), ErrorKind::TooLarge);
}
