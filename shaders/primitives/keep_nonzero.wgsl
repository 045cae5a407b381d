// Keeps elements that are not 0; NaN is kept. The importer declares T.
fn keep(x: T) -> bool { return x != T(0); }
