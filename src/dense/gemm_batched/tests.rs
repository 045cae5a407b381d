use super::*;
use crate::dense::product::trial::{lower, refusal};
use crate::error::ErrorKind;
use crate::program::{Cost, DeviceClass, DeviceProfile, Op};

#[test]
fn variant_follows_the_shape() {
    let (h100, mesa) = (DeviceProfile::h100(), DeviceProfile::mesa());
    let chosen = |m, n, k, profile| lower(&GemmBatched::new(100, m, n, k), profile).unwrap().variant();
    assert_eq!(chosen(32, 32, 32, &h100), "small");
    // 63 of 8 x 24 x 512: `small` 22 us, `register` 16.
    assert_eq!(chosen(64, 5, 1000, &h100), "register");
    assert_eq!(chosen(65, 64, 64, &h100), "register");
    assert_eq!(chosen(3, 3, 3, &h100), "naive");
    assert_eq!(chosen(1000, 3, 3, &h100), "naive");
    assert_ne!(chosen(1, 64, 2000, &h100), "naive");
    assert_eq!(chosen(3, 3, 3, &mesa), "naive");
    assert_eq!(chosen(32, 32, 32, &mesa), "unstaged");
}

#[test]
fn short_products_take_the_variant_measured_faster() {
    let chosen = |op: GemmBatched| lower(&op, &DeviceProfile::h100()).unwrap().variant();
    for (batch, side) in [(10_000, 32), (4096, 48), (4096, 64)] {
        assert_eq!(chosen(GemmBatched::new(batch, side, side, side)), "small", "{side}");
    }
    assert_eq!(chosen(GemmBatched::new(324, 36, 63, 113)), "small");
    assert_eq!(chosen(GemmBatched::new(1024, 128, 128, 128)), "register");
}

#[test]
fn a_large_batch_is_cut_into_dispatches() {
    let op = GemmBatched::new(65, 512, 512, 512).strides(0, 0, 512 * 512);
    let mut virtual_device = DeviceProfile::h100();
    virtual_device.class = DeviceClass::Virtual;
    let program = lower(&op, &virtual_device).unwrap();
    // 2^33 flop each: 32 products, in tiles of 64 x 64. An H100 gets more.
    let parts: Vec<_> =
        (0..program.dispatches.len()).map(|i| (program.param(i, "first_tile"), program.param(i, "tiles"))).collect();
    assert_eq!(parts, [(0, 2048), (2048, 2048), (4096, 64)]);
    assert_eq!(lower(&op, &DeviceProfile::h100()).unwrap().dispatches.len(), 1);
}

#[test]
fn bias_and_mixed_types_change_operands_and_bytes() {
    let h100 = DeviceProfile::h100();
    let op = GemmBatched::new(10, 4, 5, 6);
    let program = Op::<f16>::lower(&op.clone().with_row_bias().mixed_precision(), &h100).unwrap();
    let operands: Vec<_> = program.operands.iter().map(|o| (o.name, o.dtype, o.len)).collect();
    let (f16, f32) = (DType::F16, DType::F32);
    assert_eq!(operands, [("a", f16, 240), ("b", f16, 300), ("bias", f32, 4), ("c", f32, 200)]);
    assert_eq!(program.cost.bytes, 2.0 * 540.0 + 4.0 * 204.0);
    assert_eq!(Op::<f32>::lower(&op.with_bias(), &h100).unwrap().operands[2].len, 5);
}

#[test]
fn cost_counts_a_shared_matrix_once() {
    let cost = |op: GemmBatched| lower(&op, &DeviceProfile::h100()).unwrap().cost;
    let op = GemmBatched::new(10, 4, 5, 6);
    assert_eq!(cost(op.clone()), Cost { flop: 2400.0, bytes: 4.0 * (240.0 + 300.0 + 200.0) });
    assert_eq!(cost(op.clone().strides(0, 30, 20)).bytes, 4.0 * (24.0 + 300.0 + 200.0));
    assert_eq!(cost(op.beta(1.0).alpha(0.0)), Cost { flop: 0.0, bytes: 4.0 * 400.0 });
}

#[test]
fn rejects_sizes_above_the_limits_with_the_numbers() {
    let (h100, mesa) = (DeviceProfile::h100(), DeviceProfile::mesa());
    let (kind, text) = refusal(&GemmBatched::new(1 << 16, 32, 32, 32), &mesa);
    assert!(kind == ErrorKind::TooLarge && text.contains("268435456 bytes"), "{text}");
    assert!(text.contains("134217728;") && text.contains("fewer products"), "{text}");
    for op in [GemmBatched::new(usize::MAX, 2, 2, 2), GemmBatched::new(2, usize::MAX, 2, 2)] {
        assert_eq!(refusal(&op, &h100).0, ErrorKind::TooLarge);
    }
    let far = GemmBatched::new(2, 1, 1, 1).strides(usize::MAX, 1, 1);
    assert_eq!(refusal(&far, &h100).0, ErrorKind::TooLarge);
    let (kind, text) = refusal(&GemmBatched::new(2, 65, 4, 4).variant("small"), &h100);
    assert!(kind == ErrorKind::InvalidArgument && text.contains("take `register`"), "{text}");
    let small = GemmBatched::new(100, 32, 32, 32).variant("small");
    for thread in [[4, 6], [0, 4], [20, 4]] {
        let (kind, text) =
            refusal(&small.clone().thread_tile(ThreadTile { rows: thread[0], columns: thread[1] }), &h100);
        assert!(kind == ErrorKind::InvalidArgument && text.contains("multiples of 4 up to 16"), "{text}");
    }
    for products in [0, 1000] {
        let (kind, text) = refusal(&small.clone().products(products), &h100);
        assert!(kind == ErrorKind::TooLarge && text.contains("64 threads"), "{text}");
    }
    let (kind, text) = refusal(&GemmBatched::new(1, 2, 2, 2).variant("fast"), &mesa);
    assert!(kind == ErrorKind::InvalidArgument && text.contains("auto, naive, small"), "{text}");
    let e = Op::<f16>::lower(&GemmBatched::new(1, 4, 4, 4), &DeviceProfile::swiftshader()).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("SHADER_F16"), "{e}");
}
