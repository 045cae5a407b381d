use super::*;

fn op(dispatches: usize) -> OpProfile {
    OpProfile::new("op", "plain", None, vec![DispatchProfile::default(); dispatches])
}

#[test]
fn timestamps_go_to_the_dispatches_in_order() {
    let profiler = Profiler { ops: vec![op(2), op(0), op(1)], ..Profiler::new(true) };
    // The last clock ran backwards.
    let ops = profiler.timed(&[100, 110, 115, 130, 130, 140, 150, 145], 0.5);
    let spans: Vec<_> = ops.iter().map(|op| (op.begin, op.seconds)).collect();
    assert_eq!(spans, [(0.0, 15.0), (15.0, 5.0), (25.0, 0.0)]);
    let second = &ops[0].dispatches[1];
    assert_eq!((second.begin, second.seconds), (Some(7.5), Some(7.5)));
}

#[test]
fn texts_are_quoted_as_json() {
    assert_eq!(quoted("a \"b\" \\ \n é"), r#""a \"b\" \\ \u000a é""#);
}

#[test]
fn equal_ops_share_a_line_slowest_first() {
    let timed = |name: &str, seconds| OpProfile {
        op: name.into(),
        seconds,
        cost: Some(Cost { flop: 2e6, bytes: 4e6 }),
        ..op(0)
    };
    let ops = vec![timed("short", 1e-3), timed("long", 2e-3), timed("short", 2e-3), timed("long", 4e-3)];
    let ceilings = Some(Ceilings { copy_bytes_per_second: 8e9, fma_flop_per_second: 1e12 });
    let profile = Profile { adapter: "a card".into(), clock: Clock::Device, ceilings, ops };
    let text = profile.to_string();
    let lines: Vec<_> = text.lines().collect();
    let words = |i: usize| lines[i].split_whitespace().collect::<Vec<_>>();
    assert!(lines[0].starts_with("4 ops with 0 dispatches on a card: 9000 us"), "{text}");
    // 4 MB in 3 ms, where the ceilings allow 0.5 ms.
    let long = ["long,", "plain", "2", "3000", "66.7", "%", "4.000", "1.333", "0.667", "17", "%"];
    assert_eq!(words(2), long, "{text}");
    assert!(lines[3].starts_with("short"), "{text}");
}
