use super::*;

const ENDS: [&str; 8] = ["\n", "\r", "\r\n", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"];

#[test]
fn every_line_end_ends_a_line_and_a_comment() {
    for end in ENDS {
        let text = format!("a // b{end}{end}c/* d{end}*/e");
        assert_eq!(lines(&text).collect::<Vec<_>>(), ["a // b", "", "c/* d", "*/e"], "{end:?}");
        let expected = format!("a     {end}{end}c    {end}  e");
        assert_eq!(without_comments(&text), (expected, None), "{end:?}");
    }
    assert_eq!(lines("a\n\r\nb\n").collect::<Vec<_>>(), ["a", "", "b"]);
    assert_eq!(lines("").count(), 0);
}

#[test]
fn naga_agrees_on_comments_and_blanks() {
    for c in (0..=0x2100).filter_map(char::from_u32) {
        let parses = |text: String| naga::front::wgsl::parse_str(&text).is_ok();
        assert_eq!(parses(format!("const{c}a = 1;")), is_blank(c), "{c:?}");
        // After the comment, `a` is an undeclared name.
        assert_eq!(parses(format!("//{c}const a = b;")), !is_line_end(c), "{c:?}");
    }
}

#[test]
fn comments_nest_and_keep_every_byte_in_its_place() {
    let blank = |text| without_comments(text).0;
    assert_eq!(blank("a/* b /* c */ d */e"), "a                 e");
    assert_eq!(blank("a /*/ b */ c"), "a          c");
    assert_eq!(blank("a / b //* c"), "a / b      ");
    assert_eq!(blank("/* é */x").len(), "/* é */x".len());
    assert_eq!(without_comments("a /* b /* c */"), (" ".repeat(0) + "a             ", Some(2)));
    assert_eq!(blank("/**/a/***/b"), "    a     b");
}
