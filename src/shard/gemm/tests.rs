use super::*;

#[test]
fn bands_cover_the_rows_fit_and_are_aligned() {
    for (limit, rows, leading, size) in [
        (1 << 29, 16384, [32768, 32768], 4),
        ((1 << 29) - 1, 16384, [32768, 32768], 4),
        (1000, 37, [53, 41], 4),
        (20_000, 300, [129, 7], 2),
        (64, 1, [1, 1], 4),
    ] {
        let bands = bands(limit, rows, leading, size);
        assert_eq!((bands[0].start, bands[bands.len() - 1].end), (0, rows));
        assert!(bands.windows(2).all(|w| w[0].end == w[1].start));
        let step = bands[0].len();
        for band in &bands {
            let starts = leading.map(|l| band.start * l * size);
            assert!(starts.iter().all(|at| at.is_multiple_of(ALIGNED)), "{band:?} of {leading:?}");
            let most = (band.len() * leading[0].max(leading[1])) as u64;
            assert!(most <= limit || step <= ALIGNED, "{band:?}: {most}");
        }
    }
    assert_eq!(bands(1 << 29, 16384, [32768; 2], 4).len(), 1);
    assert_eq!(bands((1 << 29) - 1, 16384, [32768; 2], 4).len(), 2);
    assert!(bands_of(100, 0, 10, 64).iter().all(Range::is_empty));
}
