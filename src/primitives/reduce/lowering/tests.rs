use super::*;

#[test]
fn chunks_cover_every_element_once() {
    for (rows, n, most) in [(1, 1000, 1 << 18), (7, 300, 192), (3, 5000, 448), (1, 100_000, 3840), (5, 0, 192)] {
        let chunks = split(rows, n, most);
        let mut seen = 0;
        for p in &chunks {
            assert_eq!(p.first_row * n + p.column, seen, "{p:?}");
            assert!(p.rows == 1 || (p.column == 0 && p.len == n));
            assert!(p.rows * p.len <= most || chunks.len() == 1, "{p:?}");
            seen += p.rows * p.len;
        }
        assert_eq!(seen, rows * n);
    }
}
