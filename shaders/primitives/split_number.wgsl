// An element that is the number of its part.
fn part(x: T) -> u32 { return x; }
