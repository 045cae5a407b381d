use super::*;
use crate::ErrorKind;

fn rows(rows: usize, n: usize) -> Rows {
    Rows::new("softmax", "nn/softmax", rows, n, f32::NEG_INFINITY)
}

#[test]
fn tiles_hold_their_rows() {
    let policy = policy(&DeviceProfile::h100());
    for vec4s in 1..=4096 {
        let tile = tile(vec4s, &policy);
        assert!(tile.lanes.is_power_of_two() && tile.lanes <= 256 && tile.vec4s <= 16, "{vec4s}: {tile:?}");
        assert!(tile.lanes * tile.vec4s >= vec4s && (tile.vec4s - 1) * tile.lanes < vec4s, "{vec4s}: {tile:?}");
    }
    assert_eq!(tile(1024, &policy), RowTile { lanes: 256, vec4s: 4 });
    assert_eq!(tile(1, &policy), RowTile { lanes: 1, vec4s: 1 });
}

#[test]
fn rows_above_one_binding_are_split_into_chunks() {
    let profile = DeviceProfile::webgpu_defaults();
    for (dtype, n) in [(DType::F32, 999), (DType::F16, 1001), (DType::F32, 20_000)] {
        let count = 200_000_000 / dtype.size() / n;
        let program = rows(count, n).lower(dtype, &[], &profile).unwrap();
        let limit = profile.limits.max_storage_binding;
        assert!(program.dispatches.iter().flat_map(|d| &d.bindings).all(|b| b.size <= limit));
        let of_input = (0..program.dispatches.len()).filter(|&d| {
            let last = program.dispatches[d].bindings.len() - 1;
            program.dispatches[d].bindings[last.min(1)].resource == Resource::Operand(1)
        });
        let mut done = 0;
        for d in of_input {
            assert_eq!(program.param(d, "first"), done);
            let begin = program.dispatches[d].bindings[0].offset / dtype.size() as u64;
            assert_eq!(begin + program.param(d, "origin"), done * n as u64);
            done += program.param(d, "rows");
        }
        assert_eq!(done, count as u64);
    }
}

#[test]
fn errors_name_the_sizes() {
    let profile = DeviceProfile::webgpu_defaults();
    let e = rows(1, 40_000_000).lower(DType::F32, &[], &profile).unwrap_err();
    assert!(e.kind() == ErrorKind::TooLarge && e.to_string().contains("160000000 bytes"), "{e}");
    let whole = Rows { variant: "whole".into(), ..rows(1, 16_385) };
    let e = whole.lower(DType::F32, &[], &profile).unwrap_err();
    assert!(e.kind() == ErrorKind::TooLarge && e.to_string().contains("16384 elements"), "{e}");
    assert_eq!(whole.lower(DType::F32, &[], &profile).unwrap_err().kind(), ErrorKind::TooLarge);
    assert!(rows(1, 16_384).lower(DType::F32, &[], &profile).unwrap().variant() == "whole");
    assert!(rows(0, 9).lower(DType::F32, &[], &profile).unwrap().dispatches.is_empty());
}
