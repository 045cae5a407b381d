// One product of a sum.
fn multiply_add(a: F, b: F, sum: S) -> S { return sum + a * b; }
