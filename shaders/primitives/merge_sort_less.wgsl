// Compares integers, if the user has no comparison. The importer declares T.
fn less(a: T, b: T) -> bool { return a < b; }
