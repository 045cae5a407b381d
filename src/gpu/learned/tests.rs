use super::*;

fn winners() -> Vec<(String, String, Winner)> {
    let better = Some(("double".to_owned(), Some("64x64x8 by 8x4".to_owned())));
    let won = Winner { better, before: 12.5e-6, after: 9.5e-6 };
    let lost = Winner { better: None, before: 1e-3, after: 1e-3 };
    vec![("gemm".into(), "a b".into(), won), ("scan".into(), "c".into(), lost)]
}

fn denied() -> Vec<Denied> {
    let row = Some("8x8x8 by 4x4".to_owned());
    let (op, variant, why) = ("gemm".to_owned(), "coop".to_owned(), "element 3 is 0".to_owned());
    vec![
        Denied { row, ..Denied { op: op.clone(), variant: variant.clone(), row: None, why: why.clone() } },
        Denied { op, variant, row: None, why },
    ]
}

#[test]
fn a_saved_file_is_read_back() {
    assert_eq!(read_winners(&write_winners(&winners())), Some(winners()));
    assert_eq!(read_denied(&write_denied(&denied())), Some(denied()));
    assert_eq!(read_winners(&write_winners(&[])), Some(Vec::new()));
    let mut odd = denied();
    odd[0].why = "two\nlines\tand a tab".into();
    assert_eq!(read_denied(&write_denied(&odd)).unwrap()[0].why, "two lines and a tab");
}

#[test]
fn a_malformed_file_is_ignored() {
    let whole = write_winners(&winners());
    let changes: &[(&str, &str)] = &[
        (HEAD, "tilework learned 2"),
        ("gemm\t", "\t"),
        ("1.25e-5", "x"),
        ("1.25e-5", "-1"),
        ("1.25e-5", "NaN"),
        ("1.25e-5", "inf"),
        ("\tdouble", "\t"),
        ("\ta b", ""),
        ("9.5e-6\n", "9.5e-6\tmore\n"),
        ("9.5e-6\n", "9.5e-6\n\n"),
    ];
    for (from, to) in changes {
        let odd = whole.replacen(from, to, 1);
        assert!(odd != whole && read_winners(&odd).is_none(), "{odd}");
    }
    assert!(read_winners(whole.trim_end()).is_none() && read_winners("").is_none());
    assert!(read_denied(&write_denied(&denied()).replacen("gemm", "", 1)).is_none());
    assert!(read_denied(&whole).is_none());
}

#[test]
fn reports_state_both_times() {
    let why = winners()[0].2.choice().unwrap().why;
    assert_eq!(why, "tuned on this device: 9.5 us against 12.5 us of the default");
    assert_eq!(winners()[1].2.choice(), None);
}
