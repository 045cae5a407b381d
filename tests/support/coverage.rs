//! How much a test run covers. The default run compares every op and every variant with its reference. The complete
//! run, `TILEWORK_TESTS=all`, adds cases, long extents, other ways to open the device, profiles and translations.

use std::sync::OnceLock;

/// Whether this is the complete run.
pub(crate) fn all() -> bool {
    static ALL: OnceLock<bool> = OnceLock::new();
    *ALL.get_or_init(|| match std::env::var("TILEWORK_TESTS") {
        Err(_) => false,
        Ok(text) if text == "all" => true,
        Ok(text) => panic!("TILEWORK_TESTS={text}: the only value is `all`"),
    })
}

/// The list in the complete run, otherwise its first `n` elements: put the most useful ones first.
pub(crate) fn sample<T>(list: &[T], n: usize) -> &[T] {
    if all() { list } else { &list[..n.min(list.len())] }
}

/// Whether case `i` runs: always in the complete run, otherwise every `n`th one.
pub(crate) fn turn(i: usize, n: usize) -> bool {
    all() || i.is_multiple_of(n)
}

/// Whether case `i` of those that the default run leaves out runs: in the complete run always, but every `n`th one
/// where TILEWORK_CASES gives the number of random cases, as `.ci/run` does.
pub(crate) fn in_turn(i: usize, n: usize) -> bool {
    !all() || std::env::var_os("TILEWORK_CASES").is_none() || i.is_multiple_of(n)
}

/// The number of random cases: `n` in the complete run, a sixteenth of it otherwise.
pub(crate) fn cases(n: usize) -> usize {
    if all() { n } else { n.div_ceil(16) }
}
