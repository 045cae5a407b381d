use super::*;

#[test]
fn ragged_rows_are_read_again_where_threads_would_wait() {
    let (h100, mesa) = (DeviceProfile::h100(), DeviceProfile::mesa());
    let chosen = |h, w, p: &DeviceProfile| Op::<f32>::lower(&Sobel::new([h, w]), p).map(|p| p.variant()).ok();
    assert_eq!(chosen(1000, 101, &h100), Some("naive"));
    assert_eq!(chosen(1000, 104, &h100), Some("rows"));
    assert_eq!(chosen(8001, 8001, &h100), Some("rows"));
    assert_eq!(chosen(1000, 101, &mesa), Some("rows"));
    assert_eq!(chosen(10, 101, &mesa), Some("naive"));
}
