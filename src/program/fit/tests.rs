use super::*;
use crate::ErrorKind;
use crate::element::DType;
use crate::program::Access;

#[test]
fn chunks_cover_every_row_once_and_fit_a_binding() {
    let profile = DeviceProfile::webgpu_defaults();
    let limit = profile.limits.max_storage_binding;
    for (count, bytes) in [(0, 4), (1, 1 << 27), (3, 0), (90_000, 1998), (1 << 28, 1), (1 << 25, 12), (5, 1 << 26)] {
        let aligned: Vec<_> = profile.aligned_chunks(count, bytes).collect();
        for (aligned, chunks) in [(false, profile.chunks(count, bytes).collect()), (true, aligned)] {
            // A caller asks for aligned chunks only if a binding holds 256 rows.
            if aligned && bytes > 1 << 18 {
                continue;
            }
            let mut next = 0;
            for chunk in chunks {
                let span = chunk.span(bytes);
                assert_eq!((chunk.first, span.offset + span.before), (next, next * bytes));
                assert!(span.size <= limit && span.offset.is_multiple_of(256) && span.before < 256, "{span:?}");
                assert!(!aligned || span.before == 0, "{span:?}");
                next += chunk.count;
            }
            assert_eq!(next, count, "{count} rows of {bytes} bytes");
        }
    }
    assert_eq!(BoundChunk::even(10, 4).map(|c| c.count).collect::<Vec<_>>(), [4, 4, 2]);
    assert_eq!(BoundChunk::even(9, 4).map(|c| c.count).collect::<Vec<_>>(), [3, 3, 3]);
    assert_eq!(BoundChunk::full(9, 4).map(|c| c.count).collect::<Vec<_>>(), [4, 4, 1]);
}

#[test]
fn errors_name_the_operand_the_limit_and_the_remedy() {
    let profile = DeviceProfile::webgpu_defaults();
    let halves = |len| [Operand { name: "x", dtype: DType::F16, len, access: Access::Read }];
    let (buffer, binding) = (1 << 27, 1 << 26);
    assert!(profile.check_buffers("op", &halves(buffer), "cut").is_ok());
    assert!(profile.check_bindings("op", &halves(binding), "cut").is_ok());
    let e = profile.check_buffers("op", &halves(buffer + 1), "cut").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TooLarge);
    let text = "op: x of 134217729 f16 has 268435460 bytes; the largest buffer of WebGPU defaults has 268435456; cut";
    assert_eq!(e.to_string(), text);
    let e = profile.check_bindings("op", &halves(binding + 1), "cut").unwrap_err().to_string();
    assert!(e.contains("the largest binding of WebGPU defaults has 134217728; cut"), "{e}");
    let e = profile.check_scratch("op", format_args!("counts"), (1 << 27) + 4, "cut").unwrap_err().to_string();
    assert_eq!(
        e,
        "op: counts need 134217732 bytes of scratch; the largest binding of WebGPU defaults has 134217728; cut"
    );
    let e = profile.check_row("op", format_args!("a row"), 1 << 27, "cut").unwrap_err().to_string();
    assert_eq!(e, "op: a row has 134217728 bytes; WebGPU defaults binds at most 134217472 of one; cut");
}

#[test]
fn only_software_drivers_limit_loops() {
    for (profile, limited) in [
        (DeviceProfile::mesa(), true),
        (DeviceProfile::swiftshader(), true),
        (DeviceProfile::webgpu_defaults(), false),
        (DeviceProfile::h100(), false),
    ] {
        assert!(profile.runs_rounds(65535), "{}", profile.name);
        assert_eq!(profile.runs_rounds(65536), !limited, "{}", profile.name);
        let steps = if limited { [1 << 15, 1 << 13] } else { [1 << 20; 2] };
        assert_eq!([1, 6].map(|each| profile.loop_steps(each, 1 << 20)), steps, "{}", profile.name);
        assert_eq!(profile.loop_steps(6, 100), 100, "{}", profile.name);
    }
}
