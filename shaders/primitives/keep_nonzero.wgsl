// Kept are elements that are not 0, NaN among them. The importer declares T.
fn keep(x: T) -> bool { return x != T(0); }
