// Adds four products of signed bytes to a sum.
fn multiply_add(a: F, b: F, sum: S) -> S { return sum + dot4I8Packed(a, b); }
