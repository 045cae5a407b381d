use super::*;
use crate::error::ErrorKind;

#[test]
fn without_nccl_there_is_one_clear_error() {
    match Library::find() {
        Ok(found) => assert!(found.version >= OLDEST),
        Err(e) => {
            let text = e.to_string();
            assert_eq!(e.kind(), ErrorKind::Unsupported, "{text}");
            assert!([DIRECT, "TILEWORK_NCCL", "2.18"].iter().any(|remedy| text.contains(remedy)), "{text}");
        }
    }
}
