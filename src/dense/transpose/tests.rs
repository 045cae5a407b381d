use super::*;
use crate::error::ErrorKind;
use crate::program::Op;

fn lower(op: &Transpose, profile: &DeviceProfile) -> Result<Program> {
    Op::<f32>::lower(op, profile)
}

#[test]
fn form_follows_type_and_shape() {
    let h100 = DeviceProfile::h100();
    let label = |program: Program| program.kernels[0].label();
    let even = Transpose::new(1000, 2000);
    assert!(label(lower(&even, &h100).unwrap()).contains("vectors"));
    assert!(label(lower(&Transpose::new(1001, 2000), &h100).unwrap()).contains("tiled"));
    assert!(label(Op::<u64>::lower(&even, &h100).unwrap()).contains("tiled"));
    assert!(label(Op::<i8>::lower(&even, &h100).unwrap()).contains("packed"));
    let small = Transpose::new(100, 200);
    let flats = [Transpose::new(1, 9999), Transpose::new(9999, 2), Transpose::new(295_773, 6)];
    for flat in flats.into_iter().chain([small, Transpose::batched(9999, 8, 8)]) {
        assert_eq!(lower(&flat, &h100).unwrap().variant(), "naive");
    }
    assert_eq!(lower(&even, &DeviceProfile::mesa()).unwrap().variant(), "naive");
}

#[test]
fn tiles_cover_the_matrix() {
    let h100 = DeviceProfile::h100();
    assert_eq!(lower(&Transpose::new(16384, 16384), &h100).unwrap().dispatches[0].grid, Grid::fold(1 << 16));
    let odd = lower(&Transpose::batched(3, 65, 33).variant("tiled"), &h100).unwrap();
    assert_eq!(odd.dispatches[0].grid, Grid::fold(3 * 3 * 2));
    assert!(lower(&Transpose::new(0, 7), &h100).unwrap().dispatches.is_empty());
}

#[test]
fn rejects_sizes_above_the_limits_with_the_numbers() {
    let e = lower(&Transpose::new(1 << 13, 1 << 13), &DeviceProfile::mesa()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TooLarge);
    assert!(e.to_string().contains("268435456 bytes") && e.to_string().contains("134217728"), "{e}");
    assert_eq!(lower(&Transpose::new(usize::MAX, 2), &DeviceProfile::mesa()).unwrap_err().kind(), ErrorKind::TooLarge);
    let mut boundless = DeviceProfile::h100();
    boundless.limits.max_buffer_size = 1 << 50;
    boundless.limits.max_storage_binding = 1 << 50;
    let e = Op::<u8>::lower(&Transpose::new(1 << 16, 1 << 16), &boundless).unwrap_err();
    assert!(e.kind() == ErrorKind::TooLarge && e.to_string().contains("count at most"), "{e}");
    let e = lower(&Transpose::new(4, 4).variant("fast"), &boundless).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("auto, naive, tiled"), "{e}");
}
