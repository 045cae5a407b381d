// Stands for the user's comparison. The importer declares T.
fn less(a: T, b: T) -> bool { return a < b; }
