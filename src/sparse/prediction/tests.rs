use super::*;

/// The format of rows with these statistics on an H100.
fn format(rows: usize, entries: usize, longest: usize, hybrid: [usize; 2]) -> &'static str {
    let mean = entries as f64 / rows as f64;
    let [hybrid_width, hybrid_list] = hybrid;
    let cols = rows.max(longest);
    let statistics =
        Statistics { rows, cols, entries, mean, longest, hybrid_width, hybrid_list, ..Statistics::default() };
    statistics.format(&DeviceProfile::h100()).0
}

#[test]
fn the_fastest_measured_format_is_chosen() {
    // Long rows: ELL took 3520 us on an H100, compressed rows 52.
    assert_eq!(format(300, 6_000_000, 20_000, [20_000, 0]), "csr");
    // A power law: hybrid 202 us, compressed rows 171.
    assert_eq!(format(1 << 20, 16 << 20, 200_000, [14, 7_000_000]), "csr");
    // An arrow: 31 and 32 us.
    assert_eq!(format(1 << 20, 3 << 20, 1 << 20, [2, (1 << 20) - 2]), "hybrid");
    // A triangle: the longest walk of JDS is a row.
    assert_eq!(format(4096, 4096 * 4097 / 2, 4096, [3277, 300_000]), "csr");
    // bcspwr10: ELL 6.6 us, compressed rows 6.1. copter2: 9.3 and 7.4.
    assert_eq!(format(5300, 21_842, 14, [6, 1000]), "csr");
    assert_eq!(format(55_476, 704_000, 27, [15, 5000]), "csr");
    // A diagonal: row pointers are half of what compressed rows read.
    assert_eq!(format(1 << 22, 1 << 22, 1, [1, 0]), "ell");
    assert_eq!(format(5, 0, 0, [0, 0]), "csr");
}

#[test]
fn reasons_list_every_prediction() {
    let statistics =
        Statistics { rows: 1000, cols: 1000, entries: 1000, mean: 1.0, longest: 1, ..Statistics::default() };
    let (name, why) = statistics.format(&DeviceProfile::h100());
    for (other, seconds) in statistics.predict(&DeviceProfile::h100()) {
        let time = format!("{:.1}", seconds * 1e6);
        assert!(why.contains(&if other == name { format!("{time} us") } else { format!("{other} {time}") }), "{why}");
    }
}
