use super::*;
use crate::ErrorKind;

fn kind<T: Element>(desc: &Histogram) -> ErrorKind {
    Op::<T>::lower(desc, &DeviceProfile::webgpu_defaults()).unwrap_err().kind()
}

#[test]
fn rejects_invalid_bins() {
    let bad = ErrorKind::InvalidArgument;
    assert_eq!(kind::<u32>(&Histogram::new(9, 0)), bad);
    assert_eq!(kind::<f32>(&Histogram::new(9, 4)), bad);
    assert_eq!(kind::<u32>(&Histogram::new(9, (1 << 20) + 1)), ErrorKind::TooLarge);
    for (lo, hi) in
        [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::NAN), (0.0, f64::INFINITY), (f64::NEG_INFINITY, 0.0)]
    {
        assert_eq!(kind::<f32>(&Histogram::new(9, 4).range(lo, hi)), bad, "{lo} {hi}");
        assert_eq!(kind::<u8>(&Histogram::new(9, 4).range(lo, hi)), bad, "{lo} {hi}");
    }
    assert_eq!(kind::<f32>(&Histogram::new(9, 4).range(1.0, 1.0 + 1e-12)), bad);
    assert_eq!(kind::<f32>(&Histogram::new(9, 4).range(0.0, 1e39)), bad);
    for edges in [vec![], vec![1.0], vec![0.0, f64::NAN], vec![f64::NAN, 0.0], vec![0.0, 2.0, 1.0], vec![0.0, 1.0, 1.0]]
    {
        assert_eq!(kind::<f32>(&Histogram::with_edges(9, edges.clone())), bad, "{edges:?}");
        assert_eq!(kind::<u32>(&Histogram::with_edges(9, edges.clone())), bad, "{edges:?}");
    }
    assert_eq!(kind::<u64>(&Histogram::new(9, 4)), ErrorKind::Unsupported);
    assert_eq!(kind::<u8>(&Histogram::new(9, 4).variant("magic")), bad);
    let many = Histogram::new(9, 4097);
    for v in ["privatized", "coarsened", "aggregated"] {
        assert_eq!(kind::<u32>(&many.clone().variant(v)), ErrorKind::Unsupported);
        assert!(Op::<u8>::lower(&many.clone().variant(v), &DeviceProfile::webgpu_defaults()).is_ok());
    }
    assert_eq!(kind::<u32>(&Histogram::new(100_000_000, 9)), ErrorKind::TooLarge);
}

#[test]
fn auto_follows_the_number_of_bins() {
    let chosen =
        |bins, profile: &DeviceProfile| Op::<u32>::lower(&Histogram::new(1 << 20, bins), profile).unwrap().variant();
    let (h100, portable) = (DeviceProfile::h100(), DeviceProfile::webgpu_defaults());
    for (bins, there, here) in [
        (1, "coarsened", "coarsened"),
        (1024, "coarsened", "coarsened"),
        (2048, "coarsened", "coarsened"),
        (8192, "coarsened", "multipass"),
        (10_000, "multipass", "multipass"),
        (100_000, "multipass", "cached"),
        (1 << 20, "cached", "cached"),
    ] {
        assert_eq!((chosen(bins, &h100), chosen(bins, &portable)), (there, here), "{bins} bins");
    }
    assert_eq!(chosen(256, &DeviceProfile::mesa()), "global");
}

#[test]
fn chunks_cover_the_input() {
    let profile = DeviceProfile::webgpu_defaults();
    let program = Op::<u8>::lower(&Histogram::new(200_000_001, 256), &profile).unwrap();
    let parts: Vec<_> = program.dispatches[1..].iter().map(|d| d.bindings[1]).collect();
    assert_eq!(parts.len(), 2);
    assert_eq!(parts.iter().map(|b| b.size).sum::<u64>(), 200_000_001);
    assert_eq!(parts[1].offset, parts[0].size);
}
