use super::*;
use crate::ErrorKind;

#[test]
fn auto_follows_size_and_workgroup_memory() {
    let (h100, defaults) = (DeviceProfile::h100(), DeviceProfile::webgpu_defaults());
    let auto = |image: Image, size, p: &DeviceProfile| Op::<u8>::lower(&Median::new(image, size), p).unwrap().variant();
    let grey = Image::grey([100, 100]);
    assert_eq!(
        [1, 3, 5, 7, 33, 35].map(|size| auto(grey, size, &defaults)),
        ["tiled", "network", "network", "tiled", "tiled", "naive"]
    );
    assert_eq!(auto(grey, 35, &h100), "tiled");
    let rgb = [Image::rgb([100, 100]), Image::rgb([100, 100]).planar()];
    assert_eq!(rgb.map(|image| auto(image, 31, &defaults)), ["naive", "tiled"]);
}

#[test]
fn rejects_sizes_that_some_driver_does_not_finish() {
    let lower = |size| {
        let op = Median::new([4, 4], size);
        let profile = DeviceProfile::mesa();
        [Op::<u8>::lower(&op, &profile), Op::<f32>::lower(&op, &profile)].map(|p| p.err().map(|e| e.kind()))
    };
    assert_eq!(lower(43), [None, None]);
    assert_eq!(lower(45), [None, Some(ErrorKind::TooLarge)]);
    assert_eq!(lower(91), [Some(ErrorKind::TooLarge); 2]);
    assert_eq!(lower(0), [Some(ErrorKind::InvalidArgument); 2]);
}
