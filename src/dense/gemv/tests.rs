use super::*;
use crate::error::ErrorKind;
use crate::program::Op;
use crate::program::{Grid, Resource};

fn lower(gemv: &Gemv, profile: &DeviceProfile) -> Result<Program> {
    Op::<f32>::lower(gemv, profile)
}

fn refusal(gemv: &Gemv, profile: &DeviceProfile) -> (ErrorKind, String) {
    let e = lower(gemv, profile).unwrap_err();
    (e.kind(), e.to_string())
}

#[test]
fn a_large_square_fills_a_card_both_ways() {
    let h100 = DeviceProfile::h100();
    let rows = lower(&Gemv::new(16384, 16384), &h100).unwrap();
    assert_eq!((rows.dispatches.len(), rows.scratch_bytes()), (1, 0));
    assert_eq!(rows.dispatches[0].grid, Grid::fold(8192));
    let columns = lower(&Gemv::new(16384, 16384).trans(), &h100).unwrap();
    assert_eq!(columns.dispatches[0].grid, Grid::fold(2048));
    assert_eq!(columns.scratch_bytes(), 32 * 4 * 16384);
    assert!(columns.scratch_bytes() as f64 * 100.0 < columns.cost.bytes);
}

#[test]
fn a_matrix_above_one_binding_is_cut_into_chunks_that_cover_every_row_once() {
    let webgpu = DeviceProfile::webgpu_defaults();
    for (gemv, chunks) in [
        (Gemv::new(5000, 10_001), 2),
        (Gemv::new(5000, 10_001).trans(), 2),
        (Gemv::new(30_000_000, 2), 2),
        (Gemv::new(3, 20_000_000), 3),
        (Gemv::new(100, 3).lda(500_000), 2),
    ] {
        for variant in ["naive", "tiled"] {
            let program = lower(&gemv.clone().variant(variant), &webgpu).unwrap();
            let of_a = |d: &&crate::program::Dispatch| d.bindings[0].resource == Resource::Operand(0);
            assert_eq!(program.dispatches.iter().filter(of_a).count(), chunks, "{gemv:?}");
            let mut next = 0;
            for (i, d) in program.dispatches.iter().enumerate().filter(|(_, d)| of_a(d)) {
                assert!(d.bindings.iter().all(|b| b.size <= webgpu.limits.max_storage_binding));
                assert_eq!(program.param(i, "first_row"), next);
                next += program.param(i, "rows");
            }
            assert_eq!(next, gemv.m as u64);
        }
    }
}

#[test]
fn rejects_sizes_above_the_limits_with_the_numbers() {
    let webgpu = DeviceProfile::webgpu_defaults();
    let (kind, text) = refusal(&Gemv::new(3, 5).lda(4), &webgpu);
    assert_eq!(kind, ErrorKind::InvalidArgument);
    assert!(text.starts_with("gemv 3 x 5: ") && text.contains("lda = 4 is below 5"), "{text}");
    let (kind, text) = refusal(&Gemv::new(1 << 14, 1 << 14), &webgpu);
    assert!(kind == ErrorKind::TooLarge && text.contains("1073741824 bytes"), "{text}");
    assert!(text.contains("largest buffer"), "{text}");
    let (kind, text) = refusal(&Gemv::new(1, 40_000_000), &webgpu);
    assert!(kind == ErrorKind::TooLarge && text.contains("largest binding"), "{text}");
    assert_eq!(refusal(&Gemv::new(usize::MAX, 2), &webgpu).0, ErrorKind::TooLarge);
    assert_eq!(refusal(&Gemv::new(1, 1).variant("fast"), &webgpu).0, ErrorKind::InvalidArgument);
    let e = Op::<f16>::lower(&Gemv::new(4, 4), &DeviceProfile::swiftshader()).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("SHADER_F16"), "{e}");
}

#[test]
fn operands_with_factor_0_are_not_bound() {
    for gemv in [Gemv::new(40, 0), Gemv::new(0, 40).trans(), Gemv::new(40, 7).alpha(0.0)] {
        for variant in ["naive", "tiled"] {
            let gemv = gemv.clone().variant(variant).beta(2.0);
            let program = lower(&gemv, &DeviceProfile::webgpu_defaults()).unwrap();
            let bound: Vec<_> = program.dispatches[0].bindings.iter().map(|b| b.resource).collect();
            assert_eq!(bound, [Resource::Operand(2)]);
            assert_eq!(program.cost, Cost { flop: 0.0, bytes: 2.0 * 4.0 * 40.0 });
        }
    }
    let program = lower(&Gemv::new(0, 9), &DeviceProfile::h100()).unwrap();
    assert!(program.dispatches.is_empty() && program.cost.bytes == 0.0);
}

#[test]
fn auto_follows_the_device() {
    let variant = |gemv: &Gemv, profile: &DeviceProfile| lower(gemv, profile).unwrap().variant();
    let square = Gemv::new(300, 300);
    assert_eq!(variant(&square, &DeviceProfile::h100()), "tiled");
    assert_eq!(variant(&square, &DeviceProfile::webgpu_defaults()), "tiled");
    assert_eq!(variant(&square, &DeviceProfile::mesa()), "naive");
    assert_eq!(variant(&square.trans(), &DeviceProfile::mesa()), "tiled");
}
