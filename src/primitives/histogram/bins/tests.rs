use super::*;

#[test]
fn rules_are_as_cheap_as_the_bins_allow() {
    let mode = |desc: Histogram, dtype| Rule::of(&desc, dtype).map(|r| r.mode);
    let range = |bins, lo, hi| Histogram::new(1, bins).range(lo, hi);
    assert_eq!(mode(Histogram::new(1, 1000), DType::U32), Some(Mode::Shift));
    assert_eq!(mode(range(1024, 0.0, 4294967296.0), DType::U32), Some(Mode::Shift));
    assert_eq!(mode(range(1024, 0.0, 4294967295.0), DType::U32), Some(Mode::Uniform));
    assert_eq!(mode(range(1024, -1.0, 1.0), DType::F32), Some(Mode::Uniform));
    assert_eq!(mode(range(100, 1e6, 1e6 + 1.0), DType::F32), Some(Mode::Search));
    assert_eq!(mode(range(10, 0.5, 9.5), DType::I32), Some(Mode::Search));
    assert_eq!(mode(range(10, -20.0, -1.0), DType::U32), None);
    assert_eq!(mode(range(10, 300.0, 400.0), DType::U8), None);
}

#[test]
fn keys_bracket_every_number() {
    for e in [-1e39, -1.5, -0.0, 0.0, 0.1, 0.7, 1.0, 1e-50, 3.4e38, 1e39] {
        let (low, high) = (lowest_key(e, DType::F32), u64::from(highest_key(e, DType::F32).unwrap()));
        let exact = f64::from(e as f32) == e;
        assert_eq!(low <= high, exact, "{e}");
    }
    assert_eq!(lowest_key(0.2, DType::U32), 1);
    assert_eq!(lowest_key(-7.0, DType::U32), 0);
    assert_eq!(lowest_key(1e20, DType::U32), 1 << 32);
    assert_eq!(highest_key(-0.5, DType::U32), None);
    assert_eq!(highest_key(-0.5, DType::I32), Some(0x7fff_ffff));
}
