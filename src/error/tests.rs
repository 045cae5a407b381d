use super::*;

#[test]
fn lists_that_the_host_cannot_hold_are_errors() {
    let huge = [1 << 60, usize::MAX / 8, usize::MAX];
    for len in huge {
        let mut some = vec![1u64, 2];
        let refused = [
            make_room("op", &mut some, len).unwrap_err(),
            with_room::<u64>("op", len).unwrap_err(),
            filled("op", len, 7u64).unwrap_err(),
        ];
        for e in refused {
            assert_eq!(e.kind(), ErrorKind::OutOfMemory);
            assert!(e.to_string().starts_with("op: a list of ") && e.to_string().contains("bytes"), "{e}");
        }
        assert_eq!(some, [1, 2]);
    }
    assert_eq!(filled("op", 3, 7).unwrap(), copied("op", &[7; 3]).unwrap());
}

#[test]
fn control_characters_of_a_message_are_escaped() {
    let e = err!(Io, "cannot open {}", "a\x1b[31m\r\u{9b}2J\u{e4}\u{7f}\n\tline");
    assert_eq!(e.to_string(), "cannot open a\\u{1b}[31m\\r\\u{9b}2J\u{e4}\\u{7f}\n\tline");
    assert_eq!(e.clone().context("op").to_string(), format!("op: {e}"));
}
