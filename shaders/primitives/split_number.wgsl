// An element that is the number of its part. The importer declares T.
fn part(x: T) -> u32 { return x; }
