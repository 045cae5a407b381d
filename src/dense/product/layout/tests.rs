use super::*;
use crate::dense::product::trial::{lower, refusal};
use crate::dense::{Gemm, GemmBatched};
use crate::error::ErrorKind;
use crate::program::{Limits, Op};
use half::f16;

/// A device with unlimited memory, so that only the width of an index limits.
fn boundless() -> DeviceProfile {
    let limits = Limits { max_buffer_size: 1 << 50, max_storage_binding: 1 << 50, ..Limits::WEBGPU };
    DeviceProfile { limits, ..DeviceProfile::h100() }
}

#[test]
fn operands_have_the_stored_shape() {
    let lens = |gemm: &Gemm| -> Vec<_> {
        let program = lower(gemm, &DeviceProfile::webgpu_defaults()).unwrap();
        program.operands.iter().map(|o| (o.name, o.len)).collect()
    };
    let gemm = Gemm::new(3, 5, 7);
    assert_eq!(lens(&gemm), [("a", 21), ("b", 35), ("c", 15)]);
    let apart = gemm.clone().lda(10).ldb(11).ldc(12);
    assert_eq!(lens(&apart), [("a", 27), ("b", 71), ("c", 29)]);
    let transposed = apart.trans_a().trans_b();
    assert_eq!(lens(&transposed), [("a", 63), ("b", 51), ("c", 29)]);
    let program = Op::<f16>::lower(&transposed.with_bias(), &DeviceProfile::h100()).unwrap();
    assert_eq!(program.operands[2].len, 5);
    assert!(program.operands.iter().all(|o| o.dtype == DType::F16));
}

#[test]
fn rejects_a_leading_dimension_below_the_row_length() {
    let h100 = DeviceProfile::h100();
    let gemm = Gemm::new(3, 5, 7);
    for (gemm, text) in [
        (gemm.clone().lda(6), "lda = 6 is below 7"),
        (gemm.clone().trans_a().lda(2), "lda = 2 is below 3"),
        (gemm.clone().ldb(4), "ldb = 4 is below 5"),
        (gemm.clone().trans_b().ldb(6), "ldb = 6 is below 7"),
        (gemm.clone().ldc(4), "ldc = 4 is below 5"),
    ] {
        let (kind, message) = refusal(&gemm, &h100);
        assert_eq!(kind, ErrorKind::InvalidArgument);
        assert!(message.starts_with("gemm 3 x 5 x 7: ") && message.contains(text), "{message}");
    }
}

#[test]
fn rejects_operands_above_the_limits_with_the_numbers() {
    let (kind, text) = refusal(&Gemm::new(8192, 8192, 8192), &DeviceProfile::mesa());
    assert_eq!(kind, ErrorKind::TooLarge);
    assert!(text.contains("268435456 bytes") && text.contains("134217728"), "{text}");
    assert!(text.contains("largest binding"), "{text}");
    let (kind, text) = refusal(&Gemm::new(1 << 15, 1, 1 << 15), &DeviceProfile::swiftshader());
    assert!(kind == ErrorKind::TooLarge && text.contains("largest buffer"), "{text}");

    let many = 1 << 33;
    for gemm in [Gemm::new(many, 1, 1), Gemm::new(1, many, 1), Gemm::new(1, 1, many)] {
        let (kind, text) = refusal(&gemm, &boundless());
        assert!(kind == ErrorKind::TooLarge && text.contains("at most 4294967295"), "{text}");
    }
    // The elements fit an index, but the last tile does not.
    let (kind, text) = refusal(&Gemm::new(1, 1, u32::MAX as usize).variant("tiled"), &boundless());
    assert!(kind == ErrorKind::TooLarge && text.contains("whole tiles of 16"), "{text}");
    let (kind, _) = refusal(&Gemm::new(usize::MAX, 2, 2), &boundless());
    assert_eq!(kind, ErrorKind::TooLarge);
}

#[test]
fn rejects_invalid_strides_with_the_numbers() {
    let h100 = DeviceProfile::h100();
    let op = GemmBatched::new(2, 3, 5, 7);
    let strided = |op: &GemmBatched, c| op.clone().strides(0, 1, c);
    for (op, text) in [
        (
            strided(&op, 14),
            "with a stride of 14 the matrices of c (3 x 5, ldc = 5) overlap; take a stride of at least 15",
        ),
        (strided(&op, 0), "with a stride of 0"),
        (strided(&op.clone().ldc(9), 22), "ldc = 9) overlap; take a stride of at least 23"),
        // Side by side, but the second is too far or not far enough.
        (strided(&op.clone().ldc(10), 6), "ldc of at least (batch - 1) * stride + 5"),
        (strided(&op.clone().ldc(10), 4), "with a stride of 4"),
        (op.clone().lda(6), "lda = 6 is below 7"),
        (op.clone().trans_b().ldb(6), "ldb = 6 is below 7"),
        (op.clone().ldc(4), "ldc = 4 is below 5"),
    ] {
        let (kind, message) = refusal(&op, &h100);
        assert_eq!(kind, ErrorKind::InvalidArgument);
        assert!(message.starts_with("gemm-batched 2 x 3 x 5 x 7: ") && message.contains(text), "{message}");
    }
    assert!(lower(&strided(&op, 15), &h100).is_ok());
    assert!(lower(&strided(&op.clone().ldc(10), 5), &h100).is_ok());
    assert!(lower(&GemmBatched::new(1, 3, 5, 7).strides(1, 1, 1), &h100).is_ok());
}

#[test]
fn operands_reach_from_the_first_matrix_to_the_last() {
    let lens = |op: &GemmBatched| -> Vec<_> {
        lower(op, &DeviceProfile::h100()).unwrap().operands.iter().map(|o| o.len).collect()
    };
    let op = GemmBatched::new(4, 3, 5, 7);
    assert_eq!(lens(&op), [84, 140, 60]);
    assert_eq!(lens(&op.clone().strides(0, 1, 20)), [21, 38, 75]);
    assert_eq!(lens(&op.clone().lda(10).ldb(6).ldc(8)), [117, 167, 93]);
    // Side by side in rows.
    let heads = op.lda(28).ldb(20).ldc(20).strides(7, 5, 5);
    assert_eq!(lens(&heads), [84, 140, 60]);
}
