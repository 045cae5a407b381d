use super::*;

#[test]
fn auto_follows_device_and_radius() {
    let (h100, mesa) = (DeviceProfile::h100(), DeviceProfile::mesa());
    let chosen = |h, r, p: &DeviceProfile| Op::<u8>::lower(&Blur::new([h, 8000], r), p).map(|p| p.variant()).ok();
    assert_eq!(chosen(1000, 4, &h100), Some("register"));
    // Small images wait for memory, large ones for operations.
    assert_eq!(chosen(10, 4, &h100), Some("tiled"));
    assert_eq!(chosen(100, 8, &h100), Some("tiled"));
    assert_eq!(chosen(1000, 8, &h100), Some("separable"));
    assert_eq!(chosen(1000, 9, &h100), Some("separable"));
    assert_eq!(chosen(1000, 1, &mesa), Some("register"));
    assert_eq!(chosen(1000, 9, &mesa), Some("separable"));
    // Row sums of 256 MB.
    assert_eq!(chosen(8000, 9, &mesa), Some("fused"));
    assert_eq!(chosen(8000, 61, &mesa), None);
}
