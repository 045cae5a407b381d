use super::*;

#[test]
fn shapes_follow_from_inputs_and_options() {
    static OP: Operation = Operation {
        options: &[
            super::super::Setting::pair("stride", "1"),
            super::super::Setting::pair("pad", "0"),
            super::super::Setting::text("pad-each", "T,L,B,R", ""),
            super::super::Setting::flag("trans"),
        ],
        ..Operation::UNDECLARED
    };
    let of = |options: &[(&str, &str)], inputs: &[(&str, &[usize])], formula: &str| {
        let mut settings = Settings::new(&OP);
        for (name, text) in options {
            if text.is_empty() { settings.flag(name) } else { settings.text(name, *text) }.unwrap();
        }
        let mut extents = Extents::default();
        for (at, (pattern, shape)) in inputs.iter().enumerate() {
            extents.learn(&settings, (["x", "w"][at], pattern), shape);
        }
        extents.shape(&settings, formula)
    };
    let image: &[(&str, &[usize])] = &[("(N, C, H, W)", &[2, 6, 9, 8]), ("(M, C/3, R, S)", &[4, 2, 3, 5])];
    let windows = "(N, M, (H + pads - R) / stride + 1, (W + pads - S) / stride + 1)";
    assert_eq!(of(&[], image, windows), Some(vec![2, 4, 7, 4]));
    assert_eq!(of(&[("stride", "2,1"), ("pad", "1,0")], image, windows), Some(vec![2, 4, 5, 4]));
    assert_eq!(of(&[("pad-each", "1,2,0,1")], image, windows), Some(vec![2, 4, 8, 7]));
    assert_eq!(of(&[], image, "(C, Q)"), None);
    assert_eq!(of(&[], image, "(H - 10)"), None);
    let rows: &[(&str, &[usize])] = &[("(..., n)", &[2, 3, 4])];
    assert_eq!(of(&[], rows, "(...)"), Some(vec![2, 3]));
    assert_eq!(of(&[], rows, "as x"), Some(vec![2, 3, 4]));
    assert_eq!(of(&[], rows, "()"), Some(vec![]));
    let either: &[(&str, &[usize])] = &[("(m, n) or (batch, m, n)", &[5, 6, 7])];
    assert_eq!(of(&[], either, "(n, m) or (batch, n, m)"), Some(vec![5, 7, 6]));
    let product: &[(&str, &[usize])] = &[("(m, k); (k, m) with trans", &[5, 6])];
    assert_eq!(of(&[], product, "(m)"), Some(vec![5]));
    assert_eq!(of(&[("trans", "")], product, "(m)"), Some(vec![6]));
}
