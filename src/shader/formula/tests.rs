use super::*;
use crate::shader::Spec;

fn value(text: &str) -> Result<Value, String> {
    let variables = [("r".to_owned(), Value::Number(3)), ("half".to_owned(), Value::Word("_low".into()))];
    let constants = BTreeMap::from([("ROWS".to_owned(), Value::Number(8))]);
    let spec = Spec::new().flag("SPLIT", true);
    let names = Names { variables: &variables, constants: Some(&constants), flags: Some(&spec.flags) };
    evaluate(text, &names).map(|(value, _)| value)
}

#[test]
fn operators_bind_as_in_wgsl() {
    for (text, wanted) in [
        ("1 + 2 * 3 - 4 / 2", 5),
        ("(1 + 2) * 3 % 5", 4),
        ("ROWS / 2 >> r - 2", 2),
        ("1 << 2 + 1", 8),
        ("-r + 4", 1),
        ("0x1fu + 1i", 32),
        ("min(ROWS, r) + max(1, 2)", 5),
        ("select(1, 2, SPLIT)", 2),
    ] {
        assert_eq!(value(text), Ok(Value::Number(wanted)), "{text}");
    }
    for (text, wanted) in [
        ("r + 1 < ROWS && SPLIT", true),
        ("!SPLIT || r == 4", false),
        ("!(r >= 3) != true", true),
        ("NEVER_SET", false),
    ] {
        assert_eq!(value(text), Ok(Value::Bool(wanted)), "{text}");
    }
    assert_eq!(value("half"), Ok(Value::Word("_low".into())));
}

#[test]
fn names_without_a_value_are_flags() {
    let (value, flags) = evaluate("A && !B", &Names::default()).unwrap();
    assert_eq!((value, flags), (Value::Bool(false), vec!["A", "B"]));
}

#[test]
fn formulas_without_a_value_are_errors() {
    let nested = format!("{}1", "(".repeat(10_000));
    for (text, wanted) in [
        ("", "the formula ends"),
        ("1 +", "the formula ends"),
        ("1 2", "`2` is not part"),
        ("COLUMNS + 1", "expected a number"),
        ("half * 2", "not the word `_low`"),
        ("r && SPLIT", "true or false"),
        ("1 / 0", "`1 / 0` has no value"),
        ("1 << 63", "has no value"),
        ("9223372036854775807 * 2", "has no value"),
        ("12f", "not a whole number"),
        ("round(1)", "no function `round` of 1"),
        ("(1", "`)` is missing"),
        ("?", "expected a number or a name at `?`"),
        (&nested, "more than 32"),
    ] {
        let error = value(text).unwrap_err();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}
